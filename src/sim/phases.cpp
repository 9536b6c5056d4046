#include "sim/phases.h"

#include <algorithm>

namespace berth {

Phase Phases::begin(JobId job, ProfileId profile, Duration work) {
  Row& row = rows_[job];
  row = {.profile = profile};
  const ValidationParams& validation = (*profiles_)[profile].validation;
  if (!validation.is_known()) return row.phase;
  const Duration training = seconds_to_duration(validation.every_seconds);
  const Duration period = training + seconds_to_duration(validation.seconds);
  // A job that comes back after a preemption is in the middle of a period: its work says where.
  const Duration whole = work / period * period;
  const bool trains = work - whole < training;
  row.phase = trains ? Phase::Training : Phase::Validation;
  row.ends = whole + (trains ? training : period);
  return row.phase;
}

Phase Phases::next(JobId job) {
  Row& row = rows_[job];
  const ValidationParams& validation = (*profiles_)[row.profile].validation;
  const bool trained = row.phase == Phase::Training;
  row.phase = trained ? Phase::Validation : Phase::Training;
  row.ends += seconds_to_duration(trained ? validation.seconds : validation.every_seconds);
  return row.phase;
}

std::optional<Duration> Phases::left(JobId job, Duration work) const noexcept {
  const Row& row = rows_[job];
  if (row.ends == Duration::zero()) return std::nullopt;
  // At least one tick: rounding may put the work slightly beyond the end, and an event in the past
  // would be collected for ever.
  return std::max(row.ends - work, Duration{1});
}

}  // namespace berth
