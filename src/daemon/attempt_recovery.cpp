#include "daemon/attempt_recovery.h"

#include <algorithm>

namespace berth {

namespace {

constexpr std::int32_t kFullRate = 1000;

Ending ending_of(Wish wish) {
  if (wish == Wish::Cancel) return Ending::Cancel;
  return wish == Wish::Requeue ? Ending::Requeue : Ending::Preempt;
}

}  // namespace

AttemptRecovery::Recovered AttemptRecovery::run(const Ledger& ledger) {
  Time oldest = parts_.clock.now();
  for (const auto& [number, job] : ledger.jobs())
    if (job.attempt) oldest = std::min(oldest, job.attempt->since);
  Recovered recovered;
  for (const auto& [number, job] : ledger.jobs()) {
    if (!job.attempt) continue;
    put_back(job);
    const auto looked = parts_.host.look(number, job.attempt->id);
    if (!looked) continue;  // it may be alive: its devices are kept until the host knows more
    const Finding& finding = *looked;
    switch (finding.found) {
      case Found::Alive:
        adopt(job, finding);
        recovered.running.push_back(number);
        break;
      case Found::Ended:
      case Found::Lost:
      case Found::Void: recovered.ends.push_back(end_found(job, finding, oldest)); break;
    }
  }
  // Wakes come last: whoever has to sleep on the same devices does so first.
  for (Signal& wake : wakes_) parts_.batch.signal(std::move(wake));
  // After all ends: whoever has ended gives back what it had, which may be somebody else's since.
  parts_.attempts.retake_cores();
  return recovered;
}

void AttemptRecovery::put_back(const LedgerJob& job) {
  const LiveAttempt& live = *job.attempt;
  Attempt attempt;
  attempt.id = live.id;
  attempt.job = job.number;
  attempt.where = live.where;
  attempt.slices = parts_.attempts.slices_of(live.where);
  attempt.gpus = live.gpus;
  attempt.extra_gpu_seconds = live.extra_gpu_seconds;
  attempt.since = attempt.held_counted = attempt.work_counted = live.since;
  attempt.is_suspended = live.is_suspended;
  attempt.is_frozen = job.is_frozen;
  if (job.stopping) attempt.ending = ending_of(*job.stopping);
  parts_.attempts.add(std::move(attempt));
}

/// The last signal may not have been sent before we died; twice does no harm.
void AttemptRecovery::adopt(const LedgerJob& job, const Finding& finding) {
  Attempt& attempt = parts_.attempts.at(job.number);
  attempt.is_running = true;
  if (finding.cores && attempt.where.size() == 1) {
    attempt.where.front().cores = *finding.cores;
    if (parts_.show_cores) parts_.show_cores(job.number, *finding.cores);
  }
  if (attempt.ending != Ending::ByItself) {
    parts_.batch.signal(stop_signal(attempt, job.spec->grace_seconds));
    return;
  }
  const bool sleeps = attempt.is_suspended || attempt.is_frozen;
  // How much of the time it was to run nobody remembers; its policy says so again.
  parts_.batch.signal(
      {.kind = Signal::Kind::Rate, .attempt = attempt.id, .cores = {}, .rate = kFullRate});
  if (sleeps)
    parts_.batch.signal({.kind = Signal::Kind::Suspend, .attempt = attempt.id});
  else
    wakes_.push_back({.kind = Signal::Kind::Resume, .attempt = attempt.id});
  parts_.batch.signal_limit(attempt.id, job.spec->time_limit);
}

AttemptEnd AttemptRecovery::end_found(const LedgerJob& job, const Finding& finding, Time oldest) {
  const Attempt& attempt = parts_.attempts.at(job.number);
  const Ending ending = attempt.ending;
  auto [verdict, until] = parts_.ends.of_found(job, attempt, finding, oldest);
  const ExitRecord* exit = finding.found == Found::Ended ? &*finding.exit : nullptr;
  const double gpu_seconds = parts_.end(job.number, verdict, exit, until);
  return {job.number, std::move(verdict), gpu_seconds, ending};
}

}  // namespace berth
