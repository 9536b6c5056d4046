// Which phase the jobs of a simulated world are in. A job whose model validates goes from training
// to validation and back as its work proceeds; where it is follows from its work alone, so that a
// preempted job or one thrown back to a checkpoint goes on in the right phase.
#pragma once

#include "base/id.h"
#include "base/time.h"
#include "core/job_table.h"
#include "perf/profile.h"

namespace berth {

class Phases {
 public:
  Phases(std::size_t jobs, const ProfileSet& profiles) : profiles_(&profiles), rows_(jobs) {}

  /// The phase of a job that starts with this much work done.
  [[nodiscard]] Phase begin(JobId job, ProfileId profile, Duration work);
  /// The job has come to the end of its phase; answers the next one.
  [[nodiscard]] Phase next(JobId job);
  /// Work until the end of the phase, at least the smallest step of time; nothing: it never ends.
  [[nodiscard]] std::optional<Duration> left(JobId job, Duration work) const noexcept;

 private:
  struct Row {
    ProfileId profile;
    Phase phase = Phase::Training;
    Duration ends{};  // amount of work at which the phase is over; zero: it never is
  };
  const ProfileSet* profiles_;
  Column<JobId, Row> rows_;
};

}  // namespace berth
