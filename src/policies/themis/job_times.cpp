#include "policies/themis/job_times.h"

#include <algorithm>
#include <array>

#include "policies/kit/beliefs.h"

namespace berth::themis {

namespace {

constexpr std::array<double, kLevels> kClose{1, 1, 1, 1.2, 1.6, 2.2};
constexpr std::array<double, kLevels> kAnywhere{1, 1, 1, 1, 1.1, 1.2};

LocalityLabel label_of(const View& view, JobId job, std::int32_t gpus) {
  const Profile& profile = view.believed().profile(view.jobs.profile[job]);
  return locality_label(
      locality_sensitivity(profile.iteration, profile.batch, gpus, view.cluster.cluster().links));
}

}  // namespace

double class_slowdown(LocalityLabel label, Level level) noexcept {
  const bool strict = label == LocalityLabel::Strict;
  return (strict ? kClose : kAnywhere)[static_cast<std::size_t>(level)];
}

double job_rate(const View& view, JobId job, PoolId pool, std::int32_t gpus, Level level,
                Slowdown slowdown) {
  if (slowdown == Slowdown::Believed) return believed_rate(view, job, pool, gpus, level);
  return static_cast<double>(gpus) / view.gpus(job) /
         class_slowdown(label_of(view, job, gpus), level);
}

bool distance_counts(const View& view, Slowdown slowdown) {
  return slowdown == Slowdown::ByClass || view.believed().effects().locality;
}

double ViewedTimes::seconds(std::size_t job, std::int32_t gpus) const {
  const Row& row = rows_[job];
  if (row.overrun > 0) return row.overrun;
  const Level level = row.level ? *row.level : view_->believed().best_level(row.pool, gpus);
  return row.left / job_rate(*view_, row.job, row.pool, gpus, level, slowdown_);
}

}  // namespace berth::themis
