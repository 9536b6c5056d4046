// The registry's line for Shockwave.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry shockwave_entry();

}  // namespace berth
