// The registry's line for `synergy`: its parameters and how to make one.
#pragma once

#include "policies/registry.h"

namespace berth {

[[nodiscard]] PolicyEntry synergy_entry();

}  // namespace berth
