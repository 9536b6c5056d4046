// The registry's line for studies of trials.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry hpo_entry();

}  // namespace berth
