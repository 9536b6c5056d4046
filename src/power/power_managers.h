// The power managers by name, for `--power`: off, ces or spare, with their knobs.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/params.h"
#include "base/result.h"
#include "core/power_manager.h"

namespace berth {

/// "off" gives none; "ces", "ces:key=value,key=value" or "spare:share=0.01" one of these.
[[nodiscard]] Result<std::unique_ptr<PowerManager>> make_power_manager(std::string_view text);
[[nodiscard]] std::vector<ParamSpec> ces_params();
[[nodiscard]] std::vector<ParamSpec> spare_params();

}  // namespace berth
