#include "policies/preemptive/preemptive.h"

#include <algorithm>
#include <utility>

namespace berth {

namespace {
constexpr int kFraction = 32;  // keys carry the fraction bits of a Rate
}

Int128 Preemptive::key_of(const View& view, JobId job) const {
  if (by_deadline()) return view.deadline(job).value_or(kNever).time_since_epoch().count();
  const Duration service = by_work() ? view.estimated_left(job) : view.jobs.attained(job, view.now);
  const Int128 key = Int128{service.count()} * (std::int64_t{1} << kFraction);
  return by_gpus() ? key * view.gpus(job) : key;
}

Time Preemptive::changes_from(const View& view, JobId job) const {
  return by_work() ? view.jobs.work_from[job] : view.jobs.held_from[job];
}

void Preemptive::join(const View& view, PoolId pool, JobId job) {
  if (job.value >= is_holding_.size()) is_holding_.resize(view.jobs.size());
  is_holding_[job.value] = true;
  // A job that was granted devices another is still saving on, or pays an overhead, does not change
  // its key until that is over.
  const bool changes = !view.jobs.is_running(job) || view.now >= changes_from(view, job);
  const Rate rate = by_work() && view.jobs.is_running(job) ? view.jobs.rate[job] : Rate::one();
  std::int64_t slope = changes ? static_cast<std::int64_t>(rate.raw()) : 0;
  if (by_work()) slope = -slope;
  if (by_gpus()) slope *= view.gpus(job);
  if (by_deadline()) slope = 0;
  holding_.insert(view.now, pool, job, key_of(view, job), slope, view.gpus(job));
}

void Preemptive::leave(JobId job) {
  holding_.erase(job);
  is_holding_[job.value] = false;
}

void Preemptive::queue(const View& view, JobId job) {
  waiting_.push(view.jobs.shape[job], {key_of(view, job), job});
}

void Preemptive::on_arrival(const View& view, JobId job) {
  has_changed_ = true;
  queue(view, job);
}

void Preemptive::on_departure(const View& view, JobId job) {
  has_changed_ = true;
  if (job.value < is_holding_.size() && is_holding_[job.value]) {
    leave(job);
  } else {
    waiting_.forget(view.jobs.shape[job], job);
  }
}

void Preemptive::on_requeue(const View& view, JobId job) {
  leave(job);
  on_arrival(view, job);
}

/// What the executor made of the last pass, and overheads that have ended since. A start may take
/// effect later than decided, which changes how the key moves; a stop may have added service
/// (saving a checkpoint), which changes the key of a job that waits.
void Preemptive::absorb_outcome(const View& view) {
  for (const Grant& stop : stopped_) {
    const JobId job = stop.key.job;
    if (!view.jobs.is_waiting(job) || is_holding_[job.value] || key_of(view, job) == stop.key.value)
      continue;
    waiting_.forget(stop.shape, job);
    queue(view, job);
  }
  stopped_.clear();
  const auto rejoin = [&](JobId job) {
    if (!is_holding_[job.value]) return;
    leave(job);
    join(view, view.jobs.allocation[job].pool, job);
  };
  for (const JobId job : fresh_) {
    if (!is_holding_[job.value]) continue;
    const Time from = changes_from(view, job);
    if (from > view.now) {
      in_overhead_.push_back({from, job});
      std::ranges::push_heap(in_overhead_, std::ranges::greater{});
    }
    if (from > last_pass_ || view.jobs.rate[job] != Rate::one()) rejoin(job);
  }
  fresh_.clear();
  while (!in_overhead_.empty() && in_overhead_.front().until <= view.now) {
    rejoin(in_overhead_.front().job);
    std::ranges::pop_heap(in_overhead_, std::ranges::greater{});
    in_overhead_.pop_back();
  }
}

/// A pool where the head of the shape's queue has room beside the holders that come before it. A
/// job that still holds its devices (evicted a moment ago in this pass) can only go back to its own
/// pool.
std::optional<PoolId> Preemptive::pool_for(const View& view, const Plan& plan, ShapeId shape) {
  OrderKey key = waiting_.top(shape);
  const Shape& wanted = view.shapes[shape];
  const bool still_holds = plan.holds(key.job);
  if (!still_holds && options_.preempt_gain > Duration::zero()) {
    const Int128 gain = Int128{options_.preempt_gain.count()} * (std::int64_t{1} << kFraction);
    key.value += by_gpus() ? gain * wanted.gpus : gain;
  }
  for (const PoolId pool : wanted.pools) {
    if (still_holds && plan.pool_of(key.job) != pool) continue;
    const std::int64_t usable = view.cluster.usable_gpus(pool);
    if (holding_.gpus(pool) + wanted.gpus <= usable) return pool;
    if (!may_evict_) continue;
    const auto last = holding_.last(view.now, pool);
    if (!last || *last < key) continue;  // nobody behind it could give way
    if (holding_.gpus_before(view.now, pool, key) + wanted.gpus <= usable) return pool;
  }
  return std::nullopt;
}

std::optional<Preemptive::Grant> Preemptive::next_grant(const View& view, const Plan& plan) {
  std::optional<Grant> best;
  for (const ShapeId shape : waiting_.active()) {
    if (blocked_[shape.value] && !plan.holds(waiting_.top(shape).job)) continue;
    if (best && best->key < waiting_.top(shape)) continue;
    if (const auto pool = pool_for(view, plan, shape))
      best = Grant{waiting_.top(shape), shape, *pool};
  }
  return best;
}

/// Grants in order of keys until no waiting job has room any more. Every eviction is of a job
/// behind the one just granted, so keys only rise and the loop ends.
void Preemptive::grant_all(const View& view, const Plan& plan) {
  grants_.clear();
  evicted_.clear();
  while (const auto grant = next_grant(view, plan)) {
    waiting_.pop(grant->shape);
    grants_.push_back(*grant);
    join(view, grant->pool, grant->key.job);
    while (holding_.gpus(grant->pool) > view.cluster.usable_gpus(grant->pool)) {
      const OrderKey victim = *holding_.last(view.now, grant->pool);
      const ShapeId shape = view.jobs.shape[victim.job];
      leave(victim.job);
      waiting_.push(shape, victim);
      evicted_.push_back({victim, shape, grant->pool});
    }
  }
}

bool Preemptive::carry_out(Plan& plan) {
  for (const Grant& victim : evicted_) {
    if (!is_holding_[victim.key.job.value] && plan.holds(victim.key.job))
      plan.preempt(victim.key.job);
  }
  for (const Grant& grant : grants_) {
    const JobId job = grant.key.job;
    if (!is_holding_[job.value] || plan.holds(job)) continue;
    if (plan.try_start_in(grant.pool, job)) continue;
    blocked_[grant.shape.value] = true;
    return false;
  }
  return true;
}

/// The holders are again those that hold devices; everybody else waits.
void Preemptive::undo(const View& view, const Plan& plan) {
  for (const Grant& grant : grants_) {
    const JobId job = grant.key.job;
    if (is_holding_[job.value] && !plan.holds(job)) {
      leave(job);
      waiting_.push(grant.shape, grant.key);
    }
  }
  for (const Grant& victim : evicted_) {
    const JobId job = victim.key.job;
    if (!is_holding_[job.value] && plan.holds(job)) {
      waiting_.forget(victim.shape, job);
      join(view, victim.pool, job);
    }
  }
}

bool Preemptive::looks_again(Time now) {
  const bool changed = std::exchange(has_changed_, false);
  if (changed || options_.quantum <= Duration::zero()) return true;
  return now.time_since_epoch() / options_.quantum !=
         last_pass_.time_since_epoch() / options_.quantum;
}

void Preemptive::decide(const View& view, Plan& plan, Rng&) {
  absorb_outcome(view);
  may_evict_ = looks_again(view.now);
  last_pass_ = view.now;
  if (waiting_.empty()) return;
  blocked_.assign(view.shapes.size(), false);
  for (;;) {
    const Plan::Mark mark = plan.mark();
    grant_all(view, plan);
    if (carry_out(plan)) break;
    plan.rollback(mark);
    undo(view, plan);
  }
  for (const Grant& grant : grants_) {
    if (is_holding_[grant.key.job.value] && !view.jobs.is_running(grant.key.job))
      fresh_.push_back(grant.key.job);
  }
  for (const Grant& victim : evicted_) {
    if (!is_holding_[victim.key.job.value]) stopped_.push_back(victim);
  }
}

/// In the pass that evicts it a job can only go back to its own pool; there may be room in another.
bool Preemptive::has_room_elsewhere(const View& view, const Grant& stop) const {
  if (!view.jobs.is_waiting(stop.key.job)) return false;
  const Shape& shape = view.shapes[stop.shape];
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    return pool != stop.pool && view.cluster.free_gpus(pool) >= shape.gpus;
  });
}

std::optional<Time> Preemptive::next_wakeup(const View& view) {
  const auto goes_on = [&](const Grant& stop) { return has_room_elsewhere(view, stop); };
  if (std::ranges::any_of(stopped_, goes_on)) return view.now + Duration{1};
  // With nothing running nothing changes by waiting.
  if (options_.quantum <= Duration::zero() || waiting_.empty() || holding_.size() == 0)
    return std::nullopt;
  const Duration since_zero = view.now.time_since_epoch();
  return Time{(since_zero / options_.quantum + 1) * options_.quantum};
}

}  // namespace berth
