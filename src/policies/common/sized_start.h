// What policies that choose sizes ahead of time share: how much a job is believed to have left, how
// large it may become, and how a planned size is granted when the placement cannot make it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/plan.h"
#include "core/view.h"
#include "policies/common/elastic.h"

namespace berth {

/// Reference seconds. A job that has outlived its estimate is taken to be half done.
[[nodiscard]] inline double believed_left(const View& view, JobId job) {
  Duration left = view.estimated_left(job);
  if (left <= Duration::zero()) left = view.jobs.work_done(job, view.now);
  return to_seconds(std::max(left, Duration{1}));
}

/// Sizes the job may have and the pool could ever give it.
[[nodiscard]] inline ElasticRange range_in(const View& view, JobId job, PoolId pool,
                                           const ElasticRule& rule) {
  ElasticRange range = elastic_range(view, job, rule);
  const auto all = static_cast<std::int32_t>(view.cluster.usable_gpus(pool));
  range.most = std::max(range.least, std::min(range.most, all));
  return range;
}

/// Starts it with so many devices, or, where cores, memory or closeness forbid that size, with what
/// it asked for or a half, a quarter, ... of them. A size that can never be placed would otherwise
/// be planned again and again.
[[nodiscard]] inline bool try_start_up_to(Plan& plan, const View& view, JobId job, PoolId pool,
                                          std::int32_t gpus, const ElasticRange& range,
                                          Reason reason) {
  if (plan.try_start_sized(pool, job, gpus, reason)) return true;
  const std::int32_t asked = view.gpus(job);
  if (range.least <= asked && asked < gpus && plan.try_start_sized(pool, job, asked, reason))
    return true;
  for (std::int32_t size = gpus / 2; size >= range.least; size /= 2) {
    if (plan.try_start_sized(pool, job, size, reason)) return true;
  }
  return false;
}

}  // namespace berth
