#include "policies/tiresias/queue_pass.h"

#include <algorithm>

#include "policies/kit/pass.h"

namespace berth::tiresias {

using From = ServiceQueues::From;

void QueuePass::begin(const View& view) {
  room_.resize(view.cluster.pools());
  limits_.begin(view.cluster.pools());
}

void QueuePass::run(const View& view, Plan& plan, std::span<const JobId> demoted) {
  demoted_.assign(demoted.begin(), demoted.end());
  limits_.clear();
  log_.clear();
  moved_.clear();
  lost_.clear();
  const bool counting = view.cluster.mode() == ClusterState::Mode::Count;
  // A round ends with everybody placed, or is made again without the first who finds no place and
  // whoever of its shape comes behind it. Who left in it has its turn in the next one, and so have
  // those who may use what it left: all of them come behind the job it made way for, so that there
  // is a last round.
  bool has_placed = false;
  for (bool again = true; again;) {
    const std::size_t moved = moved_.size();
    steps_.clear();
    displaced_.clear();
    has_left_ = false;
    schedule(view);
    if (!attempt(plan, [&] { return carry_out(view, plan); })) {
      undo(view, 0);
      moved_.resize(moved);
      continue;
    }
    again = !counting && (has_left_ || goes_on_elsewhere(view));
    // Without those left out, jobs before them may have been placed otherwise: they try again on
    // what has become of it.
    const auto is_start = [](const Step& step) { return step.granted && step.from == From::Queue; };
    has_placed = has_placed || moved_.size() > moved || std::ranges::any_of(steps_, is_start);
    if (!counting && !again && limits_.any() && has_placed) {
      limits_.clear();
      has_placed = false;
      again = true;
    }
    log_.insert(log_.end(), steps_.begin(), steps_.end());
    settle_demoted(view);
  }
}

// --- who runs, by count

void QueuePass::schedule(const View& view) {
  for (std::uint32_t p = 0; p < room_.size(); ++p)
    room_[p] = view.cluster.usable_gpus(PoolId{p}) - queues_.firm_used(PoolId{p});
  for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
    evicted_.clear();
    if (queues_.is_ranked(queue)) {
      schedule_by_index(view, queue);
    } else {
      schedule_in_order(view, queue);
    }
    // Ahead of those that were already waiting, in the order in which they ran.
    queues_.wait_ahead(view, queue, evicted_);
    for (std::uint32_t p = 0; p < room_.size(); ++p) room_[p] -= queues_.used(queue, PoolId{p});
  }
}

bool QueuePass::is_over_room(std::size_t queue) const {
  for (std::uint32_t p = 0; p < room_.size(); ++p) {
    if (queues_.used(queue, PoolId{p}) > room_[p]) return true;
  }
  return false;
}

/// Runners in the order of their grants, then waiters from head to tail: a waiter never evicts a
/// runner of its own queue. The runners are walked only when a higher queue took something away.
void QueuePass::schedule_in_order(const View& view, std::size_t queue) {
  if (is_over_room(queue)) {
    left_ = room_;
    queues_.runners().for_each(queue, [&](JobId job) {
      std::int64_t& room = left_[queues_.row(job).pool.value];
      if (view.gpus(job) <= room) {
        room -= view.gpus(job);
      } else {
        evict(view, job);
      }
    });
  }
  grant_waiters(view, queue);
}

