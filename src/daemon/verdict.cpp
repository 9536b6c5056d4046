#include "daemon/verdict.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <sysexits.h>

#include <fmt/format.h>

namespace berth {

namespace {

constexpr std::int32_t kLaunchTries = 5;

bool succeeded(const ExitRecord& exit) { return exit.exit_code == 0 && exit.signal == 0; }

/// Ends that were wanted, whatever the processes said on their way out.
std::optional<Verdict> as_wanted(Ending ending) {
  switch (ending) {
    case Ending::ByItself: return std::nullopt;
    case Ending::Cancel: return Verdict{.outcome = Outcome::Cancelled, .why = "cancelled"};
    case Ending::Kill: return Verdict{.outcome = Outcome::Cancelled, .why = "ended by the policy"};
    case Ending::Preempt:
      return Verdict{.outcome = Outcome::Preempted, .is_final = false, .why = "preempted"};
    case Ending::Requeue:
      return Verdict{.outcome = Outcome::Requeued, .is_final = false, .why = "requeued"};
  }
  return std::nullopt;
}

}  // namespace

std::string how_it_ended(const ExitRecord& exit) {
  const std::string end = exit.signal != 0 ? fmt::format("killed by signal {}", exit.signal)
                                           : fmt::format("exit code {}", exit.exit_code);
  return exit.why.empty() ? end : fmt::format("{} ({})", exit.why, end);
}

std::string by_whom(std::string_view what, std::string_view who, std::string_view why) {
  return fmt::format("{} by {}{}{}", what, who, why.empty() ? "" : ": ", why);
}

std::string by_policy(std::string_view reason) {
  return fmt::format("ended by the policy: {}", reason);
}

FailureKind failure_of(const ExitRecord& exit) {
  if (exit.out_of_memory) return FailureKind::User;
  if (exit.signal != 0) return FailureKind::Unknown;
  switch (exit.exit_code) {
    case EX_USAGE:
    case EX_DATAERR:
    case EX_NOINPUT:
    case EX_CANTCREAT:
    case EX_NOPERM:
    case EX_CONFIG:
    case 126:  // not executable
    case 127:  // not found
      return FailureKind::User;
    case EX_UNAVAILABLE:
    case EX_OSERR:
    case EX_IOERR:
    case EX_TEMPFAIL: return FailureKind::Infrastructure;
    default: return FailureKind::Unknown;
  }
}

Duration pause_after(std::int32_t failures) {
  const std::int64_t seconds = std::int64_t{1} << std::clamp(failures, 0, 9);
  return std::chrono::seconds{std::min<std::int64_t>(seconds, 300)};
}

Verdict judge(const JobSpec& spec, Ending ending, const ExitRecord& exit, std::int32_t failures) {
  if (!exit.was_started) {
    if (ending == Ending::Cancel) return *as_wanted(ending);
    return {.outcome = Outcome::Failed, .why = exit.why};
  }
  if (exit.cancelled)
    return {.outcome = Outcome::Cancelled, .why = exit.why.empty() ? "cancelled" : exit.why};
  if (exit.timed_out) return {.outcome = Outcome::TimedOut, .why = "over its time limit"};
  // It was done before it heard that it should stop.
  const bool heard = exit.stopped != Stopped::No;
  if (!heard && succeeded(exit)) return {.outcome = Outcome::Completed, .why = {}};
  // Whoever says that it is done is done: the devices are free either way. Somebody who asked for
  // another run or for none has that.
  if (ending == Ending::Preempt && succeeded(exit))
    return {.outcome = Outcome::Completed, .why = {}};
  if (const auto wanted = as_wanted(ending)) return *wanted;
  if (succeeded(exit)) return {.outcome = Outcome::Completed, .why = {}};
  if (spec.requeue_exit_code && exit.signal == 0 && exit.exit_code == *spec.requeue_exit_code) {
    return {.outcome = Outcome::Requeued,
            .is_final = false,
            .pause = pause_after(0),
            .why = fmt::format("asked to be run again by exit code {}", exit.exit_code)};
  }
  const bool again = failures < spec.max_retries;
  return {.outcome = exit.out_of_memory ? Outcome::OutOfMemory : Outcome::Failed,
          .is_final = !again,
          .pause = again ? pause_after(failures) : Duration{},
          .why = again ? fmt::format("{}; try {} of {} follows", how_it_ended(exit), failures + 2,
                                     spec.max_retries + 1)
                       : how_it_ended(exit)};
}

std::optional<Verdict> judge_ended(Ending ending) {
  const bool is_final = ending == Ending::Cancel || ending == Ending::Kill;
  return is_final ? as_wanted(ending) : std::nullopt;
}

Verdict judge_lost(const JobSpec& spec, Ending ending, std::string why, std::int32_t losses) {
  if (auto ended = judge_ended(ending)) return *std::move(ended);
  return {.outcome = Outcome::NodeFailed,
          .is_final = !spec.requeue,
          .pause = spec.requeue && losses > 0 ? pause_after(losses - 1) : Duration{},
          .why = std::move(why)};
}

Verdict judge_void(Ending ending) {
  if (auto ended = judge_ended(ending)) return *std::move(ended);
  return {.outcome = Outcome::NotStarted,
          .is_final = false,
          .why = "never began: the scheduler stopped before it could be started"};
}

Verdict judge_unlaunched(Ending ending, const std::string& why, std::int32_t failures) {
  if (auto ended = judge_ended(ending)) return *std::move(ended);
  const bool again = failures < kLaunchTries;
  return {.outcome = Outcome::NotStarted,
          .is_final = !again,
          .pause = again ? pause_after(failures) : Duration{},
          .why = fmt::format("could not be started: {}", why)};
}

}  // namespace berth
