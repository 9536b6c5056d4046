// Running jobs of each pool by the time at which they are believed to end, with their GPUs: "when
// will x more GPUs be free" is a prefix search. What a start really cost is learnt at the next pass
// (refresh).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/view.h"
#include "policies/common/ranked_set.h"

namespace berth {

struct EndKey {
  Time at;
  JobId job;
  friend auto operator<=>(const EndKey&, const EndKey&) = default;
};

class ExpectedEnds {
 public:
  void begin(const View& view) {
    pools_.resize(view.cluster.pools());
    where_.resize(view.jobs.size());
  }
  void add(const View& view, PoolId pool, JobId job) {
    put(pool, job, view.now + std::max(Duration::zero(), view.estimated_left(job)), view.gpus(job));
    fresh_.push_back(job);
  }
  void remove(JobId job) {
    if (!where_[job.value].member) return;
    pools_[where_[job.value].pool.value].erase({where_[job.value].at, job});
    where_[job.value].member = false;
  }
  /// Corrects the ends of jobs started by the last pass: they may have begun later or run slower.
  /// True: some have moved.
  bool refresh(const View& view) {
    bool moved = false;
    for (const JobId job : fresh_) {
      if (!where_[job.value].member || !view.jobs.is_running(job)) continue;
      const Duration left = std::max(Duration::zero(), view.estimate(job) - view.jobs.work[job]);
      if (view.jobs.rate[job].is_zero()) continue;  // held back: nobody knows
      const Time at = view.jobs.work_from[job] + view.jobs.rate[job].time_for(left);
      if (at == where_[job.value].at) continue;
      const PoolId pool = where_[job.value].pool;
      remove(job);
      put(pool, job, at, view.gpus(job));
      moved = true;
    }
    fresh_.clear();
    return moved;
  }
  /// It turned out faster or slower: its end is looked at with those of the last pass.
  void has_changed(JobId job) {
    if (where_[job.value].member) fresh_.push_back(job);
  }
  [[nodiscard]] const RankedSet<EndKey>& pool(PoolId pool) const noexcept {
    return pools_[pool.value];
  }
  [[nodiscard]] std::size_t pools() const noexcept { return pools_.size(); }

 private:
  struct Where {
    Time at;
    PoolId pool;
    bool member = false;
  };
  void put(PoolId pool, JobId job, Time at, std::int64_t gpus) {
    where_[job.value] = {at, pool, true};
    pools_[pool.value].insert({at, job}, gpus);
  }
  std::vector<RankedSet<EndKey>> pools_;
  std::vector<Where> where_;  // by JobId
  std::vector<JobId> fresh_;
};

}  // namespace berth
