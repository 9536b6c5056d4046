// What a policy sees: the job table (observations), the cluster, requests, and — only if it
// declared the need — estimates, deadlines, history. Reading what was not declared is a broken
// invariant, so belief cannot leak in by accident and a non-clairvoyant policy is one by
// construction.
//
// A view is a window, not a copy. `now` stands still during a pass. The job table shows the
// executor's world: state, rate and service are those before the pass, whatever was planned since,
// but what a job holds (`jobs.allocation`, `jobs.terms`) and the cluster change with every step of
// the plan. Whoever asks what has been decided in this pass asks the plan. In an open run jobs,
// shapes and kinds come as people submit: a column that is indexed by one of them grows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"
#include "core/cluster_state.h"
#include "core/executor.h"
#include "core/job_table.h"
#include "model/trace.h"
#include "perf/rate_model.h"

namespace berth {

enum class Need : std::uint32_t {
  Nothing = 0,
  RunTime = 1U << 0U,  // an estimate of the whole run time
  Deadline = 1U << 1U,
  History = 1U << 2U,  // service of jobs that have finished in this run
  Reports = 1U << 4U,  // what the training code says of itself: epochs, loss, noise scale
  Profile = 1U << 3U,  // how fast its model runs on which devices, beside which neighbours
};
[[nodiscard]] constexpr Need operator|(Need a, Need b) noexcept {
  return static_cast<Need>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr bool includes(Need all, Need one) noexcept {
  return (static_cast<std::uint32_t>(all) & static_cast<std::uint32_t>(one)) != 0;
}

class View {
 public:
  View(const Trace& trace, const JobTable& table, const ClusterState& state,
       const ShapeTable& shape_table, const KindTable& kind_table,
       const Column<JobId, Duration>& estimates, const RateModel& believed,
       const Executor& executor, Need needs, bool open = false)
      : jobs(table),
        cluster(state),
        shapes(shape_table),
        kinds(kind_table),
        trace_(&trace),
        estimates_(&estimates),
        believed_(&believed),
        executor_(&executor),
        needs_(needs),
        open_(open) {}

  Time now{};
  const JobTable& jobs;
  const ClusterState& cluster;
  const ShapeTable& shapes;
  const KindTable& kinds;

  [[nodiscard]] const JobRequest& request(JobId job) const noexcept {
    return trace_->jobs[job.value];
  }
  [[nodiscard]] std::string_view text(NameId name) const { return trace_->text(name); }
  [[nodiscard]] const Shape& shape(JobId job) const noexcept { return shapes[jobs.shape[job]]; }
  /// Jobs of one kind are alike to the rate model and to placement.
  [[nodiscard]] const Kind& kind(JobId job) const noexcept { return kinds[jobs.kind[job]]; }
  [[nodiscard]] std::int32_t gpus(JobId job) const noexcept { return trace_->jobs[job.value].gpus; }
  /// Jobs are real programs (an open run): a plan declines a size the request does not agree to.
  [[nodiscard]] bool sizes_are_agreed() const noexcept { return open_; }

  /// For how long the rate of a running job was measured on its devices, beside its neighbours.
  /// Zero: it is believed, not tested (see RateBasis). Endless in a simulation: it is the truth.
  [[nodiscard]] Duration measured_over(JobId job) const noexcept {
    if (jobs.basis[job] == RateBasis::Exact) return Duration::max();
    if (jobs.basis[job] != RateBasis::Measured) return Duration::zero();
    return std::max(Duration{1}, now - jobs.basis_from[job]);
  }

  /// Believed total run time at the reference placement.
  [[nodiscard]] Duration estimate(JobId job) const noexcept {
    BERTH_CHECK(includes(needs_, Need::RunTime), "a policy reads only what it declared: duration");
    return (*estimates_)[job];
  }
  /// Believed work left; negative once a job has outlived its estimate.
  [[nodiscard]] Duration estimated_left(JobId job) const noexcept {
    return estimate(job) - jobs.work_done(job, now);
  }
  [[nodiscard]] std::optional<Time> deadline(JobId job) const noexcept {
    BERTH_CHECK(includes(needs_, Need::Deadline), "a policy reads only what it declared: deadline");
    return trace_->jobs[job.value].deadline;
  }
  /// A soft deadline may be missed: what the job is worth falls after it.
  [[nodiscard]] bool deadline_is_soft(JobId job) const noexcept {
    BERTH_CHECK(includes(needs_, Need::Deadline), "a policy reads only what it declared: deadline");
    return trace_->jobs[job.value].soft_deadline;
  }
  /// What a job that has run says of itself; nothing if its training code says nothing.
  [[nodiscard]] std::optional<TrainingReport> report(JobId job) const {
    BERTH_CHECK(includes(needs_, Need::Reports), "a policy reads only what it declared: reports");
    return executor_->report(now, job, jobs);
  }
  /// Appends the loss after each whole epoch from `first` (counted from 0 = untrained) on.
  void losses(JobId job, std::int64_t first, std::vector<double>& losses) const {
    BERTH_CHECK(includes(needs_, Need::Reports), "a policy reads only what it declared: reports");
    executor_->losses(now, job, jobs, first, losses);
  }
  /// GPU-seconds a finished job took.
  [[nodiscard]] double finished_service(JobId job) const noexcept {
    BERTH_CHECK(includes(needs_, Need::History), "a policy reads only what it declared: history");
    BERTH_CHECK(is_over(jobs.state[job]), "history is made of jobs that are over");
    return to_seconds(jobs.service[job]);
  }
  /// How fast jobs are believed to run on which devices, beside which neighbours.
  [[nodiscard]] const RateModel& believed() const noexcept {
    BERTH_CHECK(includes(needs_, Need::Profile), "a policy reads only what it declared: profile");
    return *believed_;
  }
  [[nodiscard]] Need needs() const noexcept { return needs_; }
  /// Whether it can be done here at all; what cannot a plan declines.
  [[nodiscard]] bool can(Ability ability) const noexcept {
    return executor_->capabilities().has(ability);
  }

 private:
  const Trace* trace_;
  const Column<JobId, Duration>* estimates_;
  const RateModel* believed_;
  const Executor* executor_;
  Need needs_;
  bool open_;
};

}  // namespace berth
