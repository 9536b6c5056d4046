// What each arbiter keeps: the jobs that wait with it, kind by kind, the ends of the leases it has
// granted, and whether anything has changed that makes another sale worth while. Every pod has an
// arbiter and so has the root. A job belongs to one of them: the one whose lease it holds, or with
// which it waits. Every change costs O(log n).
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/view.h"
#include "policies/agents/pods.h"
#include "policies/kit/pass.h"

namespace berth::agents {

struct Arbiter {
  std::map<KindId, std::set<JobId>> waiting;  // no kind is empty
  std::size_t waiting_jobs = 0;
  std::set<std::pair<Time, JobId>> ends;  // of leases
  std::vector<JobId> held_back;  // heads that fit by numbers and found no place close enough
  bool changed = false;          // devices came back, or somebody new waits
  Time next_round = kNever;      // when the heads held back may settle for less
  Time next_emptying{};          // not before that something is moved for their sake

  [[nodiscard]] bool has_ended_lease(Time now) const {
    return !ends.empty() && ends.begin()->first <= now;
  }
};

class Arbiters {
 public:
  void begin(const ClusterState& state, std::int64_t pod_devices);

  [[nodiscard]] const Pods& pods() const noexcept { return pods_; }
  /// Of all pods and, last, the root.
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] Arbiter& operator[](PodId pod) noexcept { return all_[pod]; }
  [[nodiscard]] Arbiter& root() noexcept { return all_[pods_.root()]; }
  [[nodiscard]] bool anybody_waits() const noexcept { return waiting_jobs_ > 0; }
  [[nodiscard]] PodId pod_of(JobId job) const noexcept { return rows_[job].pod; }

  [[nodiscard]] bool waits_with(const View& view, JobId job, PodId pod) const;

  /// A new job, with its home arbiter.
  void arrive(const View& view, JobId job);
  /// With the arbiter whose lease it had; who held devices of several pods goes home.
  void wait(const View& view, JobId job);
  /// Waits with another arbiter from now on.
  void move_to(const View& view, JobId job, PodId pod);
  /// It has devices of this pod for so long; it waits no more.
  void grant(const View& view, JobId job, PodId pod, Duration lease);
  /// The same lease, on devices of this pod now.
  void transfer(JobId job, PodId pod);
  void end_lease(JobId job);
  /// Neither waits nor holds.
  void leave(const View& view, JobId job);
  /// Leases that have ended and that nobody wanted go on.
  void renew_ended(const View& view, Duration lease);

  /// Devices of this pod came back; of the root's all pods may have some.
  void mark_changed(PodId pod);
  [[nodiscard]] bool has_rested(JobId job, Time now, Duration pause) const noexcept {
    return now - rows_[job].moved >= pause;
  }
  void note_move(JobId job, Time now) noexcept { rows_[job].moved = now; }
  /// Of all arbiters, by id.
  void holders(std::vector<JobId>& jobs) const;

 private:
  struct Row {
    PodId pod;
    Time end = kNever;  // of its lease; kNever: holds none
    Time moved{Duration::min() / 2};
  };
  Row& row(JobId job);
  void enqueue(const View& view, JobId job);
  void dequeue(const View& view, JobId job);

  Pods pods_;
  Column<PodId, Arbiter> all_;
  Column<JobId, Row> rows_;
  std::size_t waiting_jobs_ = 0;
};

}  // namespace berth::agents
