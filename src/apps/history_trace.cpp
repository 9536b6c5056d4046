#include "apps/history_trace.h"

#include <fmt/format.h>

namespace berth {

namespace {

TraceStatus status_of(client::JobState state) {
  switch (state) {
    case client::JobState::Completed: return TraceStatus::Completed;
    case client::JobState::Cancelled: return TraceStatus::Killed;
    default: return TraceStatus::Failed;
  }
}

TraceJob trace_job(const client::JobRow& row, Names& names) {
  const JobSpec& spec = row.spec;
  TraceJob job;
  job.id = names.intern(std::to_string(row.number));
  job.submit = Time{Duration{row.submitted}};
  job.gpus = std::max(1, spec.gpus);
  job.gpus_min = spec.gpus_min;
  job.gpus_max = spec.gpus_max;
  job.gpu_milli = spec.gpus == 0 ? 0 : spec.gpu_milli;
  job.cpus_milli = spec.cpus * 1'000;
  job.memory_mib = spec.memory_mib;
  job.batch_size = spec.batch_size;
  job.iterations = spec.iterations;
  job.priority = spec.priority;
  job.weight = static_cast<float>(spec.weight);
  job.kind = spec.kind;
  job.user = names.intern(spec.user);
  job.group = names.intern(spec.group);
  job.queue = names.intern(spec.queue);
  job.name = names.intern(spec.name);
  job.model = names.intern(spec.model);
  job.study = names.intern(spec.study);
  job.gpu_type = names.intern(spec.gpu_type);
  job.duration = seconds_to_duration(row.run_seconds);
  // What a policy could have believed: the user's guess, or else the limit.
  job.estimate = std::chrono::seconds(spec.estimate > 0 ? spec.estimate : spec.time_limit);
  job.status = status_of(row.state);
  if (row.state == client::JobState::NodeFailed) job.failure = FailureKind::Infrastructure;
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
