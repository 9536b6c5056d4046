#include "policies/oasis/promises.h"

#include <algorithm>

namespace berth::oasis {

namespace {

std::vector<Amounts> gpus_by_pool(const ClusterState& cluster) {
  std::vector<Amounts> gpus;
  for (std::uint32_t p = 0; p < cluster.pools(); ++p)
    gpus.push_back({cluster.usable_gpus(PoolId{p})});
  return gpus;
}

}  // namespace

Promises::Promises(const ClusterState& cluster, const PromiseOptions& options, std::size_t jobs)
    : servers_(options.servers), gpus_(gpus_by_pool(cluster), options.horizon), rows_(jobs) {
  if (servers_.any())
    cores_.emplace(std::vector<Amounts>{{all_cores(cluster.cluster())}}, options.horizon);
  if (options.prices.low <= 0) return;
  const std::vector<double> high{options.prices.high};
  gpus_.book.set_range(options.prices.low, high);
  if (cores_) cores_->book.set_range(options.prices.low, high);
}

void Promises::advance(std::int64_t slot) {
  gpus_.book.advance(slot);
  if (cores_) cores_->book.advance(slot);
}

void Promises::learn(const PriceRange::Sample& sample) {
  gpus_.learn(sample, 1);
  if (cores_) cores_->learn(sample, servers_.cores);
}

bool Promises::set_capacity(PoolId pool, std::int64_t gpus) {
  const bool fell = gpus < gpus_.book.capacity(pool.value, 0);
  gpus_.book.set_capacity(pool.value, 0, gpus);
  return fell;
}

void Promises::keep(JobId job, const Offer& offer, std::int64_t now) {
  Row& row = rows_[job];
  row.gpus_per_worker = offer.gpus_per_worker;
  const auto add = [now](std::vector<Hold>& holds, const std::vector<Hold>& more) {
    std::erase_if(holds, [now](const Hold& hold) { return hold.slot < now; });
    holds.insert(holds.end(), more.begin(), more.end());
  };
  gpus_.book.promise(offer.schedule.workers, Amounts{offer.gpus_per_worker});
  if (cores_) cores_->book.promise(offer.schedule.helpers, Amounts{servers_.cores});
  add(row.workers, offer.schedule.workers);
  add(row.helpers, offer.schedule.helpers);
  row.is_kept = true;
  jobs_.insert(job);
  ++row.generation;  // appointments of the schedule before are stale
  make_appointments(job, now);
}

/// One for each slot in which its number of GPUs changes, gaps and the end included.
void Promises::make_appointments(JobId job, std::int64_t now) {
  std::int64_t next = now;  // first slot that is not looked at yet
  std::int64_t units = 0;
  for (const Hold& hold : rows_[job].workers) {
    if (hold.slot > next && units > 0) remind(job, next);  // a gap begins
    if (hold.slot > next || hold.units != units) remind(job, hold.slot);
    next = hold.slot + 1;
    units = hold.units;
  }
  remind(job, next);
}

void Promises::release_from(JobId job, std::int64_t slot) {
  Row& row = rows_[job];
  const auto cut = [slot](std::vector<Hold>& holds, PriceBook& book, std::int64_t need) {
    const auto from = std::ranges::lower_bound(holds, slot, {}, &Hold::slot);
    book.release(std::span<const Hold>(from, holds.end()), Amounts{need});
    holds.erase(from, holds.end());
  };
  cut(row.workers, gpus_.book, row.gpus_per_worker);
  if (cores_) cut(row.helpers, cores_->book, servers_.cores);
}

/// Schedules of jobs that are over take no memory.
void Promises::drop(JobId job) {
  jobs_.erase(job);
  const std::uint32_t generation = rows_[job].generation + 1;  // some may be in the agenda still
  rows_[job] = Row{};
  rows_[job].generation = generation;
}

const Hold* Promises::hold_at(JobId job, std::int64_t slot) const {
  const auto& holds = rows_[job].workers;
  const auto hold = std::ranges::lower_bound(holds, slot, {}, &Hold::slot);
  return hold == holds.end() || hold->slot != slot ? nullptr : &*hold;
}

std::int64_t Promises::gpus_at(JobId job, std::int64_t slot) const {
  const Hold* hold = hold_at(job, slot);
  return hold == nullptr ? 0 : hold->units * rows_[job].gpus_per_worker;
}

PoolId Promises::pool_at(JobId job, std::int64_t slot) const {
  return PoolId{hold_at(job, slot)->server};
}

std::optional<std::int64_t> Promises::next_after(JobId job, std::int64_t slot) const {
  const auto& holds = rows_[job].workers;
  const auto next = std::ranges::upper_bound(holds, slot, {}, &Hold::slot);
  if (next == holds.end()) return std::nullopt;
  return next->slot;
}

std::optional<JobId> Promises::last_holder(PoolId pool, std::int64_t slot) const {
  for (std::size_t i = jobs_.size(); i-- > 0;) {
    const Hold* hold = hold_at(jobs_[i], slot);
    if (hold != nullptr && hold->server == pool.value) return jobs_[i];
  }
  return std::nullopt;
}

void Promises::remind(JobId job, std::int64_t slot) {
  agenda_.push_back({slot, job, rows_[job].generation});
  std::ranges::push_heap(agenda_, std::ranges::greater{});
}

bool Promises::is_awaited(std::int64_t seen, std::int64_t slot) const {
  return std::ranges::any_of(agenda_, [&](const Appointment& due) {
    return due.slot > seen && due.slot <= slot && is_valid(due);
  });
}

void Promises::pop_first() {
  std::ranges::pop_heap(agenda_, std::ranges::greater{});
  agenda_.pop_back();
}

std::optional<std::int64_t> Promises::next_slot() {
  while (!agenda_.empty() && !is_valid(agenda_.front())) pop_first();
  if (agenda_.empty()) return std::nullopt;
  return agenda_.front().slot;
}

std::optional<JobId> Promises::pop_due(std::int64_t slot) {
  const auto next = next_slot();
  if (!next || *next > slot) return std::nullopt;
  const JobId job = agenda_.front().job;
  pop_first();
  return job;
}

}  // namespace berth::oasis
