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
#include "policies/kit/pass.h"

namespace berth {

/// Smaller gives way first: lower priority, then later start, then later submit and id.
struct VictimKey {
  std::int32_t priority = 0;
  Time started;
  JobId job;
  friend std::strong_ordering operator<=>(const VictimKey& a, const VictimKey& b) noexcept {
    if (a.priority != b.priority) return a.priority <=> b.priority;
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
    rows_[key.job] = {.key = key, .group = group, .pool = pool, .gpus = gpus};
    put(key.job, pool);
  }
  void remove(JobId job) {
    Row& row = rows_[job];
    set(row.group, row.pool).erase(row.key);
    used_[row.group] -= row.gpus;
    row.member = false;
    --size_;
  }
  /// As part of the plan, undone with it: the job gives way.
  void give_way(Plan& plan, JobId job) {
    const PoolId pool = rows_[job].pool;
    remove(job);
    plan.on_rollback([this, job, pool] { put(job, pool); });
  }
  /// It runs again after all, perhaps in another pool.
  void come_back(Plan& plan, JobId job) {
    put(job, plan.pool_of(job));
    plan.on_rollback([this, job] { remove(job); });
  }

  [[nodiscard]] bool contains(JobId job) const noexcept { return rows_[job].member; }
  [[nodiscard]] const Row& row(JobId job) const noexcept { return rows_[job]; }
  [[nodiscard]] std::int64_t used(std::uint32_t group) const noexcept { return used_[group]; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
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
  /// With what its row has kept of it.
  void put(JobId job, PoolId pool) {
    Row& row = rows_[job];
    row.pool = pool;
    row.member = true;
    set(row.group, pool).insert(row.key, row.gpus);
    used_[row.group] += row.gpus;
    ++size_;
  }
  [[nodiscard]] RankedSet<VictimKey>& set(std::uint32_t group, PoolId pool) {
    return sets_[group * pools_ + pool.value];
  }
  std::size_t pools_ = 0;
  std::size_t size_ = 0;
  std::vector<RankedSet<VictimKey>> sets_;  // by group and pool
  std::vector<std::int64_t> used_;          // by group
  Column<JobId, Row> rows_;                 // kept after a job left, so that it can be put back
};

class RoomMaker {
 public:
  /// Starts the job in place of others. `next()` names the next victim that may be taken (`running`
  /// then tells how much its group still has) or nothing; `is_fair()` judges the result. False:
  /// nothing changed.
  template <class Next, class IsFair>
  [[nodiscard]] bool try_make_room(Plan& plan, RunningJobs& running, JobId job, Reason reason,
                                   Next next, IsFair is_fair) {
    return attempt(plan, [&] {
      victims_.clear();
      while (!plan.try_start(job)) {
        const VictimKey* victim = next();
        if (victim == nullptr) return false;
        victims_.push_back(victim->job);
        plan.preempt(victims_.back(), reason);
        running.give_way(plan, victims_.back());  // `victim` dies here
      }
      spare(plan, running, reason);
      return is_fair();
    });
  }
  /// Who lost its devices in the last success, in the order in which they were taken.
  [[nodiscard]] std::span<const JobId> victims() const noexcept { return victims_; }

 private:
  /// A victim whose own devices went to the newcomer may move to others: still better than waiting.
  void spare(Plan& plan, RunningJobs& running, Reason reason) {
    for (std::size_t i = victims_.size(); i-- > 0;) {
      if (plan.try_start(victims_[i], reason)) running.come_back(plan, victims_[i]);
    }
    std::erase_if(victims_, [&](JobId victim) { return plan.holds(victim); });
  }

  std::vector<JobId> victims_;
};

}  // namespace berth
