// What is left of a job's speedup if it is moved now: restarts, those so far and one more, eat up a
// part of its life.
#pragma once

#include <algorithm>

namespace berth {

[[nodiscard]] inline double restart_factor(double age_seconds, double restarts,
                                           double restart_seconds) noexcept {
  return std::max(0.0, age_seconds - restarts * restart_seconds) /
         std::max(1e-9, age_seconds + restart_seconds);
}

}  // namespace berth
