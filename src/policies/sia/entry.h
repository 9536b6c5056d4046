// The registry's line for `sia`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry sia_entry();

}  // namespace berth
