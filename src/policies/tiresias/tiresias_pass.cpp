// The scheduling pass of Tiresias: down the queues, runners and waiters of each, against what the
// higher queues left.
#include <algorithm>

#include "policies/tiresias/tiresias.h"

namespace berth {

void Tiresias::decide(const View& view, Plan& plan, Rng&) {
  if (last_pass_ && view.now < *last_pass_ + options_.min_interval) return;
  last_pass_ = view.now;
  holders_.clear();
  refresh_ranks(view);
  fire_timers(view);
  blocked_.assign(view.shapes.size(), false);
  for (;;) {
    const Plan::Mark mark = plan.mark();
    steps_.clear();
    displaced_ = false;
    schedule(view, plan);
    if (carry_out(view, plan)) break;
    plan.rollback(mark);
    undo(view, 0);
  }
  settle(view);
}

void Tiresias::schedule(const View& view, const Plan&) {
  room_.resize(view.cluster.pools());
  for (std::uint32_t p = 0; p < room_.size(); ++p) room_[p] = view.cluster.usable_gpus(PoolId{p});
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    Queue& queue = queues_[q];
    evicted_.clear();
    if (is_ranked(q)) {
      schedule_by_index(view, q);
    } else {
      schedule_in_order(view, q);
    }
    queue_evicted(view, q);
    for (std::size_t p = 0; p < room_.size(); ++p) room_[p] -= queue.used[p];
  }
}

/// Runners in the order of their grants, then waiters from head to tail: a waiter never evicts a
/// runner of its own queue. The runners are walked only when a higher queue took something away.
void Tiresias::schedule_in_order(const View& view, std::size_t q) {
  Queue& queue = queues_[q];
  bool over = false;
  for (std::size_t p = 0; p < room_.size(); ++p) over = over || queue.used[p] > room_[p];
  if (over) {
    left_ = room_;
    runners_.for_each(q, [&](JobId job) {
      std::int64_t& room = left_[rows_[job.value].pool.value];
      if (view.gpus(job) <= room) {
        room -= view.gpus(job);
      } else {
        evict(view, q, job);
      }
    });
  }
  while (const auto candidate = best_waiter(view, q)) grant(view, q, *candidate);
}

/// Everybody by index: runners and waiters merge into one walk. What does not fit at its turn never
/// fits later in the same walk, because room only shrinks.
void Tiresias::schedule_by_index(const View& view, std::size_t q) {
  Queue& queue = queues_[q];
  bool over = false;
  for (std::size_t p = 0; p < room_.size(); ++p) over = over || queue.used[p] > room_[p];
  const auto is_here = [&](JobId job) { return rows_[job.value].queue == q; };
  const bool nobody_waits =
      queue.waiting.empty() && queue.unseen.empty() && std::ranges::none_of(holders_, is_here);
  if (!over && nobody_waits) return;
  if (!over) {
    // If everybody gets a place the order decides nothing, and the runners need not be ranked.
    const std::size_t before = steps_.size();
    while (const auto candidate = best_waiter(view, q)) grant(view, q, *candidate);
    const auto still_waits = [&](JobId job) { return is_here(job) && !rows_[job.value].runs; };
    if (queue.waiting.empty() && queue.unseen.empty() &&
        std::ranges::none_of(holders_, still_waits))
      return;
    undo(view, before);
  }
  order_.clear();
  runners_.for_each(q, [&](JobId job) { order_.push_back(index_key(view, job, q)); });
  std::ranges::sort(order_);
  std::ranges::fill(queue.used,
                    0);  // the walk starts from nothing granted; kept runners add up again
  for (const OrderKey& runner : order_) {
    for (auto candidate = best_waiter(view, q); candidate && candidate->key < runner;
         candidate = best_waiter(view, q)) {
      grant(view, q, *candidate);
    }
    const PoolId pool = rows_[runner.job.value].pool;
    const std::int64_t gpus = view.gpus(runner.job);
    queue.used[pool.value] += gpus;
    if (queue.used[pool.value] > room_[pool.value])
      evict(view, q, runner.job);  // takes its GPUs off again
  }
  while (const auto candidate = best_waiter(view, q)) grant(view, q, *candidate);
}

std::optional<PoolId> Tiresias::pool_with_room(const Queue& queue, const Shape& shape) const {
  for (const PoolId pool : shape.pools) {
    if (room_[pool.value] - queue.used[pool.value] >= shape.gpus) return pool;
  }
  return std::nullopt;
}

