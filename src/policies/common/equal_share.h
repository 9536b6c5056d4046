// What a job would have had on an equal part of the cluster, which finish-time fairness compares
// with what it has. Work that was done counts at the rate of the part as it was then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/view.h"

namespace berth {

/// Rate at which a job runs on its n-th part of the cluster.
[[nodiscard]] inline double isolated_rate(std::int64_t gpus, std::size_t jobs,
                                          std::int32_t wanted) noexcept {
  const auto n = static_cast<std::int64_t>(jobs);
  const std::int64_t share = (gpus + n - 1) / n;
  return std::min(1.0, static_cast<double>(share) / wanted);
}

class EqualShares {
 public:
  void begin(const View& view) { rows_.resize(view.jobs.size()); }
  /// Beside so many jobs, itself included.
  [[nodiscard]] static double rate(const View& view, JobId job, std::size_t jobs) noexcept {
    return isolated_rate(std::max<std::int64_t>(1, view.cluster.usable_gpus()), jobs,
                         view.gpus(job));
  }
  /// What each of them has done since the last time, at the rate of the present part.
  void book(const View& view, std::span<const JobId> jobs) {
    for (const JobId job : jobs) {
      Row& row = rows_[job];
      const Duration done = view.jobs.work_done(job, view.now);
      const double seconds = to_seconds(done - row.booked) / rate(view, job, jobs.size());
      // Live, work is set right by what a job reports, also to less than was thought.
      row.seconds = std::max(0.0, row.seconds + seconds);
      row.booked = done;
    }
  }
  /// That its work up to the last booking would have taken.
  [[nodiscard]] double seconds(JobId job) const noexcept { return rows_[job].seconds; }

 private:
  struct Row {
    double seconds = 0;
    Duration booked{};
  };
  Column<JobId, Row> rows_;
};

}  // namespace berth
