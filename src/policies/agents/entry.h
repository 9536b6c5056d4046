// The registry's line for `agents`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry agents_entry();

}  // namespace berth
