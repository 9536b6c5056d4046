#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry sjf_ffs_entry();
[[nodiscard]] PolicyEntry sjf_bsbf_entry();

}  // namespace berth
