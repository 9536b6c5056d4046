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
    if (plan.gpus_of(job) == wanted) continue;
    if (plan.holds(job)) plan.preempt(job, Reason::Reservation);
    if (wanted > 0) starting_.push_back(job);
  }
  changed_.clear();
}

void Oasis::start_planned(const View& view, Plan& plan) {
  const std::int64_t slot = clock_.at(view.now);
  for (const JobId job : starting_) {
    const auto& holds = rows_[job.value].workers;
    const auto hold = std::ranges::lower_bound(holds, slot, {}, &Hold::slot);
    const PoolId pool{hold->server};
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

/// Guests of the pool give way, the last to arrive first; start_guests() brings back whoever still
/// fits.
bool Oasis::start_in_place_of_guests(Plan& plan, JobId job, PoolId pool, std::int32_t gpus) {
  bool started = plan.try_start_sized(pool, job, gpus, Reason::Reservation);
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
