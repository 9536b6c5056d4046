#include "apps/history_trace.h"

#include <fmt/format.h>

namespace berth {

namespace {

TraceStatus status_of(LiveState state) {
  switch (state) {
    case LiveState::Completed: return TraceStatus::Completed;
    case LiveState::Cancelled: return TraceStatus::Killed;
    default: return TraceStatus::Failed;
  }
}

TraceJob trace_job(const client::JobRow& row, Names& names) {
  const JobSpec& spec = *row.spec;
  TraceJob job;
  static_cast<JobRequest&>(job) =
      request_of(spec, row.number, Time{Duration{row.submitted}}, names);
  job.duration = seconds_to_duration(row.run_seconds);
  // What a policy could have believed: the user's guess, or else the limit.
  job.estimate = said_duration(spec);
  job.status = status_of(row.state);
  if (row.state == LiveState::NodeFailed) job.failure = FailureKind::Infrastructure;
  if (spec.deadline) {
    const Time deadline{std::chrono::seconds(*spec.deadline)};
    if (deadline >= job.submit) job.deadline = deadline;
    job.soft_deadline = spec.soft_deadline;
  }
  return job;
}

}  // namespace

Trace trace_of_history(const std::vector<client::JobRow>& jobs) {
  Trace trace;
  trace.source = "history";
  trace.format = "berth";
  std::size_t never_ran = 0;
  for (const client::JobRow& row : jobs) {
    if (row.started == 0 || row.run_seconds <= 0) {
      ++never_ran;
      continue;
    }
    trace.jobs.push_back(trace_job(row, trace.names));
  }
  if (never_ran > 0) trace.notes.push_back(fmt::format("left out: {} jobs never ran", never_ran));
  trace.normalise();
  return trace;
}

}  // namespace berth
