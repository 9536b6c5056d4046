#include "policies/easy/easy.h"

#include <algorithm>

namespace berth {

namespace {
constexpr Duration kOverrun = std::chrono::seconds{1};  // a job past its estimate ends "any moment"
}

void Easy::begin(const View& view) { ends_.begin(view); }

void Easy::on_arrival(const View& view, JobId job) {
  if (queues_.size() < view.shapes.size()) {
    queues_.resize(view.shapes.size());
    is_active_.resize(view.shapes.size());
  }
  const ShapeId shape = view.jobs.shape[job];
  if (!is_active_[shape.value]) active_.push_back(shape);
  is_active_[shape.value] = true;
  queues_[shape.value].insert(job, view.estimated_left(job));
}

void Easy::on_departure(const View&, JobId job) { ends_.remove(job); }

void Easy::on_requeue(const View& view, JobId job) {
  ends_.remove(job);
  on_arrival(view, job);
}

/// Cancelled jobs leave when they would be looked at; a shape without jobs leaves the list.
void Easy::drop_departed(const View& view) {
  std::erase_if(active_, [&](ShapeId shape) {
    EstimateQueue& queue = queues_[shape.value];
    for (auto first = queue.first(); first && !view.jobs.is_waiting(first->job);
         first = queue.first()) {
      queue.erase(first->position);
    }
    is_active_[shape.value] = !queue.empty();
    return queue.empty();
  });
}

std::optional<ShapeId> Easy::head_shape() const {
  std::optional<ShapeId> head;
  for (const ShapeId shape : active_) {
    if (queues_[shape.value].empty()) continue;
    if (!head || queues_[shape.value].first()->job < queues_[head->value].first()->job)
      head = shape;
  }
  return head;
}

bool Easy::start(const View& view, Plan& plan, const Candidate& candidate, Reason reason) {
  if (!plan.try_start_in(candidate.pool, candidate.found.job, reason)) return false;
  queues_[candidate.shape.value].erase(candidate.found.position);
  ends_.add(view, candidate.pool, candidate.found.job);
  return true;
}

void Easy::start_heads(const View& view, Plan& plan) {
  while (const auto shape = head_shape()) {
    const auto first = *queues_[shape->value].first();
    if (!view.jobs.is_waiting(first.job)) {
      queues_[shape->value].erase(first.position);
      continue;
    }
    const auto& pools = view.shapes[*shape].pools;
    const bool started = std::ranges::any_of(pools, [&](PoolId pool) {
      return start(view, plan, {.shape = *shape, .found = first, .pool = pool}, Reason::Order);
    });
    if (!started) return;
  }
}

Easy::Shadow Easy::count_shadow(const View& view, const Shape& shape, PoolId pool) const {
  const std::int64_t free = view.cluster.free_gpus(pool);
  const auto* last = ends_.pool(pool).reach(shape.gpus - free);
  if (last == nullptr) return {.pool = pool};
  const Time at = std::max(last->key.at, view.now + kOverrun);
  const std::int64_t freed = ends_.pool(pool).sum_before({at + Duration{1}, JobId{0}});
  return {.pool = pool, .at = at, .extra = free + freed - shape.gpus};
}

/// Releases running jobs one by one on a copy of the cluster until the head can be placed there.
Easy::Shadow Easy::map_shadow(const View& view, const Plan& plan, const Shape& shape, PoolId pool) {
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

Easy::Shadow Easy::shadow_of(const View& view, const Plan& plan, ShapeId head) {
  const Shape& shape = view.shapes[head];
  const bool counting = view.cluster.mode() == ClusterState::Mode::Count ||
                        (shape.locality == Locality::Relaxed && !shape.needs_side_resources());
  Shadow best{.pool = shape.pools.front()};
  std::vector<Slice> reserved;
  for (const PoolId pool : shape.pools) {
    const Shadow shadow =
        counting ? count_shadow(view, shape, pool) : map_shadow(view, plan, shape, pool);
    if (shadow.at >= best.at) continue;
    best = shadow;
    reserved = reserved_;
  }
  reserved_ = std::move(reserved);
  return best;
}

std::optional<Easy::Candidate> Easy::candidate_of(const View& view, ShapeId shape,
                                                  const Shadow& shadow) const {
  const Shape& wanted = view.shapes[shape];
  const EstimateQueue& queue = queues_[shape.value];
  std::optional<Candidate> best;
  for (const PoolId pool : wanted.pools) {
    if (view.cluster.free_gpus(pool) < wanted.gpus || is_blocked(view, shape, pool)) continue;
    const bool free_to_use =
        pool != shadow.pool || shadow.at == kNever || shadow.by_map || wanted.gpus <= shadow.extra;
    const auto found = free_to_use ? queue.first() : queue.first_at_most(shadow.at - view.now);
    if (!found || (best && !(found->job < best->found.job))) continue;
    best = Candidate{.shape = shape, .found = *found, .pool = pool};
    best->uses_extra = pool == shadow.pool && shadow.at != kNever &&
                       view.now + view.estimated_left(found->job) > shadow.at;
  }
  return best;
}

bool Easy::touches_reserved(const Plan& plan, JobId job) const {
  return std::ranges::any_of(plan.slices(job), [&](const Slice& mine) {
    return std::ranges::any_of(reserved_, [&](const Slice& kept) {
      return kept.node == mine.node && (kept.devices & mine.devices) != 0;
    });
  });
}

/// Free GPUs and extra only shrink during a pass, so taking the earliest job that qualifies again
/// and again gives what one scan of the queue in order would.
void Easy::backfill(const View& view, Plan& plan, ShapeId head, Shadow shadow) {
  const JobId head_job = queues_[head.value].first()->job;
  const auto head_position = queues_[head.value].first()->position;
  const Duration head_estimate = view.estimated_left(head_job);
  queues_[head.value].erase(head_position);  // the head itself is no candidate
  blocked_.assign(view.shapes.size() * view.cluster.pools(), false);
  for (;;) {
    std::optional<Candidate> best;
    for (const ShapeId shape : active_) {
      if (queues_[shape.value].empty()) continue;
      const auto candidate = candidate_of(view, shape, shadow);
      if (candidate && (!best || candidate->found.job < best->found.job)) best = candidate;
    }
    if (!best) break;
    if (!view.jobs.is_waiting(best->found.job)) {
      queues_[best->shape.value].erase(best->found.position);
      continue;
    }
    const Plan::Mark mark = plan.mark();
    if (!start(view, plan, *best, Reason::Backfill)) {
      block(view, best->shape, best->pool);
      continue;
    }
    if (!best->uses_extra) continue;
    if (shadow.by_map && touches_reserved(plan, best->found.job)) {
      plan.rollback(mark);
      ends_.remove(best->found.job);
      queues_[best->shape.value].restore(best->found.position,
                                         view.estimated_left(best->found.job));
      block(view, best->shape, best->pool);  // its likes would be placed the same way
      continue;
    }
    shadow.extra -= view.gpus(best->found.job);
  }
  queues_[head.value].restore(head_position, head_estimate);
}

void Easy::decide(const View& view, Plan& plan, Rng&) {
  ends_.refresh(view);
  if (kill_overrun_) {
    for (std::uint32_t i = 0; i < ends_.pools(); ++i) {
      while (!ends_.pool(PoolId{i}).empty() && ends_.pool(PoolId{i}).front().key.at <= view.now) {
        const JobId job = ends_.pool(PoolId{i}).front().key.job;
        ends_.remove(job);
        plan.kill(job);
      }
    }
  }
  drop_departed(view);
  start_heads(view, plan);
  const auto head = head_shape();
  if (!head) return;
  bool room_for_any = false;
  for (const ShapeId shape : active_)
    room_for_any =
        room_for_any || (!queues_[shape.value].empty() && plan.has_room(view.shapes[shape]));
  if (room_for_any) backfill(view, plan, *head, shadow_of(view, plan, *head));
}

std::optional<Time> Easy::next_wakeup(const View& view) {
  if (!kill_overrun_) return std::nullopt;
  ends_.refresh(view);
  std::optional<Time> first;
  for (std::uint32_t i = 0; i < ends_.pools(); ++i) {
    if (ends_.pool(PoolId{i}).empty()) continue;
    const Time at = ends_.pool(PoolId{i}).front().key.at;
    if (at > view.now && (!first || at < *first)) first = at;
  }
  return first;
}

}  // namespace berth
