// The registry's lines for Themis and its fractional form.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry themis_entry();
[[nodiscard]] PolicyEntry ftf_fractional_entry();

}  // namespace berth
