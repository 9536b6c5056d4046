// The engine: one round lets time pass, absorbs everything due at that instant, lets the policy
// decide once, writes the decision down and carries it out. The same code drives a simulated year
// and a live day; they differ in the executor. One engine is one thread's business; a thousand fit
// in a process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "core/action.h"
#include "core/cores_lane.h"
#include "core/dispatcher.h"
#include "core/engine_plan.h"
#include "core/executor.h"
#include "core/intake.h"
#include "core/job_accounts.h"
#include "core/node_tuner.h"
#include "core/plan.h"
#include "core/policy.h"
#include "core/power_manager.h"
#include "perf/checkpoints.h"
#include "perf/estimator.h"

namespace berth {

struct EngineParts {
  const Trace& trace;
  const Cluster& cluster;
  Policy& policy;
  Placement& placement;
  Estimator& estimator;
  Executor& executor;
  const RateModel& believed;        // what the scheduler believes of how jobs run
  RunObserver* observer = nullptr;  // may be absent
  NodeTuner* tuner = nullptr;       // may be absent: then a job has the cores it asked for
  PowerManager* power = nullptr;    // may be absent: then nodes stay on unless the policy says so
  std::uint64_t seed = 1;
  /// How much work a job loses with its node: zero keeps everything done so far.
  Duration checkpoint_interval{};
  /// Instead, each job saves as often as its size asks for.
  std::optional<CheckpointRule> checkpoints = {};
  /// The trace is a table of slots that the executor fills as jobs come; a slot is read from its
  /// arrival on. The run may end with jobs left.
  bool open = false;
  /// Jobs without a device are started beside the policy (core/cores_lane.h).
  bool cores_beside = false;
};

struct Progress {
  Time now;
  std::uint64_t events = 0;
  std::size_t arrived = 0;
  std::size_t over = 0;
};

struct RejectedJob {
  JobId job;
  std::string reason;
  bool by_policy = false;  // it fits the cluster, the policy does not want it
};

class Engine {
 public:
  explicit Engine(const EngineParts& parts);

  /// Runs until nothing will ever happen again. An error means that jobs are left that can never
  /// run. An open run ends when its executor says so.
  [[nodiscard]] Result<void> run();
  /// Called about every 65,536 events of a long run.
  void set_progress(std::function<void(const Progress&)> callback) {
    progress_ = std::move(callback);
  }

  [[nodiscard]] const JobTable& jobs() const noexcept { return jobs_; }
  [[nodiscard]] const ShapeTable& shapes() const noexcept { return shapes_; }
  [[nodiscard]] const ClusterState& cluster() const noexcept { return state_; }
  [[nodiscard]] const Column<JobId, Duration>& estimates() const noexcept { return estimates_; }
  /// Devices the job holds; valid until the next pass.
  [[nodiscard]] std::span<const Slice> slices(JobId job) const noexcept {
    return arena_.slices(jobs_.allocation[job]);
  }
  [[nodiscard]] std::span<const RejectedJob> rejected() const noexcept { return rejected_; }
  [[nodiscard]] std::string digest() const { return dispatcher_.digest(); }
  [[nodiscard]] const RateModel& believed() const noexcept { return believed_; }
  /// Jobs of no model that the profiles know: they run by the class default.
  [[nodiscard]] std::size_t jobs_without_profile() const noexcept {
    return intake_->without_profile();
  }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  [[nodiscard]] Time now() const noexcept { return view_.now; }
  /// The job whose event is being absorbed: the one to blame if that throws.
  [[nodiscard]] std::optional<JobId> handling() const noexcept { return handling_; }
  /// The policy does not know of it: it asks for no device.
  [[nodiscard]] bool is_beside(JobId job) const noexcept {
    return cores_beside_ && shapes_[jobs_.shape[job]].gpu_milli == 0;
  }
  /// Some acceptable pool could hold this shape right now.
  [[nodiscard]] bool has_place(const Shape& shape) const;

 private:
  friend class Trial;
  void watch_what_is_needed(ClusterState& state) const;
  void make_intake();
  void tune();
  void absorb_rates();
  void note_change(JobId job);
  void apply(const Event& event);
  void arrive(JobId job);
  enum class RejectedBy : std::uint8_t { Cluster, Policy };
  void reject(JobId job, Refusal refusal, RejectedBy who);
  void end(JobId job, JobState outcome);
  void withdraw(JobId job);
  void depart_killed(std::span<const Action> actions);
  void restore(JobId job, const JobPast& past);
  void find_victims(NodeId node);
  void lose_node(NodeId node);
  void lose_attempt(JobId job, Reason reason);
  [[nodiscard]] bool try_again(const Event& event);
  void release(JobId job);
  void take(const Action& action);
  void decide();
  void tell_departure(JobId job);
  void tell_requeue(JobId job);

  const Trace& trace_;
  Policy& policy_;
  Estimator& estimator_;
  Placement& placement_;
  Executor& executor_;
  const RateModel& believed_;
  RunObserver* observer_;
  NodeTuner* tuner_;
  PowerManager* power_;
  Duration checkpoint_interval_;
  std::optional<CheckpointRule> checkpoints_;
  bool open_;
  bool cores_beside_;

  JobTable jobs_;
  ShapeTable shapes_;
  KindTable kinds_;
  ClusterState state_;
  std::unique_ptr<ClusterState> pristine_;  // of an open run: whether a newcomer could ever fit
  std::optional<Intake> intake_;
  SliceArena arena_;
  JobAccounts accounts_;
  Dispatcher dispatcher_;
  Column<JobId, Duration> estimates_;
  Rng policy_rng_;
  Rng placement_rng_;
  View view_;
  EnginePlan plan_;
  CoresLane lane_;
  std::vector<RejectedJob> rejected_;
  std::optional<JobId> handling_;
  std::function<void(const Progress&)> progress_;
  std::uint64_t events_ = 0;
  std::uint64_t passes_ = 0;
  std::size_t arrived_ = 0;
  std::size_t over_ = 0;
  std::vector<Event> due_;                // scratch
  std::vector<JobId> victims_;            // scratch
  std::vector<RateChange> rate_changes_;  // scratch
  std::vector<NodeId> changed_nodes_;     // since the tuner was last asked; only if there is one
};

}  // namespace berth
