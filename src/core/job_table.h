// One row per job, rows never erased: a JobId stays valid, and its order is submission order.
// Columns hold what the scheduler has observed; what the user asked for is in the trace's
// JobRequest, and what will really happen is known to the executor alone. Progress and service are
// lazy: a value, the moment of its last update, a rate; nothing touches all running jobs on an
// event.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/id.h"
#include "base/time.h"
#include "core/allocation.h"
#include "core/kind.h"
#include "core/shape.h"
#include "perf/rate_model.h"
#include "perf/terms.h"

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

/// What the rate of a running job rests on.
enum class RateBasis : std::uint8_t {
  Exact,     // the truth: a simulation
  Believed,  // the job says nothing of itself
  Awaited,   // it does, but not yet for long enough on these devices, beside these neighbours
  Measured,  // for long enough there
};

class JobTable {
  struct Row {
    JobState state = JobState::Unknown;
    Phase phase = Phase::Training;
    RateBasis basis = RateBasis::Exact;
    ShapeId shape;
    KindId kind;
    Allocation allocation;
    Time submitted{};
    Time first_start = kNever;
    Time last_start = kNever;
    Time finished = kNever;
    Time held_from{};
    Duration held{};
    Time work_from{};
    Duration work{};
    Rate rate;
    Time basis_from{};
    Duration overhead{};
    std::uint32_t preemptions = 0;
    std::uint32_t migrations = 0;
    std::uint32_t failures = 0;
    std::uint32_t retries = 0;
    Duration wasted{};
    ProfileId profile;
    PoolId reference = kNoPool;
    std::int32_t batch = 0;
    std::int32_t granted = 0;
    Duration service{};
    Terms terms;
    std::uint32_t suspensions = 0;
  };

  /// A column to its readers, a row in memory: an event touches many columns of one job, and those
  /// of a million jobs do not fit in a cache, so that what belongs to a job lies together.
  template <auto Member>
  class Field {
   public:
    explicit Field(std::vector<Row>& rows) : rows_(&rows) {}
    [[nodiscard]] auto& operator[](JobId job) noexcept {
      BERTH_DCHECK(job.value < rows_->size(), "column read past its end");
      return (*rows_)[job.value].*Member;
    }
    [[nodiscard]] const auto& operator[](JobId job) const noexcept {
      BERTH_DCHECK(job.value < rows_->size(), "column read past its end");
      return (*rows_)[job.value].*Member;
    }

   private:
    std::vector<Row>* rows_;
  };

  std::vector<Row> rows_;

 public:
  explicit JobTable(std::size_t jobs) : rows_(jobs) {}
  JobTable(const JobTable&) = delete;  // its columns point into it
  JobTable& operator=(const JobTable&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
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

  Field<&Row::state> state{rows_};
  Field<&Row::phase> phase{rows_};  // while running
  Field<&Row::shape> shape{rows_};
  Field<&Row::kind> kind{rows_};
  Field<&Row::allocation> allocation{rows_};
  Field<&Row::submitted> submitted{rows_};
  Field<&Row::first_start> first_start{rows_};  // kNever until it first holds devices
  Field<&Row::last_start> last_start{rows_};
  Field<&Row::finished> finished{rows_};    // kNever until it is over
  Field<&Row::held_from> held_from{rows_};  // while running: since when it holds its devices
  Field<&Row::held> held{rows_};            // completed stretches
  Field<&Row::work_from> work_from{rows_};  // while running: since when it makes progress
  Field<&Row::work> work{rows_};            // reference seconds done before work_from
  Field<&Row::rate> rate{rows_};            // while running
  Field<&Row::basis> basis{rows_};          // of the rate
  /// Unless it is exact: since when the job has had these devices and neighbours. What was measured
  /// of its rate was measured since then.
  Field<&Row::basis_from> basis_from{rows_};
  Field<&Row::overhead> overhead{rows_};  // held without progress, in all
  Field<&Row::preemptions> preemptions{rows_};
  Field<&Row::migrations> migrations{rows_};
  Field<&Row::failures> failures{rows_};    // attempts lost with a node
  Field<&Row::retries> retries{rows_};      // attempts that failed and were followed by another
  Field<&Row::wasted> wasted{rows_};        // service of failed attempts
  Field<&Row::profile> profile{rows_};      // what is known of jobs like this one
  Field<&Row::reference> reference{rows_};  // device type its traced duration stands for
  Field<&Row::batch> batch{rows_};      // samples per GPU and iteration; 0 = as its profile says
  Field<&Row::granted> granted{rows_};  // while running: devices it was given
  Field<&Row::service> service{rows_};  // completed stretches: held time times devices
  Field<&Row::terms> terms{rows_};
  Field<&Row::suspensions> suspensions{rows_};
};

}  // namespace berth
