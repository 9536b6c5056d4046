#include "policies/common/reservation.h"

#include <algorithm>

namespace berth {

namespace {
constexpr Duration kOverrun = std::chrono::seconds{1};  // a job past its estimate ends "any moment"
}

Reservation::Shadow Reservation::by_count(const View& view, const Shape& shape, PoolId pool) const {
  const std::int64_t free = view.cluster.free_gpus(pool);
  const auto* last = ends_.pool(pool).reach(shape.gpus - free);
  if (last == nullptr) return {.pool = pool};
  const Time at = std::max(last->key.at, view.now + kOverrun);
  const std::int64_t freed = ends_.pool(pool).sum_before({at + Duration{1}, JobId{0}});
  return {.pool = pool, .at = at, .extra = free + freed - shape.gpus};
}

/// Releases running jobs one by one on a copy of the cluster until the job can be placed there.
Reservation::Shadow Reservation::by_map(const View& view, const Plan& plan, const Shape& shape,
                                        PoolId pool) {
  ClusterState future = view.cluster;
  Shadow shadow{.pool = pool, .by_map = true};
  ends_.pool(pool).for_each([&](const RankedSet<EndKey>::Entry& entry) {
    const JobId job = entry.key.job;
    if (!plan.holds(job)) return true;
    future.give(plan.slices(job), view.shape(job), job, plan.use_of(job));
    reserved_.clear();
    if (!plan.place_on(future, shape, pool, reserved_)) return true;
    shadow.at = std::max(entry.key.at, view.now + kOverrun);
    return false;
  });
  return shadow;
}

void Reservation::make(const View& view, const Plan& plan, const Shape& shape) {
  const bool counting = view.cluster.mode() == ClusterState::Mode::Count ||
                        (shape.locality == Locality::Relaxed && !shape.needs_side_resources());
  shadow_ = {.pool = shape.pools.front()};
  std::vector<Slice> reserved;
  for (const PoolId pool : shape.pools) {
    const Shadow shadow = counting ? by_count(view, shape, pool) : by_map(view, plan, shape, pool);
    if (shadow.at >= shadow_.at) continue;
    shadow_ = shadow;
    reserved = reserved_;
  }
  reserved_ = std::move(reserved);
}

std::optional<Duration> Reservation::window(const View& view, const Shape& shape,
                                            PoolId pool) const {
  const bool free_to_use =
      pool != shadow_.pool || shadow_.at == kNever || shadow_.by_map || shape.gpus <= shadow_.extra;
  if (free_to_use) return std::nullopt;
  return shadow_.at - view.now;
}

bool Reservation::outlasts(const View& view, PoolId pool, JobId job) const {
  return pool == shadow_.pool && shadow_.at != kNever &&
         view.now + view.estimated_left(job) > shadow_.at;
}

bool Reservation::spares(const View& view, const Plan& plan, JobId job) {
  const auto is_reserved = [&](const Slice& mine) {
    return std::ranges::any_of(reserved_, [&](const Slice& kept) {
      return kept.node == mine.node && (kept.devices & mine.devices) != 0;
    });
  };
  if (shadow_.by_map && std::ranges::any_of(plan.slices(job), is_reserved)) return false;
  shadow_.extra -= view.gpus(job);
  return true;
}

}  // namespace berth
