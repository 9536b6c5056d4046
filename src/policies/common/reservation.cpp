#include "policies/common/reservation.h"

#include <algorithm>

namespace berth {

namespace {
constexpr Duration kOverrun = std::chrono::seconds{1};  // a job past its estimate ends "any moment"
constexpr Duration kTick{1};

/// An end to come is believed as it is: nobody may jump because it is near.
Time believed_end(Time end, Time now) { return end > now ? end : now + kOverrun; }
}  // namespace

Reservation::Shadow Reservation::by_count(const View& view, const Shape& shape, PoolId pool) const {
  const std::int64_t free = view.cluster.free_gpus(pool);
  const auto* last = ends_.pool(pool).reach(shape.gpus - free);
  if (last == nullptr) return {.pool = pool};
  const Time at = believed_end(last->key.at, view.now);
  const std::int64_t freed = ends_.pool(pool).sum_before({at + Duration{1}, JobId{0}});
  return {.pool = pool, .at = at, .last = last->key.at, .extra = free + freed - shape.gpus};
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
    shadow.last = entry.key.at;
    shadow.at = believed_end(shadow.last, view.now);
    return false;
  });
  return shadow;
}

void Reservation::make(const View& view, const Plan& plan, const Shape& shape) {
  const bool counting = view.cluster.mode() == ClusterState::Mode::Count ||
                        (shape.locality == Locality::Relaxed && !shape.needs_side_resources());
  shadow_ = {.pool = shape.pools.front()};
  std::vector<Slice> reserved;
  rivals_.clear();
  const auto add_rival =
      [&](const Shadow& rival) {  // one that is overdue moves along with the clock
        if (rival.at != kNever && rival.last > view.now) rivals_.push_back({.at = rival.at});
      };
  for (const PoolId pool : shape.pools) {
    const Shadow shadow = counting ? by_count(view, shape, pool) : by_map(view, plan, shape, pool);
    if (shadow.at >= shadow_.at) {
      add_rival(shadow);
      continue;
    }
    add_rival(shadow_);
    for (Rival& rival : rivals_) rival.wins_ties = true;  // they come before it in order
    shadow_ = shadow;
    reserved = reserved_;
  }
  reserved_ = std::move(reserved);
}

/// As long as the end it waits for is to come nothing grows. From then on the promise moves along
/// with the clock: past the ends of other jobs, whose GPUs are then left beside it, and past what
/// other pools promise.
Time Reservation::next_change(const View& view) const {
  if (shadow_.at == kNever) return kNever;
  if (shadow_.last > view.now) return shadow_.last;
  Time next = kNever;
  const RankedSet<EndKey>& ends = ends_.pool(shadow_.pool);
  const std::int64_t seen = ends.sum_before({view.now + kOverrun + kTick, JobId{0}});
  if (const auto* end = ends.reach(seen + 1); end != nullptr && !shadow_.by_map)
    next = end->key.at - kOverrun;
  for (const Rival& rival : rivals_) {
    const Time overtaken = rival.at - kOverrun + (rival.wins_ties ? Duration::zero() : kTick);
    if (overtaken > view.now) next = std::min(next, overtaken);
  }
  return next;
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
