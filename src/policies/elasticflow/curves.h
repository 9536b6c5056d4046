// How fast a job would be on which number of GPUs, and how it would run there. Sizes are powers of
// two; the whole batch of a job stays what it is, so on more GPUs each has less of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/view.h"
#include "policies/common/elastic.h"
#include "policies/elasticflow/shares.h"
#include "policies/kit/memo.h"

namespace berth::elasticflow {

/// Where its part of the batch does not fit on a device, it is accumulated.
[[nodiscard]] Terms terms_for(const View& view, JobId job, PoolId pool, std::int32_t gpus);

class Curves {
 public:
  explicit Curves(const ElasticRule& elastic) : elastic_(elastic) {}
  /// Only sizes that are faster than all smaller ones, and that the pool has; empty if it has none.
  /// Stays where it is.
  [[nodiscard]] const SpeedCurve& of(const View& view, JobId job, PoolId pool);

 private:
  [[nodiscard]] SpeedCurve make(const View& view, JobId job, PoolId pool) const;

  ElasticRule elastic_;
  Memo<KindId, std::vector<std::optional<SpeedCurve>>> curves_;  // by pool
};

}  // namespace berth::elasticflow
