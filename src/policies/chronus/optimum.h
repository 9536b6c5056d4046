// The best choice of jobs with a deadline, and their leases, as an integer program: which jobs to
// admit, and in which terms each holds a lease, so that the reward is largest and among equals the
// leases are earliest. Exact, and exponential in the worst case: for few jobs and terms.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "solve/lp.h"

namespace berth::chronus {

struct SelectionJob {
  std::int64_t gpus = 1;
  std::int64_t leases = 1;
  std::int64_t end = 0;      // leases in terms before this one are in time
  double reward = 1;         // above zero
  bool is_promised = false;  // must be admitted
};

struct Selection {
  std::vector<std::vector<std::int64_t>> leases;  // by job, ascending; empty: not admitted
  double reward = 0;
  bool is_proven = false;
};

/// Terms are numbered from 0; `capacity` is what each of them has. Nothing: the promised jobs do
/// not fit, or no solution was found within the limits.
[[nodiscard]] std::optional<Selection> best_selection(std::span<const SelectionJob> jobs,
                                                      std::span<const std::int64_t> capacity,
                                                      const SolveLimits& limits);

}  // namespace berth::chronus
