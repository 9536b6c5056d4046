// The registry's line for Chronus.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry chronus_entry();

}  // namespace berth
