// The row of the registry for andreas.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry andreas_entry();

}  // namespace berth