/// Everybody by index: runners and waiters merge into one walk. What does not fit at its turn never
/// fits later in the same walk, because room only shrinks.
void QueuePass::schedule_by_index(const View& view, std::size_t queue) {
  const bool is_over = is_over_room(queue);
  const auto waits_here = [&](JobId job) {
    return queues_.row(job).queue == queue && !queues_.row(job).runs;
  };
  const auto nobody_waits = [&] {
    return !queues_.anybody_waits(queue) && std::ranges::none_of(demoted_, waits_here);
  };
  if (!is_over) {
    if (nobody_waits()) return;
    // If everybody gets a place the order decides nothing, and the runners need not be ranked.
    const std::size_t before = steps_.size();
    grant_waiters(view, queue);
    if (nobody_waits()) return;
    undo(view, before);
  }
  order_.clear();
  queues_.runners().for_each(queue,
                             [&](JobId job) { order_.push_back(queues_.key_of(view, job)); });
  std::ranges::sort(order_);
  queues_.forget_used(queue);
  for (const OrderKey& runner : order_) {
    for (auto candidate = best_waiter(view, queue); candidate && candidate->key < runner;
         candidate = best_waiter(view, queue)) {
      grant(view, *candidate);
    }
    const PoolId pool = queues_.row(runner.job).pool;
    queues_.add_used(runner.job, view.gpus(runner.job));
    if (!has_room(queue, pool, 0)) evict(view, runner.job);  // takes its GPUs off again
  }
  grant_waiters(view, queue);
}

std::optional<PoolId> QueuePass::pool_with_room(const View& view, const Rank& rank,
                                                ShapeId shape) const {
  const Shape& wanted = view.shapes[shape];
  const auto pool = std::ranges::find_if(wanted.pools, [&](PoolId each) {
    return !limits_.excludes(shape, each, rank) && has_room(rank.queue, each, wanted.gpus);
  });
  if (pool == wanted.pools.end()) return std::nullopt;
  return *pool;
}

/// The first in the queue's order that has room.
std::optional<QueuePass::Candidate> QueuePass::best_waiter(const View& view,
                                                           std::size_t queue) const {
  std::optional<Candidate> best;
  queues_.for_each_head(view, queue, [&](const OrderKey& key, ShapeId shape) {
    if (best && !(key < best->key)) return;
    if (const auto pool = pool_with_room(view, {queue, key}, shape))
      best = Candidate{key, *pool, From::Queue};
  });
  for (const JobId job : demoted_) {
    const ServiceQueues::Row& row = queues_.row(job);
    if (row.runs || row.queue != queue || !has_room(queue, row.pool, view.gpus(job))) continue;
    const OrderKey key = queues_.key_of(view, job);
    if (!best || key < best->key) best = Candidate{key, row.pool, From::Devices};
  }
  return best;
}

void QueuePass::grant_waiters(const View& view, std::size_t queue) {
  while (const auto candidate = best_waiter(view, queue)) grant(view, *candidate);
}

void QueuePass::grant(const View& view, const Candidate& candidate) {
  const JobId job = candidate.key.job;
  queues_.grant(view, job, candidate.pool, candidate.from);
  // What is not to be preempted is in no queue: it takes from all of them.
  if (queues_.row(job).firm) room_[candidate.pool.value] -= view.gpus(job);
  steps_.push_back({.job = job, .granted = true, .from = candidate.from});
}

void QueuePass::evict(const View& view, JobId job) {
  queues_.stop(view, job);
  evicted_.push_back(job);
  steps_.push_back({.job = job, .granted = false, .from = From::Queue});
}

/// Takes back the steps of this round but the first `kept`.
void QueuePass::undo(const View& view, std::size_t kept) {
  for (; steps_.size() > kept; steps_.pop_back()) {
    const Step& step = steps_.back();
    const ServiceQueues::Row& row = queues_.row(step.job);
    if (!step.granted) {
      queues_.resume(view, step.job);
      continue;
    }
    if (row.firm) room_[row.pool.value] += view.gpus(step.job);
    queues_.stop(view, step.job);
    if (step.from == From::Queue) queues_.wait(view, step.job);
  }
}

// --- where

