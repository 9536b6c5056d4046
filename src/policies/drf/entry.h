// The registry's line for `drf`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry drf_entry();

}  // namespace berth
