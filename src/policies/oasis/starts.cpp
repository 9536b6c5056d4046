// OASiS: from schedules to devices, at the beginning of a slot and whenever something ends.
#include <algorithm>

#include "policies/common/sized_start.h"
#include "policies/oasis/oasis.h"

namespace berth::oasis {

void Oasis::decide(const View& view, Plan& plan, Rng&) {
  if (!clock_.is_started()) return;
  catch_up(view);
  stop_changed(view, plan);
  start_planned(view, plan);
  start_guests(view, plan);
  if (options_.ahead) start_ahead(view, plan);
}

/// Jobs that hold another number of GPUs than their schedule says for this slot.
void Oasis::stop_changed(const View& view, Plan& plan) {
  changed_.insert(changed_.end(), unplaced_.begin(), unplaced_.end());
  unplaced_.clear();
  std::ranges::sort(changed_);
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  starting_.clear();
  const std::int64_t slot = clock_.at(view.now);
  for (const JobId job : changed_) {
    if (rows_[job.value].standing != Standing::Planned) continue;
    const std::int64_t wanted = gpus_at(job, slot);
    const bool was_ahead = std::ranges::binary_search(ahead_, job);
    if (was_ahead && wanted == 0) continue;  // its slots are still to come
    if (was_ahead) std::erase(ahead_, job);
    const bool is_elsewhere = was_ahead && plan.pool_of(job) != pool_at(job, slot);
    if (plan.gpus_of(job) == wanted && !is_elsewhere) continue;
    if (plan.holds(job)) plan.preempt(job, Reason::Reservation);
    if (wanted > 0) starting_.push_back(job);
  }
  changed_.clear();
}

void Oasis::start_planned(const View& view, Plan& plan) {
  const std::int64_t slot = clock_.at(view.now);
  for (const JobId job : starting_) {
    const PoolId pool = pool_at(job, slot);
    const auto gpus = static_cast<std::int32_t>(gpus_at(job, slot));
    if (start_in_place_of_guests(plan, job, pool, gpus)) continue;
    // Short of GPUs it waits for a job that is late by an instant; short of cores or closeness it
    // takes what can be placed.
    const ElasticRange range = range_in(view, job, pool, options_.elastic);
    const bool enough = plan.cluster().free_gpus(pool) >= gpus;
    if (!enough || !try_start_up_to(plan, view, job, pool, gpus, range, Reason::Reservation))
      unplaced_.push_back(job);
  }
}

/// Those of the pool who run ahead of their slots give way, then guests, the last to arrive first;
/// who still fits is brought back.
bool Oasis::start_in_place_of_guests(Plan& plan, JobId job, PoolId pool, std::int32_t gpus) {
  bool started = plan.try_start_sized(pool, job, gpus, Reason::Reservation);
  for (std::size_t i = ahead_.size(); i-- > 0 && !started;) {
    if (plan.pool_of(ahead_[i]) != pool) continue;
    plan.preempt(ahead_[i], Reason::Reservation);
    ahead_.erase(ahead_.begin() + static_cast<std::ptrdiff_t>(i));
    started = plan.try_start_sized(pool, job, gpus, Reason::Reservation);
  }
  for (std::size_t i = running_guests_.size(); i-- > 0 && !started;) {
    const JobId guest = running_guests_[i];
    if (plan.pool_of(guest) != pool) continue;
    plan.preempt(guest, Reason::Reservation);
    running_guests_.erase(running_guests_.begin() + static_cast<std::ptrdiff_t>(i));
    waiting_guests_.push(plan.shape_of(guest), {0, guest});
    started = plan.try_start_sized(pool, job, gpus, Reason::Reservation);
  }
  return started;
}

/// In order of arrival; one look per shape and pass finds out that nothing is left for it.
void Oasis::start_guests(const View& view, Plan& plan) {
  if (waiting_guests_.empty() || view.cluster.free_gpus() == 0) return;
  blocked_.assign(view.shapes.size(), false);
  for (;;) {
    std::optional<ShapeId> next;
    for (const ShapeId shape : waiting_guests_.active()) {
      if (blocked_[shape.value]) continue;
      if (!next || waiting_guests_.top(shape) < waiting_guests_.top(*next)) next = shape;
    }
    if (!next) return;
    const JobId job = waiting_guests_.top(*next).job;
    if (try_start_guest(view, plan, job)) {
      waiting_guests_.pop(*next);
      running_guests_.insert(std::ranges::lower_bound(running_guests_, job), job);
    } else {
      blocked_[next->value] = true;
    }
  }
}

/// Accepted jobs on GPUs that nobody was promised now, those whose slots come first before others.
/// With what is done before, a schedule ends early.
void Oasis::start_ahead(const View& view, Plan& plan) {
  if (plan.cluster().free_gpus() == 0) return;
  const std::int64_t slot = clock_.at(view.now);
  std::vector<std::pair<std::int64_t, JobId>> order;
  for (const JobId job : planned_) {
    const auto& holds = rows_[job.value].workers;
    const auto next = std::ranges::upper_bound(holds, slot, {}, &Hold::slot);
    if (!plan.holds(job) && gpus_at(job, slot) == 0 && next != holds.end())
      order.emplace_back(next->slot, job);
  }
  std::ranges::sort(order);
  for (const auto& [next, job] : order) {
    const auto gpus = static_cast<std::int32_t>(gpus_at(job, next));
    if (plan.try_start_sized(pool_at(job, next), job, gpus, Reason::Backfill))
      ahead_.insert(std::ranges::lower_bound(ahead_, job), job);
  }
}

/// As many GPUs as it asks for, or held just now, or as are left.
bool Oasis::try_start_guest(const View& view, Plan& plan, JobId job) {
  for (const PoolId pool : view.shape(job).pools) {
    const ElasticRange range = range_in(view, job, pool, options_.elastic);
    const std::int32_t wanted = view.jobs.is_running(job) ? view.jobs.granted[job] : view.gpus(job);
    const auto free = static_cast<std::int32_t>(plan.cluster().free_gpus(pool));
    const std::int32_t gpus = std::min(std::clamp(wanted, range.least, range.most), free);
    if (gpus >= range.least &&
        try_start_up_to(plan, view, job, pool, gpus, range, Reason::Backfill))
      return true;
  }
  return false;
}

}  // namespace berth::oasis
