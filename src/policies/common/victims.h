// Making room by preemption, once for all policies that do it: running jobs in the order in which
// they would give way, and the rule by which a minimal set of them does (baselines 6.4). Victims
// are taken one by one until the job fits; then, last taken first, every victim that still fits is
// spared; then the policy says whether the result is fair, and if not nothing has happened.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "core/plan.h"
#include "policies/common/ranked_set.h"

namespace berth {

/// Smaller gives way first: lower class, then later start, then later submit and id.
struct VictimKey {
  std::int32_t klass = 0;
  Time started;
  JobId job;
  friend std::strong_ordering operator<=>(const VictimKey& a, const VictimKey& b) noexcept {
    if (a.klass != b.klass) return a.klass <=> b.klass;
    if (a.started != b.started) return b.started <=> a.started;
    return b.job <=> a.job;
  }
  friend bool operator==(const VictimKey&, const VictimKey&) = default;
};

/// Running jobs by group (a queue, a tenant) and pool, with the GPUs each group holds.
class RunningJobs {
 public:
  struct Row {
    VictimKey key;
    std::uint32_t group = 0;
    PoolId pool;
    std::int32_t gpus = 0;
    bool member = false;
  };

  void begin(std::size_t groups, std::size_t pools, std::size_t jobs) {
    pools_ = pools;
    sets_.resize(groups * pools);
    used_.resize(groups);
    rows_.resize(jobs);
  }
  void add(std::uint32_t group, PoolId pool, const VictimKey& key, std::int32_t gpus) {
    rows_[key.job.value] = {.key = key, .group = group, .pool = pool, .gpus = gpus, .member = true};
    set(group, pool).insert(key, gpus);
    used_[group] += gpus;
    ++size_;
  }
  void remove(JobId job) {
    Row& row = rows_[job.value];
    set(row.group, row.pool).erase(row.key);
    used_[row.group] -= row.gpus;
    row.member = false;
    --size_;
  }
  [[nodiscard]] bool contains(JobId job) const noexcept { return rows_[job.value].member; }
  [[nodiscard]] const Row& row(JobId job) const noexcept { return rows_[job.value]; }
  [[nodiscard]] std::int64_t used(std::uint32_t group) const noexcept { return used_[group]; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t groups() const noexcept { return used_.size(); }
  [[nodiscard]] std::size_t pools() const noexcept { return pools_; }
  /// Who of the group would give way first in these pools; null: nobody runs there.
  [[nodiscard]] const VictimKey* first(std::uint32_t group, std::span<const PoolId> pools) const {
    const VictimKey* best = nullptr;
    for (const PoolId pool : pools) {
      const auto& members = sets_[group * pools_ + pool.value];
      if (!members.empty() && (best == nullptr || members.front().key < *best))
        best = &members.front().key;
    }
    return best;
  }

 private:
  [[nodiscard]] RankedSet<VictimKey>& set(std::uint32_t group, PoolId pool) {
    return sets_[group * pools_ + pool.value];
  }
  std::size_t pools_ = 0;
  std::size_t size_ = 0;
  std::vector<RankedSet<VictimKey>> sets_;  // by group and pool
  std::vector<std::int64_t> used_;          // by group
  std::vector<Row> rows_;  // by JobId; kept after a job left, so that it can be put back
};

class RoomMaker {
 public:
  /// Starts the job in place of others. `next()` names the next victim that may be taken (`running`
  /// then tells how much its group still has) or nothing; `is_fair()` judges the result. False:
  /// nothing changed.
  template <class Next, class IsFair>
  [[nodiscard]] bool try_make_room(Plan& plan, RunningJobs& running, JobId job, Reason reason,
                                   Next next, IsFair is_fair) {
    const Plan::Mark mark = plan.mark();
    taken_.clear();
    while (!plan.try_start(job)) {
      const VictimKey* victim = next();
      if (victim == nullptr) return give_up(plan, running, mark);
      taken_.push_back({victim->job, false});
      plan.preempt(taken_.back().job, reason);
      running.remove(taken_.back().job);  // `victim` dies here
    }
    spare(plan, running, reason);
    victims_.clear();
    for (const Taken& taken : taken_) {
      if (!taken.spared) victims_.push_back(taken.job);
    }
    return is_fair() || give_up(plan, running, mark);
  }
  /// Who lost its devices in the last success.
  [[nodiscard]] std::span<const JobId> victims() const noexcept { return victims_; }

 private:
  struct Taken {
    JobId job;
    bool spared;
  };
  /// A victim whose own devices went to the newcomer may move to others: still better than waiting.
  void spare(Plan& plan, RunningJobs& running, Reason reason) {
    for (std::size_t i = taken_.size(); i-- > 0;) {
      taken_[i].spared = plan.try_start(taken_[i].job, reason);
      if (taken_[i].spared) put_back(plan, running, taken_[i].job);
    }
  }
  static void put_back(const Plan& plan, RunningJobs& running, JobId job) {
    const RunningJobs::Row row = running.row(job);
    running.add(row.group, plan.pool_of(job), row.key, row.gpus);
  }
  bool give_up(Plan& plan, RunningJobs& running, Plan::Mark mark) {
    for (const Taken& taken : taken_) {
      if (taken.spared) running.remove(taken.job);  // it may stand in another pool than before
    }
    plan.rollback(mark);
    for (const Taken& taken : taken_) put_back(plan, running, taken.job);
    victims_.clear();
    return false;
  }

  std::vector<Taken> taken_;
  std::vector<JobId> victims_;
};

}  // namespace berth
