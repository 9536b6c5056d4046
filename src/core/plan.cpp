#include "core/plan.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/device_mask.h"
#include "core/node_tuner.h"
#include "model/elastic.h"

namespace berth {

Plan::Plan(ClusterState& state, JobTable& jobs, const ShapeTable& shapes, SliceArena& arena,
           Placement& placement, const RateModel& rates, Rng& rng)
    : state_(&state),
      jobs_(&jobs),
      shapes_(&shapes),
      arena_(&arena),
      placement_(&placement),
      rates_(&rates),
      rng_(&rng),
      touched_at_(jobs.size(), 0) {}

Plan::Touched& Plan::touch(JobId job) {
  std::uint32_t& at = touched_at_[job];
  if (at == 0) {
    touched_.push_back(
        {.job = job, .original = jobs_->allocation[job], .original_terms = jobs_->terms[job]});
    at = static_cast<std::uint32_t>(touched_.size());
  }
  return touched_[at - 1];
}

DeviceUse Plan::use_of(JobId job) const noexcept {
  if (!state_->tracks_devices()) return {};
  return {
      .memory_mib = rates_->memory_mib(jobs_->profile[job], jobs_->batch[job], jobs_->terms[job]),
      .milli = (*shapes_)[jobs_->shape[job]].gpu_milli};
}

void Plan::occupy(JobId job, const Allocation& allocation) {
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  if (state_->mode() == ClusterState::Mode::Count) {
    state_->take_count(allocation.pool, shape);
  } else {
    state_->take(arena_->slices(allocation), shape, job, use_of(job));
  }
}

void Plan::vacate(JobId job, const Allocation& allocation) {
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  if (state_->mode() == ClusterState::Mode::Count) {
    state_->give_count(allocation.pool, shape);
  } else {
    state_->give(arena_->slices(allocation), shape, job, use_of(job));
  }
}

/// The one place where a job's allocation and terms change inside a plan; `next` is already stored.
void Plan::put(JobId job, const Allocation& next, const Terms& terms, Reason reason,
               Ending ending) {
  Touched& touched = touch(job);
  Allocation& current = jobs_->allocation[job];
  steps_.push_back({.job = job,
                    .before = current,
                    .terms_before = jobs_->terms[job],
                    .reason_before = touched.reason,
                    .ending_before = touched.ending});
  // Terms change in between: what a job uses of a device follows from them, so that it must give
  // back what it took under the old ones and take what it needs under the new.
  if (current.holds()) vacate(job, current);
  jobs_->terms[job] = terms;
  if (next.holds()) occupy(job, next);
  current = next;
  touched.reason = reason;
  touched.ending = ending;
}

bool Plan::has_room(const Shape& shape) const noexcept {
  return std::ranges::any_of(shape.pools,
                             [&](PoolId pool) { return state_->may_hold(pool, shape); });
}

std::int32_t Plan::gpus_of(JobId job) const noexcept {
  if (!holds(job)) return 0;
  if (state_->mode() == ClusterState::Mode::Count) return (*shapes_)[jobs_->shape[job]].gpus;
  std::int32_t gpus = 0;
  for (const Slice& slice : slices(job)) gpus += slice.gpus;
  return gpus;
}

bool Plan::try_start(JobId job, Reason reason) {
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  const std::uint32_t at = touched_at_[job];
  // Stopped in this plan, it stays in its pool if possible: there it may get its own devices back,
  // which costs no action at all.
  if (at != 0 && touched_[at - 1].original.holds() &&
      try_start_in(touched_[at - 1].original.pool, job, reason)) {
    return true;
  }
  if (state_->mode() == ClusterState::Mode::Count) {
    return std::ranges::any_of(shape.pools,
                               [&](PoolId pool) { return try_start_in(pool, job, reason); });
  }
  check_startable(job);
  if (put_where_pinned(job, shape, reason)) return true;
  scratch_.clear();
  const auto pool = placement_->place_in_any(*state_, shape, *rng_, scratch_);
  if (!pool) return false;
  if (tuner_ != nullptr && !tuner_->place(*this, job, *pool, scratch_)) {
    // The tuner declined one pool only; the placement did not look further than that one.
    return std::ranges::any_of(shape.pools, [&](PoolId other) {
      return other != *pool && try_start_in(other, job, reason);
    });
  }
  put(job, arena_->store(*pool, scratch_), jobs_->terms[job], reason);
  return true;
}

void Plan::check_startable(JobId job) const {
  BERTH_CHECK(!holds(job), "a job that holds devices is not started again");
  BERTH_DCHECK(jobs_->is_waiting(job) || jobs_->is_running(job),
               "only a waiting job can be started");
}

bool Plan::is_agreed(JobId job, std::int32_t gpus) const noexcept {
  return agreed_ == nullptr || agreed_range(agreed_->jobs[job.value]).includes(gpus);
}

bool Plan::is_agreed(JobId job, std::span<const Slice> slices) const noexcept {
  if (agreed_ == nullptr) return true;
  std::int32_t gpus = 0;
  for (const Slice& slice : slices) gpus += slice.gpus;
  return is_agreed(job, gpus);
}

bool Plan::try_start_in(PoolId pool, JobId job, Reason reason) {
  check_startable(job);
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  if (!state_->may_hold(pool, shape)) return false;
  return retake(pool, job, shape, reason) || put_where_pinned(job, shape, reason, pool) ||
         place(pool, job, shape, reason);
}

bool Plan::try_start_sized(PoolId pool, JobId job, std::int32_t gpus, Reason reason) {
  check_startable(job);
  BERTH_CHECK(state_->mode() == ClusterState::Mode::Devices, "a policy that resizes says so");
  if (!is_agreed(job, gpus)) return false;
  Shape shape = (*shapes_)[jobs_->shape[job]];
  shape.gpus = gpus;
  if (!state_->may_hold(pool, shape)) return false;
  // Its own devices are worth having back only if they are as many as it is to have now.
  const bool held_as_many = jobs_->is_running(job) && jobs_->granted[job] == gpus;
  return (held_as_many && retake(pool, job, shape, reason)) ||
         put_where_pinned(job, shape, reason, pool) || place(pool, job, shape, reason);
}

/// What it held before this plan stopped it, if that is in the pool and still free.
bool Plan::retake(PoolId pool, JobId job, const Shape& shape, Reason reason) {
  const std::uint32_t at = touched_at_[job];
  if (at == 0 || !touched_[at - 1].original.holds()) return false;
  const Allocation own = touched_[at - 1].original;
  const bool counting = state_->mode() == ClusterState::Mode::Count;
  if (own.pool != pool || !(counting || state_->is_free(arena_->slices(own), shape))) return false;
  put(job, own, jobs_->terms[job], reason);
  return true;
}

std::span<const Slice> Plan::found_on(JobId job) const {
  if (pins_.empty()) return {};
  const auto pin = pins_.find(job);
  return pin == pins_.end() ? std::span<const Slice>{} : std::span<const Slice>{pin->second};
}

std::int32_t Plan::found_gpus(JobId job) const {
  std::int32_t gpus = 0;
  for (const Slice& slice : found_on(job)) gpus += slice.gpus;
  return gpus;
}

bool Plan::try_keep(JobId job, Reason reason) {
  const std::int32_t gpus = found_gpus(job);
  if (gpus == 0 || !is_agreed(job, gpus)) return false;
  check_startable(job);
  Shape shape = (*shapes_)[jobs_->shape[job]];
  shape.gpus = gpus;
  return put_where_pinned(job, shape, reason);
}

bool Plan::put_where_pinned(JobId job, const Shape& shape, Reason reason,
                            std::optional<PoolId> pool) {
  const std::span<const Slice> found = found_on(job);
  if (found.empty() || state_->mode() == ClusterState::Mode::Count) return false;
  const PoolId there = state_->cluster().nodes[found.front().node.value].pool;
  if (found_gpus(job) != shape.gpus || (pool && *pool != there)) return false;
  const bool acceptable = std::ranges::find(shape.pools, there) != shape.pools.end();
  if (!acceptable || !state_->is_free(found, shape)) return false;
  put(job, arena_->store(there, found), jobs_->terms[job], reason);
  return true;
}

bool Plan::place(PoolId pool, JobId job, const Shape& shape, Reason reason) {
  const bool counting = state_->mode() == ClusterState::Mode::Count;
  scratch_.clear();
  const bool placed = counting ? state_->has_side_room(pool, shape)
                               : placement_->place(*state_, shape, pool, *rng_, scratch_);
  if (!placed) return false;
  if (tuner_ != nullptr && !counting && !tuner_->place(*this, job, pool, scratch_)) return false;
  put(job, arena_->store(pool, scratch_), jobs_->terms[job], reason);
  return true;
}

bool Plan::try_start_on(JobId job, PoolId pool, std::span<const Slice> slices, Reason reason) {
  BERTH_CHECK(!holds(job), "a job that holds devices is not started again");
  if (!is_agreed(job, slices)) return false;
  if (!state_->is_free(slices, (*shapes_)[jobs_->shape[job]])) return false;
  return put_on(job, pool, slices, reason);
}

bool Plan::try_share_on(JobId job, PoolId pool, std::span<const Slice> slices, std::int32_t limit,
                        Reason reason) {
  BERTH_CHECK(!holds(job), "a job that holds devices is not started again");
  BERTH_CHECK(state_->tracks_devices(), "a policy that shares devices says so");
  if (!is_agreed(job, slices)) return false;
  const Shape& shape = (*shapes_)[jobs_->shape[job]];
  const auto sharers = can_.has(Ability::Share) ? static_cast<std::int32_t>(kMaxSharers) : 1;
  const auto most = std::min<std::int32_t>(limit, sharers);
  if (!state_->can_join(slices, shape, use_of(job), most)) return false;
  return put_on(job, pool, slices, reason);
}

/// Its own old devices if these are the ones, so that staying put is no action.
bool Plan::put_on(JobId job, PoolId pool, std::span<const Slice> slices, Reason reason) {
  BERTH_DCHECK(jobs_->is_waiting(job) || jobs_->is_running(job),
               "only a waiting job can be started");
  BERTH_CHECK(!slices.empty(), "a job is started on some device");
  const Touched& touched = touch(job);
  const bool same = touched.original.holds() && touched.original.pool == pool &&
                    std::ranges::equal(arena_->slices(touched.original), slices);
  const Allocation next = same ? touched.original : arena_->store(pool, slices);
  put(job, next, jobs_->terms[job], reason);
  return true;
}

void Plan::preempt(JobId job, Reason reason) {
  BERTH_CHECK(holds(job), "only a job that holds devices can be preempted");
  put(job, Allocation{}, jobs_->terms[job], reason);
}

void Plan::suspend(JobId job, Reason reason) {
  BERTH_CHECK(holds(job), "only a job that holds devices can be suspended");
  put(job, Allocation{}, jobs_->terms[job], reason,
      can_.has(Ability::Suspend) ? Ending::Suspended : Ending::Preempted);
}

void Plan::kill(JobId job, Reason reason) {
  BERTH_CHECK(holds(job) || jobs_->is_waiting(job) || jobs_->is_running(job),
              "only a job that is not over can be killed");
  put(job, Allocation{}, jobs_->terms[job], reason, Ending::Killed);
}

void Plan::set_pause(JobId job, Duration pause) {
  Touched& touched = touch(job);
  steps_.push_back({.job = job,
                    .before = {},
                    .terms_before = {},
                    .reason_before = {},
                    .ending_before = {},
                    .pause_before = touched.pause});
  touched.pause = pause;
}

bool Plan::power_off(NodeId node, Reason reason) {
  if (!can_.has(Ability::Power)) return false;
  const bool booting = state_->power(node) == PowerState::Booting;
  const bool idle = state_->is_idle(node) || (booting && !state_->has_failed(node));
  if (!idle || state_->cluster().nodes[node.value].stays_on) return false;
  set_power(node, PowerState::Off, reason);
  return true;
}

/// A node that this plan switched off never stopped: it is simply on again.
bool Plan::power_on(NodeId node, Reason reason) {
  if (state_->power(node) != PowerState::Off || !can_.has(Ability::Power)) return false;
  const auto found =
      std::ranges::find(powered_, node, [](const Powered& p) { return p.slice.node; });
  const bool was_on = found != powered_.end() && found->original != PowerState::Off;
  set_power(node, was_on ? found->original : PowerState::Booting, reason);
  return true;
}

void Plan::set_power(NodeId node, PowerState power, Reason reason) {
  BERTH_CHECK(state_->mode() == ClusterState::Mode::Devices, "a policy that manages power says so");
  const PowerState before = state_->power(node);
  steps_.push_back({.job = kNoJob,
                    .before = {},
                    .terms_before = {},
                    .reason_before = {},
                    .ending_before = {},
                    .node = node,
                    .power_before = before});
  const auto found =
      std::ranges::find(powered_, node, [](const Powered& p) { return p.slice.node; });
  if (found == powered_.end()) {
    powered_.push_back({{node, state_->cluster().nodes[node.value].gpus, 0}, before, reason});
  } else {
    found->reason = reason;
  }
  state_->set_power(node, power);
}

bool Plan::can_change(const Terms& from, const Terms& to) const noexcept {
  const auto may = [&](Ability ability, auto field) {
    return from.*field == to.*field || can_.has(ability);
  };
  return may(Ability::SubBatch, &Terms::sub_steps) && may(Ability::Batch, &Terms::batch) &&
         may(Ability::Cores, &Terms::cores_milli) &&
         may(Ability::Throttle, &Terms::throttle_milli) &&
         may(Ability::DeviceMemory, &Terms::memory_limit_mib) &&
         may(Ability::HostMemory, &Terms::host_memory_mib);
}

bool Plan::set_terms(JobId job, const Terms& terms, Reason reason) {
  if (terms == jobs_->terms[job]) return true;
  if (!can_change(jobs_->terms[job], terms)) return false;
  const Allocation current = jobs_->allocation[job];
  if (current.holds() && state_->tracks_devices()) {
    const std::int32_t more =
        rates_->memory_mib(jobs_->profile[job], jobs_->batch[job], terms) - use_of(job).memory_mib;
    const auto lacks_memory = [&](const Slice& slice) {
      for (const std::int32_t device : DeviceMask{slice.devices}) {
        if (state_->jobs_on(slice.node, device).size() > 1 &&
            state_->free_memory_mib(slice.node, device) < more)
          return true;
      }
      return false;
    };
    if (more > 0 && std::ranges::any_of(arena_->slices(current), lacks_memory)) return false;
    // Not by put(): leaving and joining would change the order of arrival on its devices.
    steps_.push_back({.job = job,
                      .before = current,
                      .terms_before = jobs_->terms[job],
                      .reason_before = touch(job).reason,
                      .ending_before = touch(job).ending});
    state_->change_memory(arena_->slices(current), more);
    jobs_->terms[job] = terms;
    if (same_devices(current, touch(job).original)) touch(job).reason = reason;
    return true;
  }
  const Touched& touched = touch(job);  // a start or a stop of this plan keeps its own reason
  const Reason kept = same_devices(current, touched.original) ? reason : touched.reason;
  put(job, current, terms, kept, touched.ending);
  return true;
}

void Plan::rollback(Mark mark) {
  BERTH_CHECK(mark.steps <= steps_.size(), "a mark is rolled back to once");
  BERTH_CHECK(mark.undos <= undos_.size(), "a mark is rolled back to once");
  for (;;) {
    // An undo that was registered after so many steps is due once only those are left.
    if (undos_.size() > mark.undos && undos_.back().after >= steps_.size()) {
      const Undo undo = std::move(undos_.back());
      undos_.pop_back();
      undo.call();
      continue;
    }
    if (steps_.size() == mark.steps) return;
    const Step step = steps_.back();
    steps_.pop_back();
    if (step.job == kNoJob) {
      state_->set_power(step.node, step.power_before);
      continue;
    }
    Touched& touched = touch(step.job);
    if (step.pause_before) {
      touched.pause = *step.pause_before;
      continue;
    }
    Allocation& current = jobs_->allocation[step.job];
    if (current.holds()) {
      vacate(step.job, current);
      // Its block of the arena is freed in settle(), unless somebody still refers to it.
      if (!same_devices(current, touched.original) && !same_devices(current, step.before))
        garbage_.push_back(current);
    }
    jobs_->terms[step.job] = step.terms_before;
    if (step.before.holds()) occupy(step.job, step.before);
    current = step.before;
    touched.reason = step.reason_before;
    touched.ending = step.ending_before;
  }
}

bool Plan::same_devices(const Allocation& a, const Allocation& b) const noexcept {
  if (a.holds() != b.holds()) return false;
  if (!a.holds()) return true;
  return a.pool == b.pool && a.slices == b.slices && (a.slices == 0 || a.offset == b.offset);
}

}  // namespace berth
