// The registry's line for `fair-share`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry fair_share_entry();

}  // namespace berth
