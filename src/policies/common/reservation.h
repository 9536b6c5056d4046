// One promise to the first job in order that has to wait: when, by the estimates, enough running
// jobs will have ended for it (the shadow), and what is left beside it then (extra). Whoever wants
// to go before it asks here: it must be over by then, or use only what is left. Made anew at each
// pass from the expected ends, which are kept here.
//
// Where gangs must be consolidated or cores are limited, the shadow is found by placing the job on
// the future free map, and who outlasts it must keep off the devices it would get.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan.h"
#include "core/view.h"
#include "policies/common/ranked_set.h"

namespace berth {

struct EndKey {
  Time at;
  JobId job;
  friend auto operator<=>(const EndKey&, const EndKey&) = default;
};

/// Running jobs of each pool by the time at which they are believed to end, with their GPUs: "when
/// will x more GPUs be free" is a prefix search. What a start really cost is learnt at the next pass
/// (refresh).
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
    if (!where_[job].member) return;
    pools_[where_[job].pool].erase({where_[job].at, job});
    where_[job].member = false;
  }
  /// Corrects the ends of jobs started by the last pass: they may have begun later or run slower.
  /// True: some have moved.
  bool refresh(const View& view) {
    bool moved = false;
    for (const JobId job : fresh_) {
      if (!where_[job].member || !view.jobs.is_running(job)) continue;
      const Duration left = std::max(Duration::zero(), view.estimate(job) - view.jobs.work[job]);
      if (view.jobs.rate[job].is_zero()) continue;  // held back: nobody knows
      const Time at = view.jobs.work_from[job] + view.jobs.rate[job].time_for(left);
      if (at == where_[job].at) continue;
      const PoolId pool = where_[job].pool;
      remove(job);
      put(pool, job, at, view.gpus(job));
      moved = true;
    }
    fresh_.clear();
    return moved;
  }
  /// It turned out faster or slower: its end is looked at with those of the last pass.
  void has_changed(JobId job) {
    if (where_[job].member) fresh_.push_back(job);
  }
  [[nodiscard]] const RankedSet<EndKey>& pool(PoolId pool) const noexcept { return pools_[pool]; }
  [[nodiscard]] const Column<PoolId, RankedSet<EndKey>>& pools() const noexcept { return pools_; }

 private:
  struct Where {
    Time at;
    PoolId pool;
    bool member = false;
  };
  void put(PoolId pool, JobId job, Time at, std::int64_t gpus) {
    where_[job] = {at, pool, true};
    pools_[pool].insert({at, job}, gpus);
  }
  Column<PoolId, RankedSet<EndKey>> pools_;
  Column<JobId, Where> where_;
  std::vector<JobId> fresh_;
};

class Reservation {
 public:
  void begin(const View& view) { ends_.begin(view); }
  [[nodiscard]] ExpectedEnds& ends() noexcept { return ends_; }

  /// For a job of this shape, that cannot start now.
  void make(const View& view, const Plan& plan, const Shape& shape);
  /// How long a job of this shape that starts now in the pool may run at most; nothing: no limit.
  [[nodiscard]] std::optional<Duration> window(const View& view, const Shape& shape,
                                               PoolId pool) const;
  /// Will the job still run there when the promised time has come?
  [[nodiscard]] bool outlasts(const View& view, PoolId pool, JobId job) const;
  /// Gives a job that outlasts it, and was just started, its part of what is left. False: it took
  /// what is reserved, the start has to be undone.
  [[nodiscard]] bool spares(const View& view, const Plan& plan, JobId job);
  /// When, even if nothing happens, the promise moves or leaves more beside it, so that somebody
  /// may go before it who may not now: jobs outlive their estimates. kNever: it stays as it is.
  [[nodiscard]] Time next_change(const View& view) const;

 private:
  struct Shadow {
    PoolId pool;
    Time at = kNever;
    Time last = kNever;  // when the last job it waits for should end, or should have ended
    std::int64_t extra = 0;
    bool by_map = false;  // `reserved_` says which devices the job will take
  };
  [[nodiscard]] Shadow by_count(const View& view, const Shape& shape, PoolId pool) const;
  [[nodiscard]] Shadow by_map(const View& view, const Plan& plan, const Shape& shape, PoolId pool);

  ExpectedEnds ends_;
  Shadow shadow_;
  /// From when on another pool promises an earlier start than this one, should it come to that.
  struct Rival {
    Time at = kNever;
    bool wins_ties = false;
  };
  std::vector<Rival> rivals_;
  std::vector<Slice> reserved_;
};

}  // namespace berth
