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
  room_.resize(view.cluster.pools());
  limits_by_shape_.assign(view.shapes.size() * room_.size(), {.queue = queues_.size(), .key = {}});
  has_blocked_ = false;
  log_.clear();
  moved_.clear();
  const bool counting = view.cluster.mode() == ClusterState::Mode::Count;
  // A round ends with everybody placed, or is made again without the first who finds no place and
  // whoever of its shape comes behind it. Who
  // left in it has its turn in the next one, and so have those who may use what it left: all of
  // them come behind the job it made way for, so that there is a last round.
  bool has_placed = false;
  for (bool again = true; again;) {
    const Plan::Mark mark = plan.mark();
    const std::size_t moved = moved_.size();
    steps_.clear();
    displaced_.clear();
    has_left_ = false;
    schedule(view, plan);
    if (carry_out(view, plan)) {
      again = !counting && (has_left_ || goes_on_elsewhere(view));
      // Without those left out, jobs before them may have been placed otherwise: they try again on
      // what has become of it.
      const auto is_start = [](const Step& step) { return step.granted && !step.held; };
      has_placed = has_placed || moved_.size() > moved || std::ranges::any_of(steps_, is_start);
      if (!counting && !again && has_blocked_ && has_placed) {
        limits_by_shape_.assign(limits_by_shape_.size(), {.queue = queues_.size(), .key = {}});
        has_blocked_ = has_placed = false;
        again = true;
      }
      log_.insert(log_.end(), steps_.begin(), steps_.end());
      queue_demoted(view);
    } else {
      plan.rollback(mark);
      undo(view, 0);
      moved_.resize(moved);
    }
  }
  settle(view);
}

void Tiresias::schedule(const View& view, const Plan&) {
  for (std::uint32_t p = 0; p < room_.size(); ++p)
    room_[p] = view.cluster.usable_gpus(PoolId{p}) - firm_used_[p];
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

std::optional<PoolId> Tiresias::pool_with_room(const View& view, std::size_t q, ShapeId shape,
                                               const OrderKey& key) const {
  const Shape& wanted = view.shapes[shape];
  for (const PoolId pool : wanted.pools) {
    if (is_blocked(shape, pool, {.queue = q, .key = key})) continue;
    if (room_[pool.value] - queues_[q].used[pool.value] >= wanted.gpus) return pool;
  }
  return std::nullopt;
}

std::optional<Tiresias::Candidate> Tiresias::best_waiter(const View& view, std::size_t q) {
  Queue& queue = queues_[q];
  std::optional<Candidate> best;
  const auto offer = [&](const OrderKey& key, ShapeId shape, WaitingByShape* source) {
    if (best && !(key < best->key)) return;
    if (const auto pool = pool_with_room(view, q, shape, key))
      best = Candidate{key, *pool, shape, source};
  };
  for (const ShapeId shape : queue.waiting.active()) {
    offer(queue.waiting.top(shape), shape, &queue.waiting);
  }
  for (const ShapeId shape : queue.unseen.active()) {
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
  row.firm = !view.request(job).preemptible;
  if (row.firm) {
    firm_used_[candidate.pool.value] += view.gpus(job);
    room_[candidate.pool.value] -= view.gpus(job);
  } else {
    runners_.push_back(q, job);
    queues_[q].used[candidate.pool.value] += view.gpus(job);
  }
  steps_.push_back({.job = job, .granted = true, .held = candidate.source == nullptr});
}

void Tiresias::evict(const View& view, std::size_t q, JobId job) {
  static_cast<void>(q);
  stop_running(view, job);
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
    if (!step.granted && !rows_[step.job.value].runs && plan.holds(step.job))
      plan.preempt(step.job, Reason::Priority);
  }
  for (const JobId job : holders_) {
    if (!rows_[job.value].runs && plan.holds(job)) plan.preempt(job, Reason::Demotion);
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {  // who leaves adds steps
    const Step step = steps_[i];
    if (!step.granted || step.held || plan.holds(step.job)) continue;
    if (!displaced_.empty()) replace_displaced(view, plan, step.job);
    if (plan.try_start_in(rows_[step.job.value].pool, step.job)) continue;
    if (try_make_way(view, plan, step.job)) continue;
    const JobRow& row = rows_[step.job.value];
    const OrderKey key =
        is_ranked(row.queue) ? index_key(view, step.job, row.queue) : OrderKey{row.entry, step.job};
    limits_by_shape_[plan.shape_of(step.job).value * room_.size() + row.pool.value] = {
        .queue = row.queue, .key = key};
    has_blocked_ = true;
    return false;
  }
  replace_displaced(view, plan, std::nullopt);
  return true;
}

/// Takes back the steps of this pass but the first `kept`.
void Tiresias::undo(const View& view, std::size_t kept) {
  for (std::size_t i = steps_.size(); i-- > kept;) {
    const Step& step = steps_[i];
    JobRow& row = rows_[step.job.value];
    Queue& queue = queues_[row.queue];
    if (step.granted) {
      if (row.firm) room_[row.pool.value] += view.gpus(step.job);
      stop_running(view, step.job);
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

/// Who was demoted in this instant and not granted again has lost its devices and waits.
void Tiresias::queue_demoted(const View& view) {
  for (const JobId job : holders_) {
    JobRow& row = rows_[job.value];
    const bool made_way = std::ranges::any_of(
        steps_, [&](const Step& step) { return step.job == job && !step.granted; });
    if (row.runs || made_way) continue;
    row.waits_since = view.now;
    stopped_.push_back(job);
    enqueue(view, job);
  }
  std::erase_if(holders_, [&](JobId job) { return !rows_[job.value].runs; });
}

/// Where GPUs are counted, who was evicted in this pass was no candidate for other pools in it.
bool Tiresias::has_room_elsewhere(const View& view, JobId job) const {
  if (rows_[job.value].runs || view.cluster.mode() != ClusterState::Mode::Count) return false;
  const Shape& shape = view.shape(job);
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    return pool != rows_[job.value].pool && view.cluster.free_gpus(pool) >= shape.gpus;
  });
}

/// Books the waiting times of the jobs that changed, and remembers whose timers are to be set.
void Tiresias::settle(const View& view) {
  has_room_elsewhere_ =
      std::ranges::any_of(stopped_, [&](JobId job) { return has_room_elsewhere(view, job); });
  for (const JobId job : moved_) {
    ++rows_[job.value].timer;
    if (rows_[job.value].runs) fresh_.push_back(job);
  }
  for (const Step& step : log_) {
    JobRow& row = rows_[step.job.value];
    ++row.timer;
    if (!step.granted) {
      row.waits_since = view.now;
      stopped_.push_back(step.job);
      has_room_elsewhere_ = has_room_elsewhere_ || has_room_elsewhere(view, step.job);
      continue;
    }
    fresh_.push_back(step.job);
    const bool has_run = view.jobs.attained(step.job, view.now) > row.base;
    if (!step.held && has_run) row.waited += view.now - row.waits_since;
  }
}

}  // namespace berth
