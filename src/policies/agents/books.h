// The books of the arbiters. Each pod's arbiter and the root have their own: the jobs that wait
// there, class by class, the ends of the leases they granted, and whether anything has changed that
// makes another sale worth while. A job's row says whose it is: of whom it holds its lease, or with
// whom it waits. Every entry costs O(log n).
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/view.h"
#include "policies/agents/pods.h"

namespace berth::agents {

/// Jobs that differ in nothing an arbiter looks at.
using ClassKey = std::pair<ShapeId, ProfileId>;
[[nodiscard]] inline ClassKey class_of(const View& view, JobId job) {
  return {view.jobs.shape[job], view.jobs.profile[job]};
}

struct Arbiter {
  std::map<ClassKey, std::set<JobId>> waiting;  // no class is empty
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

class Books {
 public:
  void begin(const ClusterState& state, std::int64_t pod_devices);

  [[nodiscard]] const Pods& pods() const noexcept { return pods_; }
  /// Of all pods and, last, the root.
  [[nodiscard]] std::size_t arbiters() const noexcept { return arbiters_.size(); }
  [[nodiscard]] Arbiter& operator[](PodId pod) noexcept { return arbiters_[pod.value]; }
  [[nodiscard]] Arbiter& root() noexcept { return arbiters_.back(); }
  [[nodiscard]] bool anybody_waits() const noexcept { return waiting_jobs_ > 0; }
  [[nodiscard]] PodId pod_of(JobId job) const noexcept { return rows_[job.value].pod; }

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
    return now - rows_[job.value].moved >= pause;
  }
  void note_move(JobId job, Time now) noexcept { rows_[job.value].moved = now; }
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
  std::vector<Arbiter> arbiters_;
  std::vector<Row> rows_;  // by JobId
  std::size_t waiting_jobs_ = 0;
};

}  // namespace berth::agents
