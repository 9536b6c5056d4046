// Which jobs of a batch run in a window, how and when, so that the weight scheduled is as large as
// possible; among equal weights the smaller sum of completion times.
//
// Primal-dual: jobs by weight per GPU-slot, each in its cheapest place at prices that rise with
// what is taken, if it is worth that; then whoever still fits; then everything moves as far left as
// it goes. O(jobs x configurations x window). Exact: branch and bound over the orders of starts,
// from the primal-dual answer on, for few jobs; it stops at a number of steps, so that a pass ends,
// and the answer is then the best one found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/aonline/room.h"

namespace berth::aonline {

struct BatchJob {
  double weight = 1;
  std::vector<Configuration> ways;
};

struct Choice {
  std::size_t way = 0;  // of the job's configurations
  std::int64_t start = 0;
  friend bool operator==(const Choice&, const Choice&) = default;
};

struct BatchPlan {
  std::vector<std::optional<Choice>> choices;  // by job
  double weight = 0;
  std::int64_t completions = 0;  // sum over the chosen
};

struct BatchOptions {
  std::size_t exact_jobs = 8;   // at most so many are solved exactly
  std::int64_t steps = 20'000;  // of branch and bound
};

[[nodiscard]] BatchPlan plan_batch(const Room& room, const std::vector<BatchJob>& jobs,
                                   const BatchOptions& options);
[[nodiscard]] BatchPlan plan_by_prices(Room room, const std::vector<BatchJob>& jobs);
/// At least as good as `known`.
[[nodiscard]] BatchPlan plan_exactly(const Room& room, const std::vector<BatchJob>& jobs,
                                     BatchPlan known, std::int64_t steps);

}  // namespace berth::aonline
