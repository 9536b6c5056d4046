#include "policies/themis/job_times.h"

#include <algorithm>
#include <array>

#include "perf/locality.h"
#include "policies/common/believed_rate.h"

namespace berth::themis {

namespace {

constexpr std::array<double, kLevels> kClose{1, 1, 1, 1.2, 1.6, 2.2};
constexpr std::array<double, kLevels> kAnywhere{1, 1, 1, 1, 1.1, 1.2};

double class_slowdown(const View& view, JobId job, std::int32_t gpus, Level level) {
  const Profile& profile = view.believed().profile(view.jobs.profile[job]);
  const auto sensitivity =
      locality_sensitivity(profile.iteration, profile.batch, gpus, view.cluster.cluster().links);
  const bool strict = locality_label(sensitivity) == LocalityLabel::Strict;
  return (strict ? kClose : kAnywhere)[static_cast<std::size_t>(level)];
}

}  // namespace

double job_rate(const View& view, JobId job, PoolId pool, std::int32_t gpus, Level level,
                Slowdown slowdown) {
  if (slowdown == Slowdown::Believed) return believed_rate(view, job, pool, gpus, level);
  return static_cast<double>(gpus) / view.gpus(job) / class_slowdown(view, job, gpus, level);
}

bool distance_counts(const View& view, Slowdown slowdown) {
  return slowdown == Slowdown::ByClass || view.believed().effects().locality;
}

double ViewedTimes::seconds(std::size_t job, std::int32_t gpus) const {
  const Row& row = rows_[job];
  if (row.overrun > 0) return row.overrun;
  const Level level = row.has_level ? row.level : view_->believed().best_level(row.pool, gpus);
  return row.left / job_rate(*view_, row.job, row.pool, gpus, level, slowdown_);
}

}  // namespace berth::themis
