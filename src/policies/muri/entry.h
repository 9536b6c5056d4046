// The rows of the registry for muri-s and muri-l.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry muri_s_entry();
[[nodiscard]] PolicyEntry muri_l_entry();

}  // namespace berth
