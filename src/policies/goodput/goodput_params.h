// The parameters that policies of goodput have in common.
#pragma once

#include <vector>

#include "base/params.h"
#include "policies/goodput/goodput_jobs.h"

namespace berth {

[[nodiscard]] std::vector<ParamSpec> goodput_params();
[[nodiscard]] Result<GoodputOptions> goodput_options(const Params& params);

}  // namespace berth
