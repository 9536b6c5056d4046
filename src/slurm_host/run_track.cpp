#include "slurm_host/run_track.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

namespace berth {

namespace {

using slurm::JobPhase;

/// Slurm is not asked to suspend or requeue what it has only just begun.
constexpr std::int64_t kFirstSeconds = 2;
constexpr std::int32_t kMostRefusals = 3;
constexpr std::int64_t kMicros = 1'000'000;

enum class Same : std::uint8_t { Run, LaterRun, EarlierRun };
Same compare(const Claim& claim, const slurm::Job& job) {
  if (job.key.restarts > claim.restarts) return Same::LaterRun;
  const bool is_same = job.key.restarts == claim.restarts && job.key.submitted == claim.submitted;
  return is_same ? Same::Run : Same::EarlierRun;
}

TrackStep found(Found what, std::string why) {
  TrackStep step;
  step.finding = Finding{.found = what, .why = std::move(why)};
  return step;
}

TrackStep send(RunVerb verb) {
  TrackStep step;
  step.verb = verb;
  return step;
}

ExitRecord exit_record(const RunTrack& track, const slurm::Job& job) {
  ExitRecord exit;
  exit.job = track.job;
  exit.attempt = track.attempt;
  exit.stopped = track.is_end_sent ? Stopped::Warned : Stopped::No;
  exit.begun_clock = job.started * kMicros;
  exit.ended_clock = std::max(job.started, job.ended) * kMicros;
  exit.exit_code = job.exit_code;
  exit.signal = job.signal;
  switch (job.phase) {
    case JobPhase::Completed: exit.exit_code = exit.signal = 0; break;
    case JobPhase::TimedOut:
    case JobPhase::Deadline: exit.timed_out = true; break;
    case JobPhase::OutOfMemory: exit.out_of_memory = true; break;
    case JobPhase::Cancelled:
    case JobPhase::Preempted:
      exit.cancelled = true;
      exit.why = fmt::format("{} in Slurm", to_string(job.phase));
      break;
    default: break;
  }
  const bool says_nothing = exit.exit_code == 0 && exit.signal == 0;
  if (job.phase != JobPhase::Completed && says_nothing) exit.signal = SIGKILL;
  return exit;
}

TrackStep ended(ExitRecord exit) {
  TrackStep step;
  step.finding = Finding{.found = Found::Ended, .exit = std::move(exit)};
  return step;
}

TrackStep step_ordered(const RunWish& wish, const slurm::Job& job) {
  if (wish.stop) return found(Found::Void, "stopped before it was placed");
  if (job.phase != JobPhase::Pending)
    return found(Found::Void,
                 fmt::format("it is {} in Slurm, by somebody else", to_string(job.phase)));
  // One that is not held is held first, by whoever watches over those that nobody has placed.
  return job.priority == 0 ? send(RunVerb::Place) : TrackStep{};
}

/// It waits, in the run that it was placed on.
TrackStep step_waiting(const RunTrack& track, const RunWish& wish, const slurm::Job& job,
                       std::int64_t now, const TrackRules& rules) {
  const bool is_held = job.priority == 0;
  if (track.stage == RunStage::Running) {
    if (!is_held) return send(RunVerb::Hold);
    return found(Found::Lost, "Slurm has forgotten that it ran");
  }
  if (is_held) {
    if (!track.is_hold_sent) return send(RunVerb::Hold);
    return found(Found::Void, track.why.empty() ? "it was held in Slurm" : track.why);
  }
  const bool is_late = now >= std::max(track.placed_at, job.eligible) + rules.patience;
  return wish.stop || is_late ? send(RunVerb::Hold) : TrackStep{};
}

TrackStep step_stopping(RunTrack& track, const RunWish& wish, const slurm::Job& job,
                        std::int64_t now, const TrackRules& rules) {
  if (job.started + kFirstSeconds > now) return {};
  if (rules.warn_signal != 0 && wish.grace > 0) {
    if (!track.end_at) return send(RunVerb::Signal);
    if (now < *track.end_at) return {};
  }
  return send(wish.is_for_good ? RunVerb::Cancel : RunVerb::Requeue);
}

TrackStep step_running(RunTrack& track, const RunWish& wish, const slurm::Job& job,
                       std::int64_t now, const TrackRules& rules) {
  TrackStep step;
  track.started = job.started;
  step.has_begun = track.stage != RunStage::Running;
  track.stage = RunStage::Running;
  if (wish.stop) {
    step.verb = step_stopping(track, wish, job, now, rules).verb;
    return step;
  }
  const bool is_early = job.started + kFirstSeconds > now;
  if (wish.is_suspended && job.phase == JobPhase::Running && !is_early)
    step.verb = RunVerb::Suspend;
  else if (!wish.is_suspended && track.is_suspended && job.phase == JobPhase::Suspended)
    step.verb = RunVerb::Resume;
  return step;
}

/// The run that it was placed on is over, and the job with it as Slurm has it. One that was asked to
/// make way and has left with an error waits again; whoever was done, was cancelled or had its time
/// is over.
TrackStep step_over(const RunTrack& track, const RunWish& wish, const slurm::Job& job) {
  if (job.phase == JobPhase::NodeFailed || job.phase == JobPhase::BootFailed)
    return found(Found::Lost, fmt::format("{} in Slurm", to_string(job.phase)));
  const bool makes_way = wish.stop && !wish.is_for_good && job.phase == JobPhase::Failed &&
                         track.is_end_sent && track.refusals < kMostRefusals;
  return makes_way ? send(RunVerb::Requeue) : ended(exit_record(track, job));
}

/// Its run is over, and the job was in line again at least once.
TrackStep step_later(const RunTrack& track, const RunWish& wish, const slurm::Job& job,
                     std::int64_t now) {
  const bool waits = job.phase == JobPhase::Pending;
  if (waits && wish.stop && wish.is_for_good) return send(RunVerb::Cancel);
  // Held by whoever watches over those that nobody has placed: not before it holds nothing may it
  // be placed again.
  if (waits && job.priority != 0) return {};
  if (!wish.stop || !track.is_end_sent)
    return found(Found::Lost, track.stage == RunStage::Running
                                  ? "it was requeued in Slurm, by somebody else or with its node"
                                  : "it was requeued in Slurm before it was seen to run");
  ExitRecord exit;
  exit.job = track.job;
  exit.attempt = track.attempt;
  exit.stopped = Stopped::Warned;
  exit.signal = SIGTERM;
  exit.cancelled = job.phase == JobPhase::Cancelled;
  if (track.started > 0) {
    exit.begun_clock = track.started * kMicros;
    exit.ended_clock = std::max(track.started, now) * kMicros;
  }
  return ended(std::move(exit));
}

}  // namespace

TrackStep next_step(RunTrack& track, const RunWish& wish, const slurm::Job* job, bool is_gone,
                    std::int64_t now, const TrackRules& rules) {
  if (job == nullptr) {
    if (!is_gone) return {};
    constexpr const char* kWhy = "Slurm does not know the job any more";
    return found(track.stage == RunStage::Running ? Found::Lost : Found::Void, kWhy);
  }
  if (job->completing) return {};  // processes of some run of it may be there
  if (track.stage == RunStage::Ordered || !track.claim) return step_ordered(wish, *job);
  switch (compare(*track.claim, *job)) {
    case Same::LaterRun: return step_later(track, wish, *job, now);
    case Same::EarlierRun: return found(Found::Lost, "Slurm went back to an earlier run of it");
    case Same::Run: break;
  }
  if (job->phase == JobPhase::Pending) return step_waiting(track, wish, *job, now, rules);
  if (is_over(job->phase)) return step_over(track, wish, *job);
  if (job->phase == JobPhase::Unknown) return {};
  return step_running(track, wish, *job, now, rules);
}

void note_sent(RunTrack& track, RunVerb verb, const slurm::Linked<void>& answer, std::int64_t now,
               const RunWish& wish) {
  if (!answer) track.why = answer.error().text;
  switch (verb) {
    case RunVerb::Place:
      track.stage = RunStage::Placed;
      track.placed_at = now;
      track.is_hold_sent = false;
      break;
    case RunVerb::Hold:
      if (answer) track.is_hold_sent = true;
      if (answer && track.why.empty()) track.why = "Slurm did not start it in time";
      break;
    case RunVerb::Signal:
      // One that cannot be warned is ended without a warning.
      track.end_at = now + (answer ? wish.grace : 0);
      track.is_end_sent = true;
      break;
    case RunVerb::Requeue:
      track.is_end_sent = true;
      if (!answer && answer.error().refusal != slurm::Refusal::Unreachable) ++track.refusals;
      break;
    case RunVerb::Cancel: track.is_end_sent = true; break;
    case RunVerb::Suspend: track.is_suspended = track.is_suspended || answer.has_value(); break;
    case RunVerb::Resume: track.is_suspended = track.is_suspended && !answer.has_value(); break;
    case RunVerb::None: break;
  }
}

Outcome outcome_of(const slurm::Job& job) {
  switch (job.phase) {
    case JobPhase::Completed: return Outcome::Completed;
    case JobPhase::TimedOut:
    case JobPhase::Deadline: return Outcome::TimedOut;
    case JobPhase::Failed: return Outcome::Failed;
    case JobPhase::NodeFailed:
    case JobPhase::BootFailed: return Outcome::NodeFailed;
    case JobPhase::OutOfMemory: return Outcome::OutOfMemory;
    default: return Outcome::Cancelled;
  }
}

}  // namespace berth
