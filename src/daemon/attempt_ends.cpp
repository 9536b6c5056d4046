#include "daemon/attempt_ends.h"

#include <algorithm>

namespace berth {

namespace {

double held_seconds(const ExitRecord* exit, const Attempt& attempt, Time until) {
  if (exit != nullptr && exit->begun_clock > 0 && exit->ended_clock >= exit->begun_clock)
    return static_cast<double>(exit->ended_clock - exit->begun_clock) * 1e-6;
  if (exit != nullptr && !exit->was_started) return 0;
  return to_seconds(std::max(until, attempt.since) - attempt.since);
}

/// What is known of an attempt that has begun and left no record of its end: seen by us, or found
/// after a restart.
enum class Seen : std::uint8_t { Now, Later };
std::string story_of(const Finding& finding, Seen seen) {
  const std::string what =
      finding.found == Found::Void ? "its files in the run directory are gone" : finding.why;
  if (finding.was_alive) return what + "; it ran until its processes were ended";
  return what + (seen == Seen::Now ? "; its processes went with it"
                                   : "; how and when it ended is not known");
}

}  // namespace

Verdict AttemptEnds::of_exit(const LedgerJob& job, const Attempt& attempt, const ExitRecord& exit) {
  return judge(*job.spec, attempt.ending, exit, job.failures);
}

Verdict AttemptEnds::of_lost(const LedgerJob& job, const Attempt& attempt, const Finding& finding) {
  const bool never_ran = finding.found == Found::Void && !attempt.is_running && !finding.was_alive;
  if (never_ran) return of_failed_launch(attempt, finding.why);
  return judge_lost(*job.spec, attempt.ending, story_of(finding, Seen::Now), losses_[job.number]++);
}

Verdict AttemptEnds::of_failed_launch(const Attempt& attempt, const std::string& why) {
  constexpr std::int32_t kNeverGivenUp = 4;  // its pause is the longest
  const std::int32_t failures = launch_failures_[attempt.job]++;
  return judge_unlaunched(
      attempt.ending, why,
      parts_.rules.is_queue_elsewhere ? std::min(failures, kNeverGivenUp) : failures);
}

AttemptEnds::FoundEnd AttemptEnds::of_found(const LedgerJob& job, const Attempt& attempt,
                                            const Finding& finding, Time oldest) {
  if (finding.found == Found::Ended) return {of_exit(job, attempt, *finding.exit)};
  if (finding.found == Found::Void && !finding.was_alive) {
    // Nobody holds its claim: it was never made, or somebody removed it with the run directory.
    if (!seen_to_run_ && parts_.seen_to_run) seen_to_run_ = parts_.seen_to_run(oldest);
    if (!seen_to_run_ || !seen_to_run_->contains(attempt.id)) return {judge_void(attempt.ending)};
  }
  // It ended somewhere between the last word of the life before and now. Nobody is charged for what
  // nobody knows.
  return {judge_lost(*job.spec, attempt.ending, story_of(finding, Seen::Later)),
          finding.was_alive ? std::nullopt : parts_.last_known};
}

std::optional<FailureKind> AttemptEnds::asks_policy(const LedgerJob* job, const Verdict& verdict,
                                                    const ExitRecord* exit, Ending ending) const {
  // A policy knows only those that hold devices.
  if (job != nullptr && job->spec->gpus == 0) return std::nullopt;
  const bool has_run = exit != nullptr && exit->was_started;
  const bool failed =
      (verdict.outcome == Outcome::Failed || verdict.outcome == Outcome::OutOfMemory) && has_run;
  const bool was_lost =
      verdict.outcome == Outcome::NodeFailed && job != nullptr && job->spec->requeue;
  if (!parts_.rules.policy_retries || parts_.rules.is_queue_elsewhere ||
      ending != Ending::ByItself || (!failed && !was_lost))
    return std::nullopt;
  return failed ? failure_of(*exit) : FailureKind::Infrastructure;
}

std::optional<JobNumber> AttemptEnds::first_asked() const {
  if (asked_.empty()) return std::nullopt;
  return asked_.begin()->first;
}

std::optional<AttemptEnds::Asked> AttemptEnds::take_answered(JobNumber job,
                                                             std::optional<bool> again) {
  auto found = asked_.extract(job);
  if (found.empty()) return std::nullopt;
  Asked asked = std::move(found.mapped());
  if (again) {
    if (asked.exit) asked.verdict.why = how_it_ended(*asked.exit);
    if (*again) asked.verdict.why += "; the policy tries it again";
    asked.verdict.is_final = !*again;
    asked.verdict.pause = {};
  }
  return asked;
}

EndRecord AttemptEnds::record(const Attempt& attempt, const Verdict& verdict,
                              const ExitRecord* exit, std::optional<Time> until) const {
  EndRecord record;
  record.job = attempt.job;
  record.attempt = attempt.id;
  record.outcome = verdict.outcome;
  record.is_final = verdict.is_final;
  if (exit != nullptr) {
    record.exit_code = exit->exit_code;
    record.signal = exit->signal;
    record.cpu_seconds = exit->cpu_seconds;
    record.max_rss_kib = exit->max_rss_kib;
    record.steps = exit->steps;
  }
  double held = 0;
  if (verdict.outcome != Outcome::NotStarted) {
    held = held_seconds(exit, attempt, until.value_or(parts_.clock.now()));
    if (exit != nullptr)
      record.suspended_seconds =
          std::clamp(static_cast<double>(exit->suspended_micros) * 1e-6, 0.0, held);
    record.run_seconds = held - record.suspended_seconds;
    // Who is suspended keeps its devices.
    record.gpu_seconds = std::max(0.0, held * attempt.gpus + attempt.extra_gpu_seconds);
  }
  if (parts_.joules)
    record.joules = parts_.joules(attempt.job, attempt.since + seconds_to_duration(held));
  record.why = verdict.why;
  return record;
}

void AttemptEnds::ended(JobNumber job, const Verdict& verdict) {
  asked_.erase(job);
  if (verdict.is_final) launch_failures_.erase(job);
  const bool is_lost = verdict.outcome == Outcome::NodeFailed && !verdict.is_final;
  if (!is_lost) losses_.erase(job);
}

}  // namespace berth
