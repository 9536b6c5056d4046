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

double overflow_factor(double overflow_bytes, double iteration_seconds,
                       const Interference& model) noexcept {
  if (overflow_bytes <= 0 || iteration_seconds <= 0) return 1;
  return 1 + overflow_bytes * 2 / (model.pcie_bytes_per_second * iteration_seconds);
}

std::vector<double> memory_limits(double left, std::span<const double> working_sets) {
  double total = 0;
  for (const double set : working_sets) total += set;
  std::vector<double> limits;
  limits.reserve(working_sets.size());
  for (const double set : working_sets)
    limits.push_back(total > 0 ? std::max(0.0, left) * (set / total) : std::max(0.0, left));
  return limits;
}

double next_rate(double rate, double iteration_time, double solo_time,
                 const Interference& model) noexcept {
  const bool slow = iteration_time / solo_time - 1 > model.tolerance + kRounding;
  if (slow) return std::max(model.least_rate, rate * model.rate_cut);
  return std::min(1.0, rate + model.rate_step);
}

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
