// The registry's line for `conservative`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry conservative_entry();

}  // namespace berth
