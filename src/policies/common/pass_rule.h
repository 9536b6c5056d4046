// What a pass over waiting jobs does when one does not fit: it stops there, which keeps the order
// and lets a big job block, or goes on with the next, which fills every hole and may starve big
// jobs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/params.h"

namespace berth {

enum class PassRule : std::uint8_t { Strict, Skip };

[[nodiscard]] inline ParamSpec pass_param(std::string default_value) {
  return {"pass", std::move(default_value),
          "strict: stop at the first job that does not fit; skip: try the next"};
}
[[nodiscard]] inline Result<PassRule> pass_rule(const Params& params) {
  return params.choice<PassRule>("pass",
                                 {{"strict", PassRule::Strict}, {"skip", PassRule::Skip}});
}

}  // namespace berth
