// What is promised to jobs with a deadline: admission, and what becomes of promises as estimates
// and capacity change. The only owner of the lease plans, one per pool. Which jobs hold devices is
// in roster.h.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/chronus/lease_plan.h"
#include "policies/chronus/options.h"
#include "policies/common/buddy_servers.h"

namespace berth::chronus {

/// There are no nodes, only totals: leases are counted and not placed in blocks.
[[nodiscard]] inline bool is_counted(const View& view) noexcept {
  return view.cluster.mode() == ClusterState::Mode::Count;
}

class Promises {
 public:
  Promises(const Options& options, const Rounds& terms) : options_(options), terms_(terms) {}
  void begin(const View& view);

  /// Promises leases by its deadline, or by a later end if that is soft. A job without a deadline
  /// gets no promise; one whose deadline cannot be met is refused, or gets none.
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job);
  /// Adapts the leases to the work left: a job that ran on idle GPUs needs fewer, a slow one more.
  /// False: more cannot be had; the promise is unchanged.
  [[nodiscard]] bool refresh(const View& view, JobId job);
  /// Replaces the promise by the next later one that can be kept; false: none can, and the promise
  /// is broken.
  [[nodiscard]] bool put_off(const View& view, JobId job);
  void forget(JobId job);
  /// Servers came or went. Answers the jobs whose promises are broken for that, newest first.
  [[nodiscard]] std::vector<JobId> change_capacity(const View& view, PoolId pool);
  /// Terms before this one are past.
  void advance(Term first);

  /// Jobs with a promise, ascending.
  [[nodiscard]] const std::set<JobId>& jobs() const noexcept { return jobs_; }
  [[nodiscard]] bool has(JobId job) const noexcept { return rows_[job].is_promised; }
  [[nodiscard]] bool is_broken(JobId job) const noexcept { return rows_[job].is_broken; }
  /// Of a promise: in which pool, and before which term its leases are.
  [[nodiscard]] PoolId pool_of(JobId job) const noexcept { return rows_[job].pool; }
  [[nodiscard]] Term end_of(JobId job) const noexcept { return rows_[job].end; }

  [[nodiscard]] std::uint32_t pools() const noexcept {
    return static_cast<std::uint32_t>(pools_.size());
  }
  [[nodiscard]] LeasePlan& plan(PoolId pool) noexcept { return pools_[pool].plan; }
  [[nodiscard]] const LeasePlan& plan(PoolId pool) const noexcept { return pools_[pool].plan; }
  [[nodiscard]] const BuddyServers& servers(PoolId pool) const noexcept {
    return pools_[pool].servers;
  }

 private:
  struct Row {
    bool is_promised = false;
    bool is_broken = false;  // was promised what cannot be kept
    PoolId pool;
    Term end = 0;
  };
  struct Pool {
    BuddyServers servers;
    LeasePlan plan;
  };
  [[nodiscard]] Term end_by(Time deadline) const noexcept;
  [[nodiscard]] Term last_end(const View& view, JobId job) const;
  [[nodiscard]] std::int64_t leases_needed(const View& view, JobId job, PoolId pool) const;
  [[nodiscard]] LeaseRequest request(const View& view, JobId job, PoolId pool, Term end) const;
  [[nodiscard]] Verdict try_promise(const View& view, JobId job, Term end);
  [[nodiscard]] bool try_from(const View& view, JobId job, Term end);
  [[nodiscard]] Refusal refusal(const View& view, JobId job, Verdict verdict) const;
  [[nodiscard]] std::int64_t capacity(const View& view, PoolId pool) const;

  const Options& options_;
  const Rounds& terms_;
  Column<PoolId, Pool> pools_;
  Column<JobId, Row> rows_;
  std::set<JobId> jobs_;
};

}  // namespace berth::chronus
