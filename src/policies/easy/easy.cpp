#include "policies/easy/easy.h"

#include <algorithm>

namespace berth {

void Easy::begin(const View& view) { reservation_.begin(view); }

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

void Easy::on_departure(const View&, JobId job) { reservation_.ends().remove(job); }

void Easy::on_requeue(const View& view, JobId job) {
  reservation_.ends().remove(job);
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
  reservation_.ends().add(view, candidate.pool, candidate.found.job);
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

std::optional<Easy::Candidate> Easy::candidate_of(const View& view, ShapeId shape) const {
  const Shape& wanted = view.shapes[shape];
  const EstimateQueue& queue = queues_[shape.value];
  std::optional<Candidate> best;
  for (const PoolId pool : wanted.pools) {
    if (view.cluster.free_gpus(pool) < wanted.gpus || is_blocked(view, shape, pool)) continue;
    const auto window = reservation_.window(view, wanted, pool);
    const auto found = window ? queue.first_at_most(*window) : queue.first();
    if (!found || (best && !(found->job < best->found.job))) continue;
    best = Candidate{.shape = shape, .found = *found, .pool = pool};
    best->uses_extra = reservation_.outlasts(view, pool, found->job);
  }
  return best;
}

/// Free GPUs and extra only shrink during a pass, so taking the earliest job that qualifies again
/// and again gives what one scan of the queue in order would.
void Easy::backfill(const View& view, Plan& plan, ShapeId head) {
  const JobId head_job = queues_[head.value].first()->job;
  const auto head_position = queues_[head.value].first()->position;
  const Duration head_estimate = view.estimated_left(head_job);
  queues_[head.value].erase(head_position);  // the head itself is no candidate
  blocked_.assign(view.shapes.size() * view.cluster.pools(), false);
  for (;;) {
    std::optional<Candidate> best;
    for (const ShapeId shape : active_) {
      if (queues_[shape.value].empty()) continue;
      const auto candidate = candidate_of(view, shape);
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
    if (!best->uses_extra || reservation_.spares(view, plan, best->found.job)) continue;
    plan.rollback(mark);
    reservation_.ends().remove(best->found.job);
    queues_[best->shape.value].restore(best->found.position, view.estimated_left(best->found.job));
    block(view, best->shape, best->pool);  // its likes would be placed the same way
  }
  queues_[head.value].restore(head_position, head_estimate);
}

void Easy::decide(const View& view, Plan& plan, Rng&) {
  ExpectedEnds& ends = reservation_.ends();
  ends.refresh(view);
  if (kill_overrun_) {
    for (std::uint32_t i = 0; i < ends.pools(); ++i) {
      while (!ends.pool(PoolId{i}).empty() && ends.pool(PoolId{i}).front().key.at <= view.now) {
        const JobId job = ends.pool(PoolId{i}).front().key.job;
        ends.remove(job);
        plan.kill(job);
      }
    }
  }
  is_reserved_ = false;
  drop_departed(view);
  start_heads(view, plan);
  const auto head = head_shape();
  if (!head) return;
  bool room_for_any = false;
  for (const ShapeId shape : active_)
    room_for_any =
        room_for_any || (!queues_[shape.value].empty() && plan.has_room(view.shapes[shape]));
  if (!room_for_any) return;
  is_reserved_ = true;
  reservation_.make(view, plan, view.shapes[*head]);
  backfill(view, plan, *head);
}

std::optional<Time> Easy::next_wakeup(const View& view) {
  ExpectedEnds& ends = reservation_.ends();
  // What the starts of this pass really cost may have moved the promise.
  const bool moved = ends.refresh(view);
  Time next = kNever;
  if (is_reserved_) next = moved ? view.now + Duration{1} : reservation_.next_change(view);
  for (std::uint32_t i = 0; kill_overrun_ && i < ends.pools(); ++i) {
    if (ends.pool(PoolId{i}).empty()) continue;
    const Time at = ends.pool(PoolId{i}).front().key.at;
    if (at > view.now) next = std::min(next, at);
  }
  if (next == kNever) return std::nullopt;
  return next;
}

}  // namespace berth
