// The shapes Sia gives to jobs: within a server powers of two, beyond it whole servers. Any set of
// them within the number of GPUs of a type can be placed without splitting a job that fits a
// server.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/portable_math.h"
#include "policies/common/restart_factor.h"

namespace berth::sia {

struct Configuration {
  std::int32_t nodes = 1;
  std::int32_t gpus = 1;
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

/// Of a type with `total` GPUs in servers of `per_node`; only multiples of `unit` (the GPUs of one
/// replica of a job that is split over several).
[[nodiscard]] inline std::vector<Configuration> configurations(std::int32_t per_node,
                                                               std::int32_t total,
                                                               std::int32_t unit = 1) {
  std::vector<Configuration> all;
  const auto add = [&](std::int32_t nodes, std::int32_t gpus) {
    if (gpus <= total && gpus % unit == 0) all.push_back({nodes, gpus});
  };
  for (std::int32_t gpus = 1; gpus < per_node; gpus *= 2) add(1, gpus);
  for (std::int32_t nodes = 1; nodes * per_node <= total; ++nodes) add(nodes, nodes * per_node);
  return all;
}

/// What is left of the utility of another configuration than the present one, all in seconds. A
/// job younger than one restart is moved freely: it has hardly done anything yet.
[[nodiscard]] constexpr double move_factor(double age, double restarts, double cost) noexcept {
  return age < cost ? 1 : restart_factor(age, restarts, cost);
}

/// How a job's row becomes costs.
struct CostRule {
  double p = -0.5;
  double none = 1.1;  // lambda: what a job without GPUs costs
};

/// The smaller the better: u^p for p < 0, at most 3000; -u^p otherwise.
[[nodiscard]] inline double cost_of_utility(double utility, const CostRule& rule) noexcept {
  constexpr double kMost = 3000;
  if (rule.p < 0) return utility > 0 ? std::min(kMost, portable_pow(utility, rule.p)) : kMost;
  return utility > 0 ? -portable_pow(utility, rule.p) : 0;
}

/// Goodput of a gang on a device type where the job has only run on one GPU: its goodput on one GPU
/// there, times the speedup that a gang of this size has on a type where it has run as one.
[[nodiscard]] constexpr double bootstrapped(double one_here, double one_there,
                                            double several_there) noexcept {
  return one_there > 0 ? several_there * one_here / one_there : 0;
}

}  // namespace berth::sia
