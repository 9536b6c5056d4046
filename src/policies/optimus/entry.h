// The registry's line for `optimus`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry optimus_entry();

}  // namespace berth
