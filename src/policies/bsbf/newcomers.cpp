#include "policies/bsbf/newcomers.h"

#include <cmath>

namespace berth::bsbf {

namespace {

std::optional<std::int32_t> steps_within(const View& view, const Kind& kind,
                                         std::int64_t memory_mib) {
  const Profile& profile = view.believed().profile(kind.profile);
  return fewest_sub_steps(kind.batch > 0 ? kind.batch : profile.batch, [&](std::int32_t sub_batch) {
    return std::ceil(profile.memory_mib(sub_batch)) <= static_cast<double>(memory_mib);
  });
}

}  // namespace

Newcomers::Row& Newcomers::row(const View& view, KindId kind) {
  return rows_.of(kind, [&] {
    Row row;
    for (std::uint32_t pool = 0; pool < view.cluster.pools(); ++pool) {
      // Memory of a device that nobody has described is no limit.
      const std::int64_t memory = view.believed().device_memory_mib(PoolId{pool});
      row.alone.push_back(memory > 0 ? steps_within(view, view.kinds[kind], memory) : 1);
    }
    return row;
  });
}

std::optional<std::int32_t> Newcomers::steps_alone(const View& view, KindId kind, PoolId pool) {
  return row(view, kind).alone[pool.value];
}

std::optional<std::int32_t> Newcomers::steps_beside(const View& view, KindId kind,
                                                    std::int64_t free_mib) const {
  return steps_within(view, view.kinds[kind], free_mib - reserve_mib_);
}

const Beside& Newcomers::beside(const View& view, KindId kind, const PartnerIndex& partners,
                                BucketId bucket) {
  auto& known = row(view, kind).beside;
  if (known.size() <= bucket.value) known.resize(partners.size());
  auto& beside = known[bucket.value];
  if (!beside) beside = compute(view, view.kinds[kind], partners[bucket].group);
  return *beside;
}

Beside Newcomers::compute(const View& view, const Kind& kind, const PartnerGroup& group) const {
  const RateModel& model = view.believed();
  const std::int64_t memory = model.device_memory_mib(group.pool);
  Beside beside;
  if (memory > 0) {
    const auto steps = steps_within(view, kind, memory - group.memory_mib - reserve_mib_);
    if (!steps) return beside;
    beside.sub_steps = *steps;
  }
  beside.fits = true;
  beside.slowdown = {.running = model.profiles().slowdown(group.profile, kind.profile),
                     .newcomer = model.profiles().slowdown(kind.profile, group.profile)};
  const std::int32_t gpus = view.shapes[kind.shape].gpus;
  Standing standing{.profile = kind.profile,
                    .pool = group.pool,
                    .gpus = gpus,
                    .wanted = gpus,
                    .batch = kind.batch,
                    .level = model.best_level(group.pool, gpus)};
  const double whole = model.iteration(standing).total;
  standing.terms.sub_steps = beside.sub_steps;
  beside.stretch = model.iteration(standing).total / whole;
  return beside;
}

}  // namespace berth::bsbf
