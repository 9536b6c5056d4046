// What the supervisor keeps whatever the policy: nobody is stopped a moment after it began, and a job
// that cannot save its work makes way for the same rival only once.
#include <algorithm>

#include <fmt/format.h>

#include "base/time.h"
#include "daemon/job_supervisor.h"

namespace berth {

namespace {
/// From a kill until nothing of an attempt is left, on a machine that works.
constexpr Duration kUntilKilled = std::chrono::seconds{10};
}  // namespace

Time JobSupervisor::preempt(JobNumber job, std::string why, std::optional<Time> since) {
  const Time now = since.value_or(parts_.clock.now());
  pending_.erase(job);
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return now;
  Attempt& attempt = found->second;
  attempt.is_granted = false;
  resuming_.erase(job);
  moves_.erase(job);
  if (attempt.ending != Ending::ByItself) return now;
  if (attempt.is_suspended) {  // it does not run, and saves nothing by staying
    want_stop(attempt, Ending::Preempt, std::move(why));
    return now;
  }
  leaving_.emplace(job, std::move(why));
  const Time until = std::max(now, attempt.since + rules_.min_run);
  attempt.held_counted = std::max(until, attempt.held_counted);
  attempt.work_counted = now;
  return until;
}

/// Whoever was given one of its devices.
std::set<JobNumber> JobSupervisor::rivals_of(const Attempt& attempt) const {
  const auto meets = [&](std::span<const Slice> slices) {
    return std::ranges::any_of(slices, [&](const Slice& theirs) {
      return std::ranges::any_of(attempt.slices, [&](const Slice& own) {
        return own.node == theirs.node && (own.devices & theirs.devices) != 0;
      });
    });
  };
  std::set<JobNumber> rivals;
  for (const auto& [job, start] : pending_) {
    if (job != attempt.job && meets(start.slices)) rivals.insert(job);
  }
  for (const JobNumber job : resuming_) {
    if (meets(attempts_.at(job).slices)) rivals.insert(job);
  }
  return rivals;
}

/// It asked to be warned in its own way, says by its exit that it wants to go on, or has saved.
bool JobSupervisor::can_save(const LedgerJob& job) const {
  const JobSpec plain;
  const JobSpec& spec = *job.spec;
  const bool wants_warning = spec.warn_signal != plain.warn_signal || spec.warn_seconds > 0;
  return wants_warning || spec.requeue_exit_code || (rules_.saves && rules_.saves(job.number));
}

/// When one that is leaving may be stopped; kNever: it goes on to its end.
Time JobSupervisor::due_of(const Attempt& attempt) const {
  const auto job = parts_.job(attempt.job);
  if (!job) return attempt.since + rules_.min_run;
  if (!job->spec->preemptible) return kNever;
  if (rules_.min_run > Duration::zero() && !can_save(*job)) {
    const auto rivals = rivals_of(attempt);
    const auto made_way = [&](JobNumber rival) {
      return std::ranges::find(job->made_way, rival) != job->made_way.end();
    };
    if (!rivals.empty() && std::ranges::all_of(rivals, made_way)) return kNever;
  }
  return attempt.since + rules_.min_run;
}

Time JobSupervisor::next_due() const {
  Time next = kNever;
  for (const auto& [job, why] : leaving_) next = std::min(next, due_of(attempts_.at(job)));
  for (const auto& [job, warning] : asked_to_leave_) next = std::min(next, warning);
  const Time now = parts_.clock.now();
  for (const auto& [job, move] : moves_) {
    const Time due = move.until.value_or(move_due(attempts_.at(job)));
    if (move.until || due > now) next = std::min(next, due);  // otherwise it waits for others
  }
  return next;
}

void JobSupervisor::stop_whom_rules_allow() {
  if (leaving_.empty()) return;
  const Time now = parts_.clock.now();
  for (const auto& [job, why] : std::map{leaving_}) {
    Attempt& attempt = attempts_.at(job);
    if (due_of(attempt) > now) continue;
    want_stop(attempt, Ending::Preempt, why, rivals_of(attempt));
  }
}

std::optional<Time> JobSupervisor::start_waits_until(JobNumber job) const {
  const auto found = pending_.find(job);
  if (found == pending_.end() || leaving_.empty()) return std::nullopt;
  std::optional<Time> until;
  auto others = on_devices(found->second.slices);
  others.insert(job);  // it may be in its own way: somewhere else
  for (const JobNumber other : others) {
    if (!leaving_.contains(other)) continue;
    const Time due = due_of(attempts_.at(other));
    if (due != kNever) until = std::max(due, until.value_or(due));
  }
  return until;
}

std::optional<Time> JobSupervisor::start_waits_for_ends(JobNumber job) const {
  const auto found = pending_.find(job);
  if (found == pending_.end()) return std::nullopt;
  std::optional<Time> until;
  auto others = on_devices(found->second.slices);
  others.insert(job);  // its own last attempt
  for (const JobNumber other : others) {
    const auto attempt = attempts_.find(other);
    if (attempt == attempts_.end()) continue;
    const auto record = parts_.job(other);
    const std::int64_t grace = record ? record->spec->grace_seconds : 0;
    until = std::max(until.value_or(Time{}),
                     parts_.clock.now() + std::chrono::seconds{grace} + kUntilKilled);
  }
  return until;
}

std::string JobSupervisor::min_run_text() const {
  const double seconds = to_seconds(rules_.min_run);
  return seconds < 120 ? fmt::format("{:g} s", seconds) : human_duration(seconds);
}

std::vector<HeldStart> JobSupervisor::held_starts() const {
  std::vector<HeldStart> held;
  if (leaving_.empty()) return held;
  for (const auto& [job, start] : pending_) {
    for (const JobNumber other : on_devices(start.slices)) {
      if (other == job || !leaving_.contains(other)) continue;
      const Attempt& attempt = attempts_.at(other);
      const Time due = due_of(attempt);
      if (due != kNever) {
        held.push_back(
            {job, other, due, fmt::format("waits until job {} has run {}", other, min_run_text())});
        break;
      }
      const auto record = parts_.job(other);
      held.push_back(
          {job, other, std::nullopt,
           record && !record->spec->preemptible
               ? fmt::format("waits until job {} ends: that one may not be preempted", other)
               : fmt::format("waits until job {} ends: that one cannot save its work and has made "
                             "way for this job before",
                             other)});
      break;
    }
  }
  return held;
}

}  // namespace berth
