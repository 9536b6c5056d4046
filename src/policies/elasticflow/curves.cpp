#include "policies/elasticflow/curves.h"

#include <algorithm>

#include "policies/kit/beliefs.h"

namespace berth::elasticflow {

namespace {

/// Powers of two in the range; what it asked for if there is none.
std::vector<std::int32_t> sizes_in(const ElasticRange& range, std::int32_t wanted) {
  std::vector<std::int32_t> sizes;
  for (std::int32_t size = 1; size <= range.most; size *= 2) {
    if (size >= range.least) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(std::clamp(wanted, range.least, range.most));
  return sizes;
}

}  // namespace

Terms terms_for(const View& view, JobId job, PoolId pool, std::int32_t gpus) {
  Terms terms;
  const std::int32_t wanted = view.gpus(job);
  if (gpus == wanted) return terms;
  const RateModel& believed = view.believed();
  const std::int32_t known = view.jobs.batch[job];
  const std::int32_t own =
      known > 0 ? known : std::max(1, believed.profile(view.jobs.profile[job]).batch);
  terms.batch = std::max(1, static_cast<std::int32_t>(std::int64_t{own} * wanted / gpus));
  const std::int64_t room = believed.device_memory_mib(pool);
  while (room > 0 && terms.batch > own * terms.sub_steps &&
         believed_memory_mib(view, job, terms) > room)
    ++terms.sub_steps;
  return terms;
}

const SpeedCurve& Curves::of(const View& view, JobId job, PoolId pool) {
  auto& in_pools = curves_.of(view.jobs.kind[job], [&] {
    return std::vector<std::optional<SpeedCurve>>(view.cluster.pools());
  });
  std::optional<SpeedCurve>& curve = in_pools[pool.value];
  if (!curve) curve = make(view, job, pool);
  return *curve;
}

SpeedCurve Curves::make(const View& view, JobId job, PoolId pool) const {
  SpeedCurve curve;
  for (const std::int32_t gpus : sizes_in(elastic_range(view, job, elastic_), view.gpus(job))) {
    if (gpus > view.cluster.cluster().total_gpus(pool)) break;
    Standing standing = standing_of(view, view.jobs.kind[job], pool, gpus);
    standing.terms = terms_for(view, job, pool, gpus);
    if (!curve.add(gpus, view.believed().alone(standing))) break;
  }
  return curve;
}

}  // namespace berth::elasticflow
