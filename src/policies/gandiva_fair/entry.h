// The row of the registry for gandiva-fair.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry gandiva_fair_entry();

}  // namespace berth
