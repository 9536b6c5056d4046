// What the agents of jobs know and reckon: how fast their job runs where, how badly off it is with
// and without devices, how far apart it accepts them. An agent looks at its own job and at what
// waiting for a level has cost jobs of its size so far; it never sees other jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/policy.h"
#include "perf/locality.h"
#include "policies/agents/auction.h"
#include "policies/agents/options.h"
#include "policies/kit/beliefs.h"
#include "policies/kit/memo.h"

namespace berth::agents {

/// What an agent knows of its own job.
struct SelfView {
  double elapsed = 0;                 // seconds since it was submitted
  double left = 0;                    // seconds of work left at the reference placement
  double ideal = 1;                   // seconds it would take alone there
  std::optional<double> to_deadline;  // seconds from now; none or passed: no hurry
};

class JobAgents {
 public:
  explicit JobAgents(const Options& options) : options_(options) {}

  [[nodiscard]] SelfView self_of(const View& view, JobId job) const;
  /// How much longer it takes with its devices so far apart than as close together as it gets.
  [[nodiscard]] double slowdown_at(const View& view, JobId job, PoolId pool, Level level) const {
    const std::int32_t gpus = view.gpus(job);
    return believed_rate(view, job, pool, gpus) / believed_rate(view, job, pool, gpus, level);
  }
  [[nodiscard]] LocalityLabel label_of(const View& view, JobId job);
  /// The highest level it accepts now: by the label of its kind at first, one level more while the
  /// way costs less than the wait. Its own wait counts as well as that of others like it, so nobody
  /// waits for a place that never comes.
  [[nodiscard]] Level accepted_level(const View& view, JobId job, PoolId pool,
                                     const TopologyIndex& index);
  /// Seconds it loses at most by never getting this level: what is left of the wait until it goes
  /// one up, and what the rest of its run loses there. None: there is nothing above.
  [[nodiscard]] std::optional<double> worth_of_level(const View& view, JobId job, PoolId pool,
                                                     Level level) const;
  /// It starts on this level now; only first starts say how long one waits for a level.
  void note_wait(const View& view, JobId job, Level level);

  /// How badly off its job is with the devices it asks for and without, in the currency of the
  /// cluster's policy: lower is better, always positive. Without any it is as badly off as if it
  /// got them one lease later.
  [[nodiscard]] Bidder bidder_of(const View& view, JobId job, PoolId pool) const;
  /// By what the worst-off are found who see an offer; larger is worse. Under jct the shortest job
  /// is hurt most by waiting, under throughput the one that would run best; under fairness and
  /// deadline it is the badness itself.
  [[nodiscard]] double hardship_of(const Bidder& bidder) const;

 private:
  [[nodiscard]] double wait_for(const View& view, JobId job, Level level) const;

  const Options& options_;
  std::map<std::pair<std::int32_t, Level>, double> waits_;  // smoothed, by GPUs and level reached
  Memo<KindId, LocalityLabel> labels_;
};

}  // namespace berth::agents
