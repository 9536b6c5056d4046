// What a set of allocations is worth to Pollux: the power mean of the jobs' speedups, each
// discounted if the job would have to be restarted for it.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace berth::pollux {

inline constexpr double kLeastUtility = 1e-3;  // of a job without GPUs, where p < 0

/// u^p, with jobs that get nothing counted as almost nothing where p is negative. The sum of these
/// is what is optimised: the larger the better for p > 0, the smaller for p < 0.
[[nodiscard]] inline double powered(double utility, double p) noexcept {
  if (p < 0) utility = std::max(utility, kLeastUtility);
  if (p == 1) return utility;
  if (p == -1) return 1 / utility;
  return utility > 0 ? portable_pow(utility, p) : 0;
}

/// The power mean from the sum of the powers.
[[nodiscard]] inline double power_mean(double sum, double jobs, double p) noexcept {
  const double mean = sum / jobs;
  if (p == 1) return mean;
  if (p == -1) return 1 / mean;
  return mean > 0 ? portable_pow(mean, 1 / p) : 0;
}

}  // namespace berth::pollux
