// How fast live jobs run and how far they have come, for the engine's job table. In this order:
// what the training code reports, what is believed of where a job stands and beside whom
// (sim/neighbourhood.h), what its request says (rate 1).
//
// Work is counted in seconds of the job's own estimate, so that "estimated work left over rate" is
// the time left, whatever the estimate is worth: a training of N iterations and an estimate of E
// seconds has done i E/N after iteration i, and runs at E/N times its iterations per second. One
// that does not say how long it is runs at the speed it was first measured at, by what is believed
// of the conditions then; another speed under other conditions is measured against that.
//
// When conditions change (where it stands, its terms, who is on its devices) the old pace says
// nothing any more: until there is a new one a job is taken to change by as much as is believed,
// and the table says that its rate is not measured (RateBasis). How far belief is off is known to
// 0.5 % and is another only if it differs by 3 %: a rate that is the same in all but noise never
// changes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/time.h"
#include "core/executor.h"
#include "core/job_table.h"
#include "daemon/progress_estimate.h"
#include "sim/neighbourhood.h"
#include "training/training_channel.h"

namespace berth {

class LiveRates {
 public:
  /// What outlives an attempt, and a restart.
  struct Known {
    double calibration = 1;            // measured over believed, a step of the scale
    double seconds_per_iteration = 0;  // of work; 0 = not known
    bool is_measured = false;          // the calibration is its own
    friend bool operator==(const Known&, const Known&) = default;
  };
  struct Parts {
    const Trace& slots;
    const RateModel& believed;
    TrainingChannel* training = nullptr;
    std::function<JobNumber(JobId)> number;
    /// Believed seconds of the whole job; what its work is counted in.
    std::function<Duration(JobId)> whole;
    /// Of one that does not say how long it is: seconds of an iteration under the conditions that
    /// it asked for, if jobs of its kind have shown them.
    std::function<std::optional<double>(JobId)> seconds_per_iteration = {};
    /// What has changed, for people.
    std::function<void(JobId, const ProgressEstimate&)> shown = {};
    /// For recall() by another life.
    std::function<void(JobId, const Known&)> noted = {};
  };
  explicit LiveRates(Parts parts);

  /// The attempt is another one: what was measured of the last says nothing of how far it is.
  enum class Attempt : std::uint8_t { New, SameOne };
  void enter(JobId job, PoolId pool, std::span<const Slice> slices, Attempt attempt);
  /// After a restart: it stands where it stood, and runs as fast as the table says.
  void resume(JobId job, PoolId pool, std::span<const Slice> slices, const JobTable& jobs);
  void recall(JobId job, const Known& known);
  /// Nothing if it is not here.
  void leave(JobId job);
  /// Its terms changed.
  void touch(JobId job);
  /// Its code said something that was not to be expected.
  void update(JobId job);

  /// Jobs that were heard and whose rate or work is not what the table says.
  void news(Time now, const JobTable& jobs, std::vector<RateChange>& changes);
  /// All of whom that is true: also those whose conditions have changed. Costs what changed.
  void rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes);

  /// What a job was measured to do; for those who learn from it. Nothing: it said too little.
  struct Measured {
    double seconds_per_iteration = 0;       // under the conditions of now
    double believed = 1;                    // its rate by belief alone under these
    std::optional<double> alone_seconds{};  // measured of this job when nobody was on its devices
    std::vector<JobId> company{};           // on its devices now
  };
  [[nodiscard]] std::optional<Measured> measured(JobId job) const;

 private:
  struct Row {
    bool is_here = false;
    double believed = 1;
    Known known;
    double per_second = 0;     // as last measured under these conditions; 0 = not yet
    double alone_seconds = 0;  // of an iteration, when it was last alone on its devices
    bool has_reported = false;
    bool is_measured = false;      // under these conditions, also if before a restart
    bool is_resumed = false;       // and has not spoken since
    bool has_changed = false;      // its conditions, since the table was told
    std::vector<JobId> company{};  // on its devices when it was last rated by belief
  };
  [[nodiscard]] RateBasis basis_of(const Row& row, bool speaks) const noexcept;
  void change_conditions(JobId job);
  void believe(JobId job, double rate, const JobTable& jobs);
  void look_at(JobId job, Time now, const JobTable& jobs, std::vector<RateChange>& changes);
  [[nodiscard]] double work_per_iteration(JobId job, const MeasuredProgress& progress);

  Parts parts_;
  Neighbourhood neighbours_;
  std::vector<Row> rows_;              // by slot
  std::vector<RateChange> by_belief_;  // scratch
  std::set<JobId> dirty_;              // to be looked at
  std::vector<JobId> company_;         // scratch
};

/// The nearest step of the scale; `now` if that is near enough, so that noise changes nothing.
[[nodiscard]] double step_near(double ratio, double now) noexcept;

}  // namespace berth
