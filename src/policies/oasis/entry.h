// The registry's line for `oasis`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry oasis_entry();

}  // namespace berth
