// The row of the registry for lucid.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry lucid_entry();

}  // namespace berth
