// Finish-time fairness of an app (a set of jobs that belong together): rho = T_sh / T_id, when it
// will end here over when it would have ended on a private share of the cluster. Also how an app
// splits the GPUs it has among its jobs, which decides what more of them are worth to it. Seconds
// as doubles; nothing is known here of devices or of the scheduler.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "policies/common/partial_allocation.h"

namespace berth::themis {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// How many apps were active, as an integral over time, so that an average over the life of any app
/// is O(1).
class ActiveApps {
 public:
  void change(Time now, std::int32_t by);
  [[nodiscard]] std::int32_t count() const noexcept { return count_; }
  /// App-seconds since time zero.
  [[nodiscard]] double integral(Time now) const noexcept;
  /// Between then and now; the present number if no time has passed.
  [[nodiscard]] double average(Time then, double integral_then, Time now) const noexcept;

 private:
  Time since_{};
  double integral_ = 0;
  std::int32_t count_ = 0;
};

/// Seconds a job of the app still needs with so many GPUs (at least one).
class JobTimes {
 public:
  virtual ~JobTimes() = default;
  [[nodiscard]] virtual double seconds(std::size_t job, std::int32_t gpus) const = 0;
};

struct SplitJob {
  std::int32_t unit = 1;  // GPUs come in multiples of this
  std::int32_t most = 1;  // more than this is no gain
  std::int32_t held = 0;
  bool can_grow = true;  // takes part in what is offered now
};

/// The GPUs of an app among its unfinished jobs: one unit each, in the order given (longest without
/// first), then unit by unit to the job with the longest time left.
class AppSplit {
 public:
  AppSplit(std::vector<SplitJob> jobs, const JobTimes& times)
      : jobs_(std::move(jobs)), times_(&times) {}

  [[nodiscard]] std::span<const SplitJob> jobs() const noexcept { return jobs_; }
  [[nodiscard]] std::int32_t gpus() const noexcept;
  /// Until all its jobs are done: the longest of them, or, while some job has nothing, all in turn
  /// on what there is.
  [[nodiscard]] double seconds_left() const;
  /// Who gets the next unit, if one of at most `most` GPUs is wanted.
  [[nodiscard]] std::optional<std::size_t> next(std::int32_t most) const;
  /// Gives it that unit.
  void give(std::size_t job) { jobs_[job].held += jobs_[job].unit; }

 private:
  std::vector<SplitJob> jobs_;
  const JobTimes* times_;
};

/// What an app bids: a row per unit, and which job each unit is for.
struct AppBid {
  BidCurve curve;
  std::vector<std::uint32_t> jobs;  // of the unit that leads to row i + 1
};

/// 1 / rho for every number of GPUs up to `most` that the app can use.
[[nodiscard]] AppBid make_bid(AppSplit split, double elapsed, double ideal, std::int32_t most);

/// How many of n apps an offer is shown to: the worst-off 1 - f of them, at least one.
[[nodiscard]] std::size_t bidders_among(std::size_t apps, double f) noexcept;

}  // namespace berth::themis
