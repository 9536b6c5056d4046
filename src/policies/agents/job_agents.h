// What the agents of jobs know and reckon: how fast their job runs where, how badly off it is with
// and without devices, how far apart it accepts them. An agent looks at its own job and at what
// waiting for a level has cost jobs of its size so far; it never sees other jobs.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/policy.h"
#include "perf/locality.h"
#include "policies/agents/auction.h"
#include "policies/agents/options.h"

namespace berth::agents {

class JobAgents {
 public:
  explicit JobAgents(const AgentsOptions& options) : options_(options) {}

  [[nodiscard]] SelfView self_of(const View& view, JobId job) const;
  /// Alone with its devices so far apart, against the reference.
  [[nodiscard]] double rate_at(const View& view, JobId job, PoolId pool, Level level) const;
  /// How much longer it takes there than as close together as it gets.
  [[nodiscard]] double slowdown_at(const View& view, JobId job, PoolId pool, Level level) const {
    return best_rate(view, job, pool) / rate_at(view, job, pool, level);
  }
  [[nodiscard]] LocalityLabel label_of(const View& view, JobId job);
  /// The highest level it accepts now: by the label of its class at first, one level more while the
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

  [[nodiscard]] Bidder bidder_of(const View& view, JobId job, PoolId pool) const;
  /// How badly off it is among those that could see an offer; larger is worse.
  [[nodiscard]] double plight_of(const Bidder& bidder) const {
    return plight(options_.value, bidder.bids.front().badness);
  }

 private:
  [[nodiscard]] double best_rate(const View& view, JobId job, PoolId pool) const;
  [[nodiscard]] double wait_for(const View& view, JobId job, Level level) const;

  const AgentsOptions& options_;
  std::map<std::pair<std::int32_t, Level>, double> waits_;  // smoothed, by GPUs and level reached
  std::map<std::pair<ProfileId, std::int32_t>, LocalityLabel> labels_;  // by class and GPUs
};

}  // namespace berth::agents
