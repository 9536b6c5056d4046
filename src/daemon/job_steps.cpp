#include "daemon/job_steps.h"

#include <algorithm>

namespace berth {

namespace {

StepState step_state(std::optional<Outcome> outcome) {
  if (!outcome) return StepState::Running;
  switch (*outcome) {
    case Outcome::Completed: return StepState::Completed;
    case Outcome::Failed: return StepState::Failed;
    case Outcome::OutOfMemory: return StepState::OutOfMemory;
    default: return StepState::Cancelled;  // also at the time limit, which is the job's
  }
}

/// When its processes were gone, which may be long before a scheduler that was away wrote it down.
std::int64_t ended_wall(const AttemptRow& attempt) {
  if (!attempt.run_seconds) return attempt.ended_wall;
  const double held = *attempt.run_seconds + attempt.suspended_seconds;
  return std::min(attempt.ended_wall, attempt.begun_wall + static_cast<std::int64_t>(held * 1e6));
}

/// The script itself: everything in the attempt descends from it, so its use is the whole use.
StepView batch_step(const JobView& job, const AttemptRow& attempt) {
  StepView step;
  step.id = step.name = kBatchStep;
  step.state = step_state(attempt.outcome);
  step.tasks = job.spec->tasks;
  for (const HeldDevices& held : attempt.where) {
    step.devices.insert(step.devices.end(), held.devices.begin(), held.devices.end());
    step.cores.insert(step.cores.end(), held.cores.begin(), held.cores.end());
  }
  // Slurm's have one at least.
  step.cpus = step.cores.empty() ? std::max(1, job.spec->cpus)
                                 : static_cast<std::int32_t>(step.cores.size());
  step.begun = attempt.begun_wall;
  step.ended = ended_wall(attempt);
  step.exit_code = attempt.exit_code;
  step.signal = attempt.signal;
  step.cpu_seconds = attempt.cpu_seconds;
  step.max_rss_kib = attempt.max_rss_kib;
  if (!attempt.outcome) step.pid = job.pid;
  return step;
}

}  // namespace

JobSteps steps_of_job(const JobView& job, const std::vector<AttemptRow>& attempts, KeptSteps kept) {
  JobSteps told{.job = job.number, .directory = std::move(kept.directory)};
  if (attempts.empty()) return told;
  const AttemptRow& last = attempts.back();
  if (job.spec->kind != JobKind::Interactive) told.steps.push_back(batch_step(job, last));
  for (StepView step : last.outcome ? last.steps : kept.steps) {
    // Whatever ran when its job ended has ended with it.
    if (last.outcome && step.ended == 0) step.ended = std::max(step.begun, ended_wall(last));
    told.steps.push_back(std::move(step));
  }
  return told;
}

}  // namespace berth
