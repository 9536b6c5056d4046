// The registry's line for jobs with execution plans.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry rubick_entry();

}  // namespace berth