std::optional<Tiresias::Candidate> Tiresias::best_waiter(const View& view, std::size_t q) {
  Queue& queue = queues_[q];
  std::optional<Candidate> best;
  const auto offer = [&](const OrderKey& key, ShapeId shape, ShapeQueues* source) {
    if (best && !(key < best->key)) return;
    if (const auto pool = pool_with_room(queue, view.shapes[shape]))
      best = Candidate{key, *pool, shape, source};
  };
  for (const ShapeId shape : queue.waiting.active()) {
    if (!blocked_[shape.value]) offer(queue.waiting.top(shape), shape, &queue.waiting);
  }
  for (const ShapeId shape : queue.unseen.active()) {
    if (!blocked_[shape.value])
      offer(index_key(view, queue.unseen.top(shape).job, q), shape, &queue.unseen);
  }
  for (const JobId job : holders_) {
    const JobRow& row = rows_[job.value];
    if (row.runs || row.queue != q) continue;
    const OrderKey key = is_ranked(q) ? index_key(view, job, q) : OrderKey{row.entry, job};
    const bool fits = room_[row.pool.value] - queue.used[row.pool.value] >= view.gpus(job);
    if (fits && (!best || key < best->key))
      best = Candidate{key, row.pool, view.jobs.shape[job], nullptr};
  }
  return best;
}

void Tiresias::grant(const View& view, std::size_t q, const Candidate& candidate) {
  const JobId job = candidate.key.job;
  if (candidate.source != nullptr) candidate.source->pop(candidate.shape);
  JobRow& row = rows_[job.value];
  row.pool = candidate.pool;
  row.runs = true;
  runners_.push_back(q, job);
  queues_[q].used[candidate.pool.value] += view.gpus(job);
  steps_.push_back({.job = job, .granted = true, .held = candidate.source == nullptr});
}

void Tiresias::evict(const View& view, std::size_t q, JobId job) {
  JobRow& row = rows_[job.value];
  runners_.remove(q, job);
  row.runs = false;
  queues_[q].used[row.pool.value] -= view.gpus(job);
  evicted_.push_back(job);
  steps_.push_back({.job = job, .granted = false, .held = false});
}

/// Evicted runners wait ahead of those that were already waiting, in the order in which they ran.
void Tiresias::queue_evicted(const View& view, std::size_t q) {
  Queue& queue = queues_[q];
  queue.front -= static_cast<std::int64_t>(evicted_.size());
  std::int64_t entry = queue.front;
  for (const JobId job : evicted_) {
    rows_[job.value].entry = entry++;
    enqueue(view, job);
  }
}

bool Tiresias::carry_out(const View& view, Plan& plan) {
  for (const Step& step : steps_) {
    if (!step.granted && !rows_[step.job.value].runs) plan.preempt(step.job, Reason::Priority);
  }
  for (const JobId job : holders_) {
    if (!rows_[job.value].runs) plan.preempt(job, Reason::Demotion);
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {  // displaced runners add steps
    const Step step = steps_[i];
    if (!step.granted || step.held || plan.holds(step.job)) continue;
    if (plan.try_start_in(rows_[step.job.value].pool, step.job)) continue;
    if (try_start_evicting(view, plan, step.job)) continue;
    blocked_[plan.shape_of(step.job).value] = true;
    return false;
  }
  return true;
}

/// Takes back the steps of this pass but the first `kept`.
void Tiresias::undo(const View& view, std::size_t kept) {
  for (std::size_t i = steps_.size(); i-- > kept;) {
    const Step& step = steps_[i];
    JobRow& row = rows_[step.job.value];
    Queue& queue = queues_[row.queue];
    if (step.granted) {
      runners_.remove(row.queue, step.job);
      row.runs = false;
      queue.used[row.pool.value] -= view.gpus(step.job);
      if (!step.held) enqueue(view, step.job);
    } else {
      leave_queue(view, step.job);
      runners_.put_back(row.queue, step.job);
      row.runs = true;
      queue.used[row.pool.value] += view.gpus(step.job);
    }
  }
  steps_.resize(kept);
}

/// Books the waiting times of the jobs that changed, and remembers whose timers are to be set. Who
/// was evicted in this pass was no candidate for other pools in it.
void Tiresias::settle(const View& view) {
  const auto goes_on = [&](JobId job) {
    const Shape& shape = view.shape(job);
    return std::ranges::any_of(shape.pools, [&](PoolId pool) {
      return pool != rows_[job.value].pool && view.cluster.free_gpus(pool) >= shape.gpus;
    });
  };
  has_room_elsewhere_ = false;
  for (const Step& step : steps_) {
    JobRow& row = rows_[step.job.value];
    ++row.timer;
    if (!step.granted) {
      row.waits_since = view.now;
      stopped_.push_back(step.job);
      has_room_elsewhere_ = has_room_elsewhere_ || (!row.runs && goes_on(step.job));
      continue;
    }
    fresh_.push_back(step.job);
    const bool has_run = view.jobs.attained(step.job, view.now) > row.base;
    if (!step.held && has_run) row.waited += view.now - row.waits_since;
  }
  for (const JobId job : holders_) {
    JobRow& row = rows_[job.value];
    if (row.runs) continue;
    row.waits_since = view.now;
    stopped_.push_back(job);
    has_room_elsewhere_ = has_room_elsewhere_ || goes_on(job);
    enqueue(view, job);
  }
}

}  // namespace berth
