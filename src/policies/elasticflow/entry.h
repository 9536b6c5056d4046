// The registry's line for `elasticflow`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry elasticflow_entry();

}  // namespace berth
