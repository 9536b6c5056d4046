// How attempts leave the supervisor: by an event, or found gone after a restart.
#include <algorithm>
#include <bit>

#include "daemon/job_supervisor.h"

#include "base/device_mask.h"

namespace berth {

namespace {

constexpr std::int32_t kFullRate = 1000;

double run_seconds_of(const ExitRecord* exit, const Attempt& attempt, Time until) {
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

void JobSupervisor::remove(JobNumber job) {
  const auto found = attempts_.find(job);
  const Attempt& attempt = found->second;
  for (const Slice& slice : attempt.slices) {
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      const auto here = on_device_.find({slice.node.value, device});
      if (here == on_device_.end()) continue;
      here->second.erase(job);
      if (here->second.empty()) on_device_.erase(here);
    }
  }
  for (const HeldDevices& held : attempt.where) cores_.give(held.node, held.cores);
  job_of_.erase(attempt.id);
  asked_.erase(job);
  resuming_.erase(job);
  leaving_.erase(job);
  moves_.erase(job);
  asked_to_leave_.erase(job);
  forgotten_.push_back(attempt.id);
  attempts_.erase(found);
}

double JobSupervisor::end(JobNumber job, const Verdict& verdict, const ExitRecord* exit,
                          std::optional<Time> until) {
  const Attempt& attempt = attempts_.at(job);
  EndRecord record;
  record.job = job;
  record.attempt = attempt.id;
  record.outcome = verdict.outcome;
  record.is_final = verdict.is_final;
  if (exit != nullptr) {
    record.exit_code = exit->exit_code;
    record.signal = exit->signal;
  }
  const bool never_ran = verdict.outcome == Outcome::NotStarted;
  record.run_seconds =
      never_ran ? 0 : run_seconds_of(exit, attempt, until.value_or(parts_.clock.now()));
  const double gpu_seconds =
      never_ran ? 0 : std::max(0.0, record.run_seconds * attempt.gpus + attempt.extra_gpu_seconds);
  record.gpu_seconds = gpu_seconds;
  if (parts_.joules)
    record.joules = parts_.joules(job, attempt.since + seconds_to_duration(record.run_seconds));
  record.why = verdict.why;
  records_.emplace_back(std::move(record));
  if (verdict.is_final) {
    over_.insert(job);
    pending_.erase(job);
    launch_failures_.erase(job);
  }
  const bool is_lost = verdict.outcome == Outcome::NodeFailed && !verdict.is_final;
  if (!is_lost) losses_.erase(job);
  remove(job);
  return gpu_seconds;
}

std::optional<AttemptEnd> JobSupervisor::handle(const HostEvent& event) {
  const auto known = job_of_.find(event.attempt);
  if (known == job_of_.end()) return std::nullopt;  // its end is on record already
  const JobNumber job = known->second;
  Attempt& attempt = attempts_.at(job);
  // To the engine one that makes way waits already; that it was not stopped yet is ours to know.
  const Ending ending = leaving_.contains(job) ? Ending::Preempt : attempt.ending;
  const auto record = parts_.job(job);
  if (!record || asked_.contains(job)) return std::nullopt;
  Verdict verdict;
  switch (event.kind) {
    case HostEventKind::Started:
      attempt.is_running = true;
      attempt.pid = event.pid;
      launch_failures_.erase(job);
      started_.push_back(job);
      records_.emplace_back(StartedRecord{.job = job, .attempt = attempt.id, .pid = event.pid});
      // What was told to a program that did not run yet was lost.
      if (attempt.is_suspended || attempt.is_frozen)
        signals_.push_back({.kind = Signal::Kind::Suspend, .attempt = attempt.id});
      if (attempt.rate_milli != kFullRate)
        signals_.push_back({.kind = Signal::Kind::Rate,
                            .attempt = attempt.id,
                            .cores = {},
                            .rate = attempt.rate_milli});
      return std::nullopt;
    case HostEventKind::Ended:
      verdict = judge(*record->spec, attempt.ending, event.exit, record->failures);
      if (verdict.outcome == Outcome::Cancelled && !attempt.ending_why.empty())
        verdict.why = by_policy(attempt.ending_why);
      return ask_or_end(job, std::move(verdict), &event.exit, ending);
    case HostEventKind::LaunchLost: break;
  }
  const auto finding = parts_.host.look(job, attempt.id);
  if (!finding || finding->found == Found::Alive) return std::nullopt;
  const ExitRecord* exit = nullptr;
  if (finding->found == Found::Ended && finding->exit) {
    exit = &*finding->exit;
    verdict = judge(*record->spec, attempt.ending, *exit, record->failures);
  } else if (finding->found == Found::Void && !attempt.is_running && !finding->was_alive) {
    verdict = judge_unlaunched(attempt.ending, finding->why, launch_failures_[job]++);
  } else {
    verdict =
        judge_lost(*record->spec, attempt.ending, story_of(*finding, Seen::Now), losses_[job]++);
  }
  return ask_or_end(job, std::move(verdict), exit, ending);
}

/// What failed by itself, and what its node took with it, the policy may want repeated. A user who
/// does not want a job to run again after a lost node has that.
std::optional<AttemptEnd> JobSupervisor::ask_or_end(JobNumber job, Verdict verdict,
                                                    const ExitRecord* exit, Ending ending) {
  const auto record = parts_.job(job);
  const bool has_run = exit != nullptr && exit->was_started;
  const bool failed = verdict.outcome == Outcome::Failed && has_run;
  const bool was_lost = verdict.outcome == Outcome::NodeFailed && record && record->spec->requeue;
  if (rules_.policy_retries && ending == Ending::ByItself && (failed || was_lost)) {
    const FailureKind kind = failed ? failure_of(*exit) : FailureKind::Infrastructure;
    asked_[job] = {verdict, exit == nullptr ? std::nullopt : std::optional{*exit}};
    return AttemptEnd{job, std::move(verdict), 0, ending, kind};
  }
  const double gpu_seconds = end(job, verdict, exit);
  return AttemptEnd{job, std::move(verdict), gpu_seconds, ending};
}

std::optional<AttemptEnd> JobSupervisor::answer(JobNumber job, std::optional<bool> again) {
  const auto found = asked_.find(job);
  if (found == asked_.end()) return std::nullopt;
  Asked asked = std::move(found->second);
  asked_.erase(found);
  Verdict& verdict = asked.verdict;
  if (again) {
    if (asked.exit) verdict.why = how_it_ended(*asked.exit);
    if (*again) verdict.why += "; the policy tries it again";
    verdict.is_final = !*again;
    verdict.pause = {};
  }
  const double gpu_seconds = end(job, verdict, asked.exit ? &*asked.exit : nullptr);
  return AttemptEnd{job, std::move(verdict), gpu_seconds, Ending::ByItself};
}

void JobSupervisor::end_found(const LedgerJob& job, const Finding& finding, Time oldest) {
  const Attempt& attempt = attempts_.at(job.number);
  const Ending ending = attempt.ending;
  const auto found = [&](const Verdict& verdict, const ExitRecord* exit,
                         std::optional<Time> until = {}) {
    found_ends_.push_back({job.number, verdict, end(job.number, verdict, exit, until), ending});
  };
  if (finding.found == Found::Ended)
    return found(judge(*job.spec, ending, *finding.exit, job.failures), &*finding.exit);
  if (finding.found == Found::Void && !finding.was_alive) {
    // Nobody holds its claim: it was never made, or somebody removed it with the run directory.
    if (!seen_to_run_ && parts_.seen_to_run) seen_to_run_ = parts_.seen_to_run(oldest);
    if (!seen_to_run_ || !seen_to_run_->contains(attempt.id))
      return found(judge_void(ending), nullptr);
  }
  // It ended somewhere between the last word of the life before and now. Nobody is charged for what
  // nobody knows.
  const auto until = finding.was_alive ? std::nullopt : parts_.last_known;
  found(judge_lost(*job.spec, ending, story_of(finding, Seen::Later)), nullptr, until);
}

Result<void> JobSupervisor::recover(const Ledger& ledger) {
  Time oldest = parts_.clock.now();
  for (const auto& [number, job] : ledger.jobs())
    if (job.attempt) oldest = std::min(oldest, job.attempt->since);
  std::vector<Signal> wakes;  // come last: whoever has to sleep on the same devices does so first
  for (const auto& [number, job] : ledger.jobs()) {
    if (!job.attempt) continue;
    const LiveAttempt& live = *job.attempt;
    Attempt attempt;
    attempt.id = live.id;
    attempt.job = number;
    attempt.where = live.where;
    attempt.slices = slices_of(live.where);
    attempt.gpus = live.gpus;
    attempt.extra_gpu_seconds = live.extra_gpu_seconds;
    attempt.since = attempt.held_counted = attempt.work_counted = live.since;
    attempt.is_suspended = live.is_suspended;
    attempt.is_frozen = job.is_frozen;
    if (job.stopping) {
      attempt.ending = *job.stopping == Wish::Cancel    ? Ending::Cancel
                       : *job.stopping == Wish::Requeue ? Ending::Requeue
                                                        : Ending::Preempt;
    }
    for (const Slice& slice : attempt.slices) {
      for (const std::int32_t device : DeviceMask{slice.devices})
        on_device_[{slice.node.value, device}].insert(number);
    }
    job_of_[attempt.id] = number;
    const Ending ending = attempt.ending;
    attempts_.emplace(number, std::move(attempt));
    const auto looked = parts_.host.look(number, live.id);
    if (!looked) continue;  // it may be alive: its devices are kept until the host knows more
    const Finding& finding = *looked;
    switch (finding.found) {
      case Found::Alive:
        attempts_.at(number).is_running = true;
        if (finding.cores && live.where.size() == 1)
          hold_cores(attempts_.at(number), *finding.cores);
        started_.push_back(number);
        // The last signal may not have been sent before we died; twice does no harm.
        if (ending != Ending::ByItself) {
          signals_.push_back(
              {.kind = Signal::Kind::Stop, .attempt = live.id, .grace = job.spec->grace_seconds});
        } else {
          const bool sleeps = live.is_suspended || job.is_frozen;
          // How much of the time it was to run nobody remembers; its policy says so again.
          signals_.push_back(
              {.kind = Signal::Kind::Rate, .attempt = live.id, .cores = {}, .rate = kFullRate});
          (sleeps ? signals_ : wakes)
              .push_back({.kind = sleeps ? Signal::Kind::Suspend : Signal::Kind::Resume,
                          .attempt = live.id});
          set_limit(number, job.spec->time_limit);
        }
        break;
      case Found::Ended:
      case Found::Lost:
      case Found::Void: end_found(job, finding, oldest); break;
    }
  }
  signals_.insert(signals_.end(), wakes.begin(), wakes.end());
  // Last: whoever has ended gives back what it had, which may be somebody else's since.
  for (const auto& [number, attempt] : attempts_)
    for (const HeldDevices& held : attempt.where) cores_.retake(held.node, held.cores);
  return flush();
}

}  // namespace berth
