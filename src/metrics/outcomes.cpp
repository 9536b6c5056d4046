// One row per job, as the engine left it, and the number of neighbours that finish-time fairness
// needs. That number is an integral over time, computed for all jobs from two sorted lists instead
// of a walk per job.

#include "metrics/outcomes.h"

#include <algorithm>
#include <array>

#include "base/int128.h"

namespace berth {

namespace {

constexpr double kShortestCounted = 10;  // seconds: the usual bound of the bounded slowdown

struct StatusName {
  JobState state;
  std::string_view text;
};
constexpr std::array kStatusNames{
    StatusName{JobState::Unknown, "unknown"},   StatusName{JobState::Waiting, "waiting"},
    StatusName{JobState::Running, "running"},   StatusName{JobState::Completed, "completed"},
    StatusName{JobState::Failed, "failed"},     StatusName{JobState::Cancelled, "cancelled"},
    StatusName{JobState::Rejected, "rejected"},
};

}  // namespace

std::string_view status_text(JobState state) noexcept {
  const auto found = std::ranges::find(kStatusNames, state, &StatusName::state);
  return found == kStatusNames.end() ? "unknown" : found->text;
}

std::optional<JobState> status_from(std::string_view text) noexcept {
  const auto found = std::ranges::find(kStatusNames, text, &StatusName::text);
  if (found == kStatusNames.end()) return std::nullopt;
  return found->state;
}

std::optional<double> JobOutcome::slowdown() const noexcept {
  if (work <= Duration::zero()) return std::nullopt;
  return to_seconds(jct()) / to_seconds(work);
}

double JobOutcome::bounded_slowdown() const noexcept {
  return std::max(1.0, to_seconds(jct()) / std::max(to_seconds(work), kShortestCounted));
}

std::optional<double> JobOutcome::ftf(double cluster_gpus) const noexcept {
  if (work <= Duration::zero() || cluster_gpus <= 0) return std::nullopt;
  const double slowed =
      std::max(1.0, neighbours * gpus / cluster_gpus);  // a gang of g on 1/N of the devices
  return to_seconds(jct()) / (to_seconds(work) * slowed);
}

std::optional<double> JobOutcome::rho() const noexcept {
  if (work <= Duration::zero()) return std::nullopt;
  return to_seconds(jct()) / (to_seconds(work) * neighbours);
}

Outcomes outcomes_of(const Engine& engine, const Trace& trace) {
  const JobTable& table = engine.jobs();
  Outcomes result;
  result.names = trace.names;
  result.rows.resize(trace.jobs.size());
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    const JobId id{i};
    JobOutcome& row = result.rows[i];
    row.id = job.id;
    row.user = job.user;
    row.group = job.group;
    row.queue = job.queue;
    row.model = job.model;
    row.state = table.state[id];
    row.gpus = devices_of(job);
    row.submit = job.submit;
    if (table.first_start[id] != kNever) row.start = table.first_start[id];
    // A rejected job has a time at which it left, but it never finished anything.
    if (table.finished[id] != kNever && row.state != JobState::Rejected)
      row.finish = table.finished[id];
    if (row.finish && row.start && *row.start > *row.finish)
      row.start.reset();  // cancelled before its devices were free
    row.run_time = table.attained(id, engine.now());
    row.overhead = table.overhead[id];
    row.duration = job.duration;
    row.work = table.work_done(id, engine.now());
    row.deadline = job.deadline;
    row.soft_deadline = job.soft_deadline;
    row.preemptions = table.preemptions[id];
    row.migrations = table.migrations[id];
    row.lost_attempts = table.failures[id];
    row.suspensions = table.suspensions[id];
    row.retries = table.retries[id];
    row.wasted = table.wasted[id];
    row.service = table.service[id];
  }
  for (const RejectedJob& rejected : engine.rejected()) {
    result.rows[rejected.job.value].reason = result.names.intern(rejected.reason);
  }
  count_neighbours(result.rows);
  return result;
}

namespace {

/// The integral up to t of "how many of these moments have passed", for ascending moments and t.
class PassedIntegral {
 public:
  explicit PassedIntegral(std::vector<Time> moments) : moments_(std::move(moments)) {
    std::ranges::sort(moments_);
    sums_.reserve(moments_.size() + 1);
    sums_.push_back(0);
    for (const Time moment : moments_)
      sums_.push_back(sums_.back() + moment.time_since_epoch().count());
  }
  [[nodiscard]] Int128 up_to(Time t) const {
    const auto passed =
        static_cast<std::size_t>(std::ranges::upper_bound(moments_, t) - moments_.begin());
    return Int128{t.time_since_epoch().count()} * static_cast<std::int64_t>(passed) - sums_[passed];
  }

 private:
  std::vector<Time> moments_;
  std::vector<Int128> sums_;
};

}  // namespace

// Jobs in the system at t = came by t - went by t; the mean over [submit, finish] is the difference
// of its integral, divided by the span. The job itself is among them.
void count_neighbours(std::vector<JobOutcome>& rows) {
  std::vector<Time> submits;
  std::vector<Time> finishes;
  for (const JobOutcome& row : rows) {
    if (row.state == JobState::Rejected || row.state == JobState::Unknown) continue;
    submits.push_back(row.submit);
    if (row.finish) finishes.push_back(*row.finish);
  }
  const PassedIntegral came{std::move(submits)};
  const PassedIntegral went{std::move(finishes)};
  const auto job_time = [&](Time t) { return came.up_to(t) - went.up_to(t); };
  for (JobOutcome& row : rows) {
    row.neighbours = 1;
    if (!row.ran_to_an_end() || row.jct() <= Duration::zero()) continue;
    row.neighbours = static_cast<double>(job_time(*row.finish) - job_time(row.submit)) /
                     static_cast<double>(row.jct().count());
  }
}

}  // namespace berth
