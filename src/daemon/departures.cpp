#include "daemon/departures.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time.h"

namespace berth {

/// It asked to be warned in its own way, says by its exit that it wants to go on, or has saved.
bool Departures::can_save(const LedgerJob& job) const {
  const JobSpec plain;
  const JobSpec& spec = *job.spec;
  const bool wants_warning = spec.warn_signal != plain.warn_signal || spec.warn_seconds > 0;
  return wants_warning || spec.requeue_exit_code ||
         (parts_.rules.saves && parts_.rules.saves(job.number));
}

Time Departures::due(const Attempt& attempt) const {
  const SupervisorRules& rules = parts_.rules;
  const auto job = parts_.job(attempt.job);
  if (!job) return attempt.since + rules.min_run;
  if (!job->spec->preemptible) return kNever;
  if (rules.min_run > Duration::zero() && !can_save(*job)) {
    const auto rivals = parts_.starts.rivals_of(attempt, parts_.attempts);
    const auto made_way = [&](JobNumber rival) {
      return std::ranges::find(job->made_way, rival) != job->made_way.end();
    };
    if (!rivals.empty() && std::ranges::all_of(rivals, made_way)) return kNever;
  }
  return attempt.since + rules.min_run;
}

std::vector<JobNumber> Departures::take_overdue(Time now) {
  std::vector<JobNumber> overdue;
  for (const auto& [job, warning] : asked_to_leave_)
    if (warning <= now) overdue.push_back(job);
  for (const JobNumber job : overdue) asked_to_leave_.erase(job);
  return overdue;
}

void Departures::forget(JobNumber job) {
  leaving_.erase(job);
  asked_to_leave_.erase(job);
}

Time Departures::next_due() const {
  Time next = kNever;
  for (const auto& [job, why] : leaving_) next = std::min(next, due(parts_.attempts.at(job)));
  for (const auto& [job, warning] : asked_to_leave_) next = std::min(next, warning);
  return next;
}

std::optional<Time> Departures::start_waits_until(JobNumber job) const {
  const PendingStart* start = parts_.starts.find(job);
  if (start == nullptr || leaving_.empty()) return std::nullopt;
  std::optional<Time> until;
  auto others = parts_.attempts.on_devices(start->slices);
  others.insert(job);  // it may be in its own way: somewhere else
  for (const JobNumber other : others) {
    if (!leaving_.contains(other)) continue;
    const Time when = due(parts_.attempts.at(other));
    if (when != kNever) until = std::max(when, until.value_or(when));
  }
  return until;
}

std::string Departures::min_run_text() const {
  const double seconds = to_seconds(parts_.rules.min_run);
  return seconds < 120 ? fmt::format("{:g} s", seconds) : human_duration(seconds);
}

std::vector<HeldStart> Departures::held_starts() const {
  std::vector<HeldStart> held;
  if (leaving_.empty()) return held;
  for (const auto& [job, start] : parts_.starts.all()) {
    for (const JobNumber other : parts_.attempts.on_devices(start.slices)) {
      if (other == job || !leaving_.contains(other)) continue;
      held.push_back(held_behind(job, parts_.attempts.at(other)));
      break;  // one reason is enough
    }
  }
  return held;
}

HeldStart Departures::held_behind(JobNumber job, const Attempt& attempt) const {
  const JobNumber other = attempt.job;
  const Time when = due(attempt);
  if (when != kNever)
    return {job, other, when, fmt::format("waits until job {} has run {}", other, min_run_text())};
  const auto record = parts_.job(other);
  return {job, other, std::nullopt,
          record && !record->spec->preemptible
              ? fmt::format("waits until job {} ends: that one may not be preempted", other)
              : fmt::format("waits until job {} ends: that one cannot save its work and has made "
                            "way for this job before",
                            other)};
}

}  // namespace berth
