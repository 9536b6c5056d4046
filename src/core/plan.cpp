#include "core/plan.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace berth {

Plan::Plan(ClusterState& state, JobTable& jobs, const ShapeTable& shapes, SliceArena& arena,
           Placement& placement, Rng& rng)
    : state_(&state),
      jobs_(&jobs),
      shapes_(&shapes),
      arena_(&arena),
      placement_(&placement),
      rng_(&rng),
      touched_at_(jobs.size(), 0) {}

void Plan::begin() {
  steps_.clear();
  actions_.clear();
}

Plan::Touched& Plan::touch(JobId job) {
  std::uint32_t& at = touched_at_[job];
  if (at == 0) {
    touched_.push_back({.job = job, .original = jobs_->allocation[job]});
    at = static_cast<std::uint32_t>(touched_.size());
  }
  return touched_[at - 1];
}

void Plan::occupy(const Allocation& allocation, const Shape& shape) {
  if (state_->mode() == ClusterState::Mode::Count) {
    state_->take_count(allocation.pool, shape);
  } else {
    state_->take(arena_->slices(allocation), shape);
  }
}

void Plan::vacate(const Allocation& allocation, const Shape& shape) {
  if (state_->mode() == ClusterState::Mode::Count) {
    state_->give_count(allocation.pool, shape);
  } else {
    state_->give(arena_->slices(allocation), shape);
  }
}

/// The one place where a job's allocation changes inside a plan; `next` is already stored.
void Plan::put(JobId job, const Allocation& next, Reason reason) {
  Touched& touched = touch(job);
  Allocation& current = jobs_->allocation[job];
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  steps_.push_back({.job = job, .before = current, .reason_before = touched.reason});
  if (current.holds()) vacate(current, shape);
  if (next.holds()) occupy(next, shape);
  current = next;
  touched.reason = reason;
}

bool Plan::has_room(const Shape& shape) const noexcept {
  return std::ranges::any_of(shape.pools,
                             [&](PoolId pool) { return state_->free_gpus(pool) >= shape.gpus; });
}

bool Plan::try_start(JobId job, Reason reason) {
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  const std::uint32_t at = touched_at_[job];
  if (at != 0 && touched_[at - 1].original.holds() &&
      try_start_in(touched_[at - 1].original.pool, job, reason)) {
    return true;  // stopped in this plan: stay in the pool it knows if possible
  }
  return std::ranges::any_of(shape.pools,
                             [&](PoolId pool) { return try_start_in(pool, job, reason); });
}

bool Plan::try_start_in(PoolId pool, JobId job, Reason reason) {
  BERTH_CHECK(!holds(job), "a job that holds devices is not started again");
  BERTH_DCHECK(jobs_->is_waiting(job) || jobs_->is_running(job),
               "only a waiting job can be started");
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  if (state_->free_gpus(pool) < shape.gpus) return false;
  const bool counting = state_->mode() == ClusterState::Mode::Count;
  if (const std::uint32_t at = touched_at_[job]; at != 0 && touched_[at - 1].original.holds()) {
    const Allocation own = touched_[at - 1].original;
    if (own.pool == pool && (counting || state_->is_free(arena_->slices(own), shape))) {
      put(job, own, reason);
      return true;
    }
  }
  scratch_.clear();
  const bool placed = counting ? state_->has_side_room(pool, shape)
                               : placement_->place(*state_, shape, pool, *rng_, scratch_);
  if (!placed) return false;
  put(job, arena_->store(pool, scratch_), reason);
  return true;
}

void Plan::preempt(JobId job, Reason reason) {
  BERTH_CHECK(holds(job), "only a job that holds devices can be preempted");
  put(job, Allocation{}, reason);
}

void Plan::kill(JobId job, Reason reason) {
  preempt(job, reason);
  touch(job).killed = true;
}

void Plan::rollback(Mark mark) {
  BERTH_CHECK(mark.steps <= steps_.size(), "a mark is rolled back to once");
  while (steps_.size() > mark.steps) {
    const Step step = steps_.back();
    steps_.pop_back();
    Touched& touched = touch(step.job);
    Allocation& current = jobs_->allocation[step.job];
    const Shape& shape = (*shapes_)[jobs_->shape[step.job]];
    if (current.holds()) {
      vacate(current, shape);
      if (!same_devices(current, touched.original)) garbage_.push_back(current);
    }
    if (step.before.holds()) occupy(step.before, shape);
    current = step.before;
    touched.reason = step.reason_before;
    touched.killed = false;
  }
}

bool Plan::same_devices(const Allocation& a, const Allocation& b) const noexcept {
  if (a.holds() != b.holds()) return false;
  if (!a.holds()) return true;
  return a.pool == b.pool && a.slices == b.slices && (a.slices == 0 || a.offset == b.offset);
}

std::span<const Action> Plan::seal() {
  actions_.clear();
  for (const Touched& touched : touched_) {
    const Allocation& current = jobs_->allocation[touched.job];
    if (same_devices(current, touched.original)) continue;
    const bool is_start = current.holds() && !touched.original.holds();
    Action action;
    action.job = touched.job;
    action.reason = touched.reason;
    action.gpus = (*shapes_)[jobs_->shape[touched.job]].gpus;
    action.pool = current.holds() ? current.pool : touched.original.pool;
    action.slices = arena_->slices(current.holds() ? current : touched.original);
    if (is_start) {
      action.kind =
          jobs_->first_start[touched.job] == kNever ? ActionKind::Start : ActionKind::Resume;
    } else if (current.holds()) {
      action.kind = ActionKind::Migrate;
      action.left = arena_->slices(touched.original);
    } else {
      action.kind = touched.killed ? ActionKind::Kill : ActionKind::Preempt;
    }
    actions_.push_back(action);
  }
  // Stops before starts, so that an executor never sees a device held twice; then by JobId.
  std::ranges::sort(actions_, {}, [](const Action& action) {
    const bool starts = action.kind == ActionKind::Start || action.kind == ActionKind::Resume;
    return std::tuple(starts, action.kind == ActionKind::Migrate, action.job);
  });
  return actions_;
}

void Plan::settle() {
  // Devices granted and taken back inside this plan are in nobody's hands any more.
  for (const Step& step : steps_) {
    const Touched& touched = touched_[touched_at_[step.job] - 1];
    const bool kept = same_devices(step.before, touched.original) ||
                      same_devices(step.before, jobs_->allocation[step.job]);
    if (step.before.holds() && !kept) arena_->release(step.before);
  }
  for (const Touched& touched : touched_) {
    touched_at_[touched.job] = 0;
    if (touched.original.holds() &&
        !same_devices(touched.original, jobs_->allocation[touched.job])) {
      arena_->release(touched.original);
    }
  }
  for (const Allocation& allocation : garbage_) arena_->release(allocation);
  touched_.clear();
  steps_.clear();
  garbage_.clear();
}

}  // namespace berth
