// One row per job, rows never erased: a JobId stays valid, and its order is submission order.
// Columns hold what the scheduler has observed; what the user asked for is in the trace's
// JobRequest, and what will really happen is known to the executor alone. Progress and service are
// lazy: a value, the moment of its last update, a rate; nothing touches all running jobs on an
// event.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/id.h"
#include "base/time.h"
#include "core/allocation.h"
#include "core/shape.h"

namespace berth {

enum class JobState : std::uint8_t {
  Unknown,  // not submitted yet
  Waiting,  // submitted, holds nothing
  Running,  // granted devices (may still pay its start or restart overhead)
  Completed,
  Failed,
  Cancelled,
  Rejected,  // can never run here
};

[[nodiscard]] constexpr bool is_over(JobState state) noexcept {
  return state >= JobState::Completed;
}

class JobTable {
 public:
  explicit JobTable(std::size_t jobs)
      : state(jobs, JobState::Unknown),
        shape(jobs),
        allocation(jobs),
        submitted(jobs),
        first_start(jobs, kNever),
        last_start(jobs, kNever),
        finished(jobs, kNever),
        held_from(jobs),
        held(jobs),
        work_from(jobs),
        work(jobs),
        rate(jobs),
        overhead(jobs),
        preemptions(jobs),
        migrations(jobs),
        failures(jobs) {}

  [[nodiscard]] std::size_t size() const noexcept { return state.size(); }
  [[nodiscard]] bool is_waiting(JobId job) const noexcept {
    return state[job] == JobState::Waiting;
  }
  [[nodiscard]] bool is_running(JobId job) const noexcept {
    return state[job] == JobState::Running;
  }

  /// Seconds of holding devices so far, overhead included: attained service in its time form.
  [[nodiscard]] Duration attained(JobId job, Time now) const noexcept {
    Duration total = held[job];
    if (is_running(job)) total += std::max(Duration::zero(), now - held_from[job]);
    return total;
  }
  /// Reference seconds of work done so far, overhead excluded.
  [[nodiscard]] Duration work_done(JobId job, Time now) const noexcept {
    Duration total = work[job];
    if (is_running(job) && now > work_from[job]) total += rate[job].work_in(now - work_from[job]);
    return total;
  }

  Column<JobId, JobState> state;
  Column<JobId, ShapeId> shape;
  Column<JobId, Allocation> allocation;
  Column<JobId, Time> submitted;
  Column<JobId, Time> first_start;  // kNever until it first holds devices
  Column<JobId, Time> last_start;
  Column<JobId, Time> finished;      // kNever until it is over
  Column<JobId, Time> held_from;     // while running: since when it holds its devices
  Column<JobId, Duration> held;      // completed stretches
  Column<JobId, Time> work_from;     // while running: since when it makes progress
  Column<JobId, Duration> work;      // reference seconds done before work_from
  Column<JobId, Rate> rate;          // while running
  Column<JobId, Duration> overhead;  // held without progress, in all
  Column<JobId, std::uint32_t> preemptions;
  Column<JobId, std::uint32_t> migrations;
  Column<JobId, std::uint32_t> failures;  // attempts lost with a node
};

}  // namespace berth
