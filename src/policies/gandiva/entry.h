// The registry's line for `gandiva`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry gandiva_entry();

}  // namespace berth
