// One round of Pollux in one pool: whose sizes are decided, what a speedup is measured against, and
// who carries the decision out. Lives as long as the pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "policies/goodput/resizer.h"
#include "policies/kit/pass.h"

namespace berth::pollux {

struct PoolRound {
  Pass& pass;
  goodput::Jobs& models;
  goodput::Resizer& resizer;
  PoolId pool;
  std::span<const JobId> jobs;  // that belong to the pool, by id
  std::int32_t share = 1;       // GPUs: a speedup is measured against what a job does with these
  double p = -1;                // of the mean of speedups

  [[nodiscard]] std::int32_t largest_node() const { return pass.view.cluster.largest_node(pool); }
  [[nodiscard]] const goodput::Table& table(JobId job) const {
    return models.table(pass.view, job, pool);
  }
  /// It holds devices and is to keep them.
  [[nodiscard]] bool is_pinned(JobId job) const {
    return pass.plan.holds(job) && models.is_pinned(pass.view, job);
  }
  /// Goodput with the share, or with the nearest size the job can run at.
  [[nodiscard]] double fair_goodput(JobId job) const {
    const goodput::Table& goodputs = table(job);
    const ElasticRange& range = models.range(job);
    const std::int32_t from = std::clamp(share, range.least, range.most);
    const auto at = [&](std::int32_t gpus) {
      return goodputs.goodput(gpus, gpus > largest_node());
    };
    for (std::int32_t gpus = from; gpus >= range.least; --gpus) {
      if (at(gpus) > 0) return at(gpus);
    }
    for (std::int32_t gpus = from; gpus <= range.most; ++gpus) {
      if (at(gpus) > 0) return at(gpus);
    }
    return 1;
  }
};

}  // namespace berth::pollux
