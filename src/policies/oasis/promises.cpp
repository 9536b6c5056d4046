// OASiS: the schedules of accepted jobs, and what becomes of them when jobs end early or late or
// nodes are lost.
#include <algorithm>

#include "policies/common/sized_start.h"
#include "policies/oasis/oasis.h"

namespace berth::oasis {

namespace {

void insert_sorted(std::vector<JobId>& jobs, JobId job) {
  jobs.insert(std::ranges::lower_bound(jobs, job), job);
}
void erase_sorted(std::vector<JobId>& jobs, JobId job) {
  const auto at = std::ranges::lower_bound(jobs, job);
  if (at != jobs.end() && *at == job) jobs.erase(at);
}

}  // namespace

void Oasis::push_appointment(std::int64_t slot, JobId job) {
  agenda_.push_back({slot, job, rows_[job.value].generation});
  std::ranges::push_heap(agenda_, std::ranges::greater{});
}

/// Adds the schedule to what the job may still hold in the current slot.
void Oasis::commit(const View& view, JobId job, Offer offer) {
  JobRow& row = rows_[job.value];
  row.gpus_per_worker = offer.gpus_per_worker;
  const std::int64_t now = clock_.at(view.now);
  const auto is_over = [&](const Hold& hold) { return hold.slot < now; };
  std::erase_if(row.workers, is_over);
  std::erase_if(row.helpers, is_over);
  gpus_->promise(offer.schedule.workers, Amounts{offer.gpus_per_worker});
  if (cores_) cores_->promise(offer.schedule.helpers, Amounts{options_.servers.cores});
  row.workers.insert(row.workers.end(), offer.schedule.workers.begin(),
                     offer.schedule.workers.end());
  row.helpers.insert(row.helpers.end(), offer.schedule.helpers.begin(),
                     offer.schedule.helpers.end());
  if (row.standing != Standing::Planned) insert_sorted(planned_, job);
  row.standing = Standing::Planned;
  ++row.generation;
  std::int64_t next = now;  // first slot that is not looked at yet
  std::int64_t units = 0;
  for (const Hold& hold : row.workers) {
    if (hold.slot > next && units > 0) push_appointment(next, job);  // a gap begins
    if (hold.slot > next || hold.units != units) push_appointment(hold.slot, job);
    next = hold.slot + 1;
    units = hold.units;
  }
  push_appointment(next, job);
  changed_.push_back(job);
}

/// Gives back what it was promised from this slot on.
void Oasis::release_from(JobId job, std::int64_t slot) {
  JobRow& row = rows_[job.value];
  const auto cut = [&](std::vector<Hold>& holds, PriceBook& book, std::int64_t need) {
    const auto from = std::ranges::lower_bound(holds, slot, {}, &Hold::slot);
    book.release(std::span<const Hold>(from, holds.end()), Amounts{need});
    holds.erase(from, holds.end());
  };
  cut(row.workers, *gpus_, row.gpus_per_worker);
  if (cores_) cut(row.helpers, *cores_, options_.servers.cores);
}

std::int64_t Oasis::gpus_at(JobId job, std::int64_t slot) const {
  const JobRow& row = rows_[job.value];
  const auto hold = std::ranges::lower_bound(row.workers, slot, {}, &Hold::slot);
  return hold == row.workers.end() || hold->slot != slot ? 0 : hold->units * row.gpus_per_worker;
}

/// Where it holds GPUs in that slot.
PoolId Oasis::pool_at(JobId job, std::int64_t slot) const {
  return PoolId{std::ranges::lower_bound(rows_[job.value].workers, slot, {}, &Hold::slot)->server};
}

/// Everything that comes before new jobs: lost nodes, then schedules that end.
void Oasis::catch_up(const View& view) {
  if (!clock_.is_started()) return;
  const std::int64_t slot = clock_.at(view.now);
  if (slot > looked_at_ && is_awaited(slot)) clock_.begin_slot(view.now);
  looked_at_ = slot;
  gpus_->advance(slot);
  if (cores_) cores_->advance(slot);
  std::ranges::sort(lost_);
  for (const JobId job : lost_) plan_again(view, job);
  lost_.clear();
  if (capacity_fell_) relieve_overfull(view);
  capacity_fell_ = false;
  keep_appointments(view);
}

/// Whoever was accepted last plans again until no slot holds more promises than GPUs.
void Oasis::relieve_overfull(const View& view) {
  for (std::uint32_t p = 0; p < gpus_->servers(); ++p) {
    for (std::int64_t slot = clock_.first_whole(view.now); slot < gpus_->end_slot(); ++slot) {
      while (gpus_->promised(p, 0, slot) > gpus_->capacity(p, 0)) {
        const auto job = last_holder(PoolId{p}, slot);
        if (!job) break;
        plan_again(view, *job);
      }
    }
  }
}

std::optional<JobId> Oasis::last_holder(PoolId pool, std::int64_t slot) const {
  for (std::size_t i = planned_.size(); i-- > 0;) {
    const auto& holds = rows_[planned_[i].value].workers;
    const auto hold = std::ranges::lower_bound(holds, slot, {}, &Hold::slot);
    if (hold != holds.end() && hold->slot == slot && hold->server == pool.value) return planned_[i];
  }
  return std::nullopt;
}

/// A request for what is left, with the utility it always had. If nobody would pay for that it goes
/// on as a guest.
void Oasis::plan_again(const View& view, JobId job) {
  release_from(job, clock_.first_whole(view.now));
  auto offer = best_offer(view, job);
  if (offer && offer->schedule.payoff() > 0) {
    // What it still holds in this slot was counted in workers of another size.
    if (offer->gpus_per_worker != rows_[job.value].gpus_per_worker)
      release_from(job, clock_.at(view.now));
    commit(view, job, *std::move(offer));
  } else {
    release_from(job, clock_.at(view.now));
    become_guest(view, job);
  }
}

bool Oasis::is_valid(const Appointment& due) const {
  return due.generation == rows_[due.job.value].generation;
}

/// Something was to be done at the beginning of this slot, or of one that passed unseen.
bool Oasis::is_awaited(std::int64_t slot) const {
  return std::ranges::any_of(agenda_, [&](const Appointment& due) {
    return due.slot > looked_at_ && due.slot <= slot && is_valid(due);
  });
}

void Oasis::keep_appointments(const View& view) {
  const std::int64_t slot = clock_.at(view.now);
  while (!agenda_.empty() && agenda_.front().slot <= slot) {
    const Appointment due = agenda_.front();
    std::ranges::pop_heap(agenda_, std::ranges::greater{});
    agenda_.pop_back();
    if (!is_valid(due)) continue;
    const JobRow& row = rows_[due.job.value];
    if (row.workers.back().slot < slot) {
      end_schedule(view, due.job);
    } else {
      changed_.push_back(due.job);
    }
  }
}

/// The schedule is over, the job is not. One that needs but an instant more keeps its GPUs for it.
void Oasis::end_schedule(const View& view, JobId job) {
  const Duration left = view.estimated_left(job);
  const Duration instant = std::max<Duration>(std::chrono::milliseconds{1}, clock_.length() / 1000);
  if (view.jobs.is_running(job) && left > Duration::zero() && left <= instant) {
    push_appointment(clock_.at(view.now) + 1, job);
  } else {
    plan_again(view, job);
  }
}

void Oasis::become_guest(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  if (row.standing == Standing::Planned) erase_sorted(planned_, job);
  erase_sorted(ahead_, job);
  row.standing = Standing::Guest;
  ++row.generation;
  if (view.jobs.is_running(job)) {
    insert_sorted(running_guests_, job);
  } else {
    waiting_guests_.push(view.jobs.shape[job], {0, job});
  }
}

void Oasis::on_departure(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  if (row.standing == Standing::Planned) {
    release_from(job, clock_.at(view.now));
    erase_sorted(planned_, job);
  } else {
    erase_sorted(running_guests_, job);
    waiting_guests_.forget(view.jobs.shape[job], job);
  }
  erase_sorted(ahead_, job);
  std::erase(lost_, job);
  const std::uint32_t generation = row.generation + 1;
  row = JobRow{};  // schedules of jobs that are over take no memory
  row.generation = generation;
}

void Oasis::on_requeue(const View& view, JobId job) {
  if (rows_[job.value].standing == Standing::Planned) {
    release_from(job, clock_.at(view.now));
    erase_sorted(ahead_, job);
    lost_.push_back(job);
  } else {
    erase_sorted(running_guests_, job);
    waiting_guests_.push(view.jobs.shape[job], {0, job});
  }
}

void Oasis::on_capacity_change(const View& view, NodeId node) {
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  const std::int64_t usable = view.cluster.usable_gpus(pool);
  capacity_fell_ = capacity_fell_ || usable < gpus_->capacity(pool.value, 0);
  gpus_->set_capacity(pool.value, 0, usable);
}

std::optional<Time> Oasis::next_wakeup(const View& view) {
  while (!agenda_.empty() && !is_valid(agenda_.front())) {
    std::ranges::pop_heap(agenda_, std::ranges::greater{});
    agenda_.pop_back();
  }
  if (agenda_.empty()) return std::nullopt;
  return std::max(clock_.begin(agenda_.front().slot), view.now + Duration{1});
}

}  // namespace berth::oasis
