// Who was promised to be in time, and the share of a pool that keeps each promise. A new promise is
// given only if all others stay kept. Shares are made in order of deadline, slot by slot
// (shares.h); a job that no share can save any more is late and loses its promise.
//
// Shares begin with the slot that starts now or next.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "policies/elasticflow/curves.h"
#include "policies/elasticflow/shares.h"

namespace berth::elasticflow {

class Promises {
 public:
  struct Kept {
    JobId job;
    Share share;
  };
  /// `curves` must outlive this.
  Promises(Duration slot, double slack, Curves& curves)
      : slot_(slot), slack_(slack), curves_(curves) {}
  void begin(std::size_t jobs) { rows_.resize(jobs); }

  /// Promises the job, which has a deadline, to be in time in one of its pools; false: it cannot
  /// be.
  [[nodiscard]] bool try_promise(const View& view, JobId job, Time start);
  [[nodiscard]] bool has(JobId job) const noexcept { return rows_[job].is_promised; }
  [[nodiscard]] PoolId pool(JobId job) const noexcept { return rows_[job].pool; }
  [[nodiscard]] std::size_t size() const noexcept { return by_deadline_.size(); }
  /// It has come, or is over, or goes on without a promise.
  void add(const View& view, JobId job);
  void remove(const View& view, JobId job);
  void withdraw(const View& view, JobId job);

  /// Nodes or jobs came or went: shares are to be made anew.
  void note_change() noexcept { has_changed_ = true; }
  /// The shares of the pool from `start` on: what is left of them, unless something changed or one
  /// turns out too small.
  void renew(const View& view, PoolId pool, Time start);
  void settle() noexcept { has_changed_ = false; }
  /// By renew(): each has at least one stretch; who is late; GPUs free in the first slot; the first
  /// slot in which some share becomes another.
  [[nodiscard]] std::span<const Kept> kept() const noexcept { return kept_; }
  [[nodiscard]] std::span<const JobId> late() const noexcept { return late_; }
  [[nodiscard]] std::int64_t free_now() const noexcept { return free_.now(); }
  [[nodiscard]] Time next_change() const;

  /// Believed work, with slack, at that time if the job goes on as it is until then.
  [[nodiscard]] double work_left(const View& view, JobId job, Time at) const;

 private:
  struct Row {
    bool is_promised = false;
    PoolId pool;  // of its promise
    Share share;  // that kept the promise when it was last looked at
    Time from{};  // since when
  };
  [[nodiscard]] bool make_shares(const View& view, PoolId pool, std::optional<JobId> newcomer);
  [[nodiscard]] bool share_anew(const View& view, PoolId pool, std::optional<JobId> newcomer);
  [[nodiscard]] bool share_as_before(const View& view, PoolId pool, std::optional<JobId> newcomer);
  [[nodiscard]] bool keep_shares(const View& view, PoolId pool);
  [[nodiscard]] std::vector<JobId> promised_in(PoolId pool) const;
  [[nodiscard]] Demand demand(const View& view, JobId job, PoolId pool);
  [[nodiscard]] bool add_share(const View& view, JobId job, PoolId pool);
  [[nodiscard]] std::optional<Share> rest_of_share(const View& view, JobId job);
  void commit();

  Duration slot_;
  double slack_;
  Curves& curves_;
  Column<JobId, Row> rows_;
  std::set<std::pair<Time, JobId>> by_deadline_;
  bool has_changed_ = false;
  Time start_{};  // of the slot that is being planned
  std::vector<Kept> kept_;
  std::vector<JobId> late_;
  FreeGpus free_{0};  // what they leave
};

}  // namespace berth::elasticflow
