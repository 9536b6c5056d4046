// What is believed of a job by its kind: how it would run somewhere by itself. Answers of the rate
// model cost as much as a small simulation and are the same for all jobs of a kind, so each is
// computed once. Everything is in reference seconds of work per second, relative to the run time
// the job was estimated with.
#pragma once

#include <cstdint>
#include <vector>

#include "core/view.h"
#include "policies/kit/memo.h"

namespace berth {

/// A job of this kind by itself on so many devices of a pool, as close together as they can be,
/// with its own batch and terms.
[[nodiscard]] inline Standing standing_of(const View& view, KindId id, PoolId pool,
                                          std::int32_t gpus) {
  const Kind& kind = view.kinds[id];
  return {.profile = kind.profile,
          .pool = pool,
          .reference = kind.reference,
          .gpus = gpus,
          .wanted = kind.wanted,
          .batch = kind.batch,
          .level = view.believed().best_level(pool, gpus)};
}

[[nodiscard]] inline double believed_rate(const View& view, JobId job, PoolId pool,
                                          std::int32_t gpus, Level level) {
  Standing standing = standing_of(view, view.jobs.kind[job], pool, gpus);
  standing.level = level;
  return view.believed().alone(standing);
}
[[nodiscard]] inline double believed_rate(const View& view, JobId job, PoolId pool,
                                          std::int32_t gpus) {
  return view.believed().alone(standing_of(view, view.jobs.kind[job], pool, gpus));
}
/// Of its devices' memory, with its own batch.
[[nodiscard]] inline std::int32_t believed_memory_mib(const View& view, JobId job,
                                                      const Terms& terms = {}) {
  return view.believed().memory_mib(view.jobs.profile[job], view.jobs.batch[job], terms);
}

class Beliefs {
 public:
  /// With as many devices as it asks for.
  [[nodiscard]] double rate(const View& view, JobId job, PoolId pool) {
    return rates(view, job)[pool.value];
  }
  /// The same in each pool, by PoolId; 0 where the job cannot go.
  [[nodiscard]] const std::vector<double>& rates(const View& view, JobId job) {
    const KindId kind = view.jobs.kind[job];
    return rates_.of(kind, [&] {
      std::vector<double> rates(view.cluster.pools());
      for (const PoolId pool : view.shape(job).pools)
        rates[pool.value] = view.believed().alone(standing_of(view, kind, pool, view.gpus(job)));
      return rates;
    });
  }
  /// By number of devices, from 0 (which does nothing) to at least `most`.
  [[nodiscard]] const std::vector<double>& curve(const View& view, JobId job, PoolId pool,
                                                 std::int32_t most) {
    const KindId kind = view.jobs.kind[job];
    auto& in_pools =
        curves_.of(kind, [&] { return std::vector<std::vector<double>>(view.cluster.pools()); });
    std::vector<double>& curve = in_pools[pool.value];
    if (curve.empty()) curve.push_back(0);
    while (curve.size() <= static_cast<std::size_t>(most)) {
      const auto gpus = static_cast<std::int32_t>(curve.size());
      curve.push_back(view.believed().alone(standing_of(view, kind, pool, gpus)));
    }
    return curve;
  }

 private:
  Memo<KindId, std::vector<double>> rates_;
  Memo<KindId, std::vector<std::vector<double>>> curves_;
};

}  // namespace berth
