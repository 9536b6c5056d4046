// The registry's line for `priority`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry priority_entry();

}  // namespace berth