bool QueuePass::carry_out(const View& view, Plan& plan) {
  const auto has_lost = [&](JobId job) { return !queues_.row(job).runs && plan.holds(job); };
  for (const Step& step : steps_) {
    if (!step.granted && has_lost(step.job)) plan.preempt(step.job, Reason::Priority);
  }
  for (const JobId job : demoted_) {
    if (has_lost(job)) plan.preempt(job, Reason::Demotion);
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {  // who leaves adds steps
    const Step step = steps_[i];
    if (!step.granted || step.from == From::Devices || plan.holds(step.job)) continue;
    if (!displaced_.empty()) replace_displaced(view, plan, step.job);
    const ServiceQueues::Row& row = queues_.row(step.job);
    if (plan.try_start_in(row.pool, step.job) || try_make_way(view, plan, step.job)) continue;
    limits_.set(plan.shape_of(step.job), row.pool, {row.queue, queues_.key_of(view, step.job)});
    return false;
  }
  replace_displaced(view, plan, std::nullopt);
  return true;
}

bool QueuePass::try_make_way(const View& view, Plan& plan, JobId job) {
  if (rule_ == NoNodes::Wait || view.cluster.mode() == ClusterState::Mode::Count) return false;
  const ServiceQueues::Row& row = queues_.row(job);
  way_.clear();
  const std::size_t first = queues_.is_ranked(row.queue) ? row.queue : row.queue + 1U;
  for (std::size_t queue = first; queue < queues_.size(); ++queue) {
    queues_.runners().for_each(queue, [&](JobId other) {
      if (queues_.row(other).pool == row.pool && plan.holds(other) &&
          queues_.outranks(view, job, other))
        way_.add(view, other);
    });
  }
  if (!way_.try_start(plan, row.pool, job, Reason::Locality)) return false;
  const auto others = way_.displaced();
  displaced_.insert(displaced_.end(), others.rbegin(), others.rend());
  std::ranges::stable_sort(displaced_,
                           [&](JobId a, JobId b) { return queues_.outranks(view, a, b); });
  return true;
}

/// Those who made way and come before the job, or all of them, have their turn.
void QueuePass::replace_displaced(const View& view, Plan& plan, std::optional<JobId> before) {
  const auto has_turn = [&](JobId job) {
    if (!before) return true;
    const std::size_t queue = queues_.row(job).queue;
    const bool is_runner_here = queue == queues_.row(*before).queue && !queues_.is_ranked(queue);
    return is_runner_here || queues_.outranks(view, job, *before);
  };
  while (!displaced_.empty() && has_turn(displaced_.front())) {
    const JobId job = displaced_.front();
    displaced_.erase(displaced_.begin());
    if (plan.try_start_in(queues_.row(job).pool, job, Reason::Locality) ||
        try_make_way(view, plan, job)) {
      moved_.push_back(job);
      continue;
    }
    // It waits ahead of everybody in its queue, like a runner evicted by a higher queue.
    queues_.stop(view, job);
    queues_.wait_ahead(view, queues_.row(job).queue, {&job, 1});
    steps_.push_back({.job = job, .granted = false, .from = From::Queue});
    has_left_ = true;
  }
}

/// Who was demoted in this instant and not granted again has lost its devices and waits.
void QueuePass::settle_demoted(const View& view) {
  for (const JobId job : demoted_) {
    const bool made_way = std::ranges::any_of(
        steps_, [&](const Step& step) { return step.job == job && !step.granted; });
    if (queues_.row(job).runs || made_way) continue;
    lost_.push_back(job);
    queues_.wait(view, job);
  }
  std::erase_if(demoted_, [&](JobId job) { return !queues_.row(job).runs; });
}

/// Somebody this round has evicted was no candidate for other pools in it.
bool QueuePass::goes_on_elsewhere(const View& view) const {
  const auto has_choice = [&](JobId job) {
    return !queues_.row(job).runs && view.shape(job).pools.size() > 1;
  };
  return std::ranges::any_of(demoted_, has_choice) ||
         std::ranges::any_of(
             steps_, [&](const Step& step) { return !step.granted && has_choice(step.job); });
}

}  // namespace berth::tiresias
