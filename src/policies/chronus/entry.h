// The registry's line for `chronus`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry chronus_entry();

}  // namespace berth
