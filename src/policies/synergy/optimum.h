// The upper bound that `tune` is judged by. Program 1 chooses cores and memory of every job as if
// the cluster were one big server: at least the proportional throughput for each, most in sum.
// Program 2 spreads the jobs over the servers as fractions; a corner of it tears few jobs apart.
// Exact and slow: for judging, for small clusters, and for the mode `opt` within its node limit.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "policies/synergy/packing.h"
#include "solve/lp.h"

namespace berth {

struct SynergyOptimum {
  SolveStatus status = SolveStatus::Failed;
  std::vector<SynergyShare> shares;  // one per job
  double value = 0;                  // in GPUs with their proportional share
  double bound = 0;                  // no choice is better
};

/// All jobs run; together they must not ask for more GPUs than there are. Starts from the
/// proportional shares, so that there is always an answer.
[[nodiscard]] Result<SynergyOptimum> synergy_optimum(const SynergyAxes& axes,
                                                     std::span<const SynergyServer> servers,
                                                     std::span<const SynergyJob> jobs,
                                                     const SolveLimits& limits = {});

struct SynergySpread {
  std::vector<double> fractions;  // by job, server: fractions[job * servers + server]
  std::size_t torn = 0;           // jobs on more servers than one
};

/// Fails if the shares do not fit even as fractions.
[[nodiscard]] Result<SynergySpread> spread_over_servers(const SynergyAxes& axes,
                                                        std::span<const SynergyServer> servers,
                                                        std::span<const SynergyJob> jobs,
                                                        std::span<const SynergyShare> shares);

}  // namespace berth
