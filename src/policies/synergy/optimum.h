// The upper bound that `tune` is judged by: a program that chooses cores and memory of every job as if
// the cluster were one big server: at least the proportional throughput for each, most in sum.
// Exact and slow: for judging, for small clusters, and for the mode `opt` within its node limit.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "policies/synergy/packing.h"
#include "solve/lp.h"

namespace berth::synergy {

struct Optimum {
  SolveStatus status = SolveStatus::Failed;
  std::vector<Share> shares;  // one per job
  double value = 0;           // in GPUs with their proportional share
  double bound = 0;           // no choice is better
};

/// All jobs run; together they must not ask for more GPUs than there are. Starts from the
/// proportional shares, so that there is always an answer.
[[nodiscard]] Result<Optimum> optimum_of(const Axes& axes, std::span<const Server> servers,
                                         std::span<const Job> jobs, const SolveLimits& limits = {});

}  // namespace berth::synergy
