#include "perf/opportunistic.h"

#include <algorithm>
#include <cmath>

namespace berth {

namespace {

constexpr double kLeastSpeed = 0.02;  // some kernels always slip in between
constexpr double kRounding = 1e-12;   // 1.02 is within a tolerance of 0.02 whatever the last bit

}  // namespace

double guaranteed_slowdown(double guaranteed, double opportunistic_share,
                           const Interference& model) noexcept {
  return std::max(1.0, guaranteed + opportunistic_share) *
         (1 + model.bandwidth_term * opportunistic_share);
}

double opportunistic_speed(double rate, double guaranteed, double opportunistic) noexcept {
  const double left = std::max(0.0, 1 - guaranteed);
  const double share = opportunistic > left ? left / opportunistic : 1.0;
  return rate * std::max(kLeastSpeed, share);
}

// There and back over PCIe in every iteration, hence twice.
double overflow_factor(double overflow_bytes, double iteration_seconds,
                       const Interference& model) noexcept {
  if (overflow_bytes <= 0 || iteration_seconds <= 0) return 1;
  return 1 + overflow_bytes * 2 / (model.pcie_bytes_per_second * iteration_seconds);
}

// The controller moves in steps: the largest step that the guaranteed job can bear is where it
// comes to rest.
double settled_rate(double guaranteed, double opportunistic, const Interference& model) noexcept {
  const auto bearable = [&](double rate) {
    return guaranteed_slowdown(guaranteed, rate * opportunistic, model) <=
           1 + model.tolerance + kRounding;
  };
  for (auto steps = static_cast<int>(std::floor(1 / model.rate_step + kRounding)); steps > 0;
       --steps) {
    const double rate = std::min(1.0, steps * model.rate_step);
    if (bearable(rate)) return rate;
  }
  return bearable(model.least_rate) ? model.least_rate : 0;
}

}  // namespace berth
