// The registry's line for `pollux`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry pollux_entry();

}  // namespace berth
