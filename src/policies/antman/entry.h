// The registry's lines for `antman` and `antman-lite`: parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry antman_entry();
[[nodiscard]] PolicyEntry antman_lite_entry();

}  // namespace berth
