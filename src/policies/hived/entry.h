// The registry's line for `hived`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry hived_entry();

}  // namespace berth
