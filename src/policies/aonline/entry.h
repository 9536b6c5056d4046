// The registry's line for `aonline`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry aonline_entry();

}  // namespace berth
