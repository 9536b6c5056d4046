// What is left of a job's speedup if it is moved now: restarts, those so far and one more, take a
// part of its life. Policies that resize jobs discount by it what a new size would gain, so that
// young jobs move freely and one that was moved often stays.
#pragma once

#include <algorithm>

namespace berth {

/// From 0 to 1, all in seconds. A restart that costs nothing takes nothing.
[[nodiscard]] constexpr double restart_factor(double age, double restarts, double cost) noexcept {
  if (age + cost <= 0) return 1;
  return std::max(0.0, age - restarts * cost) / (age + cost);
}

}  // namespace berth
