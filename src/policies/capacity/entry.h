// The registry's line for `capacity`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry capacity_entry();

}  // namespace berth
