// AntMan's local coordinator step by step, and its share-out of memory: what settled_rate() is the
// end of. The policy needs only where it settles; the worked examples show the steps.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "perf/opportunistic.h"

namespace berth {

/// What the device leaves to opportunistic jobs, in proportion to their working sets.
[[nodiscard]] inline std::vector<double> memory_limits(double left,
                                                       std::span<const double> working_sets) {
  double total = 0;
  for (const double set : working_sets) total += set;
  std::vector<double> limits;
  for (const double set : working_sets)
    limits.push_back(total > 0 ? std::max(0.0, left) * (set / total) : std::max(0.0, left));
  return limits;
}

/// One step: halve while the guaranteed job is too slow, else creep up.
[[nodiscard]] inline double next_rate(double rate, double iteration_time, double solo_time,
                                      const Interference& model) noexcept {
  constexpr double kRounding = 1e-12;
  const bool slow = iteration_time / solo_time - 1 > model.tolerance + kRounding;
  if (slow) return std::max(model.least_rate, rate * model.rate_cut);
  return std::min(1.0, rate + model.rate_step);
}

}  // namespace berth
