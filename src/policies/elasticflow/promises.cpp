#include "policies/elasticflow/promises.h"

#include <algorithm>

namespace berth::elasticflow {

double Promises::work_left(const View& view, JobId job, Time at) const {
  double left = to_seconds(view.estimated_left(job));
  if (view.jobs.is_running(job)) {
    const Time from = std::max(view.now, view.jobs.work_from[job]);
    if (at > from) left -= view.jobs.rate[job].value() * to_seconds(at - from);
  }
  return slack_ * std::max(left, 1e-6);
}

bool Promises::try_promise(const View& view, JobId job, Time start) {
  start_ = start;
  for (const PoolId pool : view.shape(job).pools) {
    if (curves_.of(view, job, pool).sizes() == 0 || !make_shares(view, pool, job)) continue;
    rows_[job].is_promised = true;
    rows_[job].pool = pool;
    commit();
    return true;
  }
  return false;
}

void Promises::add(const View& view, JobId job) {
  by_deadline_.insert({*view.deadline(job), job});
  has_changed_ = true;
}

void Promises::remove(const View& view, JobId job) {
  by_deadline_.erase({*view.deadline(job), job});
  has_changed_ = true;
}

void Promises::withdraw(const View& view, JobId job) {
  by_deadline_.erase({*view.deadline(job), job});
  rows_[job].is_promised = false;
}

void Promises::renew(const View& view, PoolId pool, Time start) {
  start_ = start;
  if (has_changed_ || !keep_shares(view, pool))
    static_cast<void>(make_shares(view, pool, std::nullopt));  // late() says who failed
  commit();
}

Time Promises::next_change() const {
  Time next = kNever;
  for (const Kept& one : kept_)
    next = std::min(next, start_ + slot_ * one.share.stretches.front().slots);
  return next;
}

/// Shares of all promised jobs of the pool. Made anew they may fail although the old ones would do:
/// a job that is ahead of its plan may ask for fewer GPUs for longer, in the way of another.
bool Promises::make_shares(const View& view, PoolId pool, std::optional<JobId> newcomer) {
  late_.clear();
  return share_anew(view, pool, newcomer) || share_as_before(view, pool, newcomer);
}

std::vector<JobId> Promises::promised_in(PoolId pool) const {
  std::vector<JobId> jobs;
  for (const auto& [deadline, job] : by_deadline_) {
    if (rows_[job].pool == pool) jobs.push_back(job);
  }
  return jobs;
}

/// By deadline, the newcomer among the others. False: somebody is not in time.
bool Promises::share_anew(const View& view, PoolId pool, std::optional<JobId> newcomer) {
  kept_.clear();
  free_ = FreeGpus{view.cluster.usable_gpus(pool)};
  std::vector<JobId> order = promised_in(pool);
  if (newcomer) {
    const auto key = [&](JobId job) { return std::pair(*view.deadline(job), job); };
    order.insert(std::ranges::upper_bound(order, key(*newcomer), {}, key), *newcomer);
  }
  return std::ranges::all_of(order, [&](JobId job) { return add_share(view, job, pool); });
}

/// Everybody as before, the newcomer on what is left. A job for which that is not enough is late.
bool Promises::share_as_before(const View& view, PoolId pool, std::optional<JobId> newcomer) {
  kept_.clear();
  late_.clear();
  free_ = FreeGpus{view.cluster.usable_gpus(pool)};
  std::vector<JobId> rest;
  for (const JobId job : promised_in(pool)) {
    auto share = rest_of_share(view, job);
    if (share && free_.try_take(*share)) {
      kept_.push_back({job, *std::move(share)});
    } else {
      rest.push_back(job);
    }
  }
  for (const JobId job : rest) {
    if (!add_share(view, job, pool)) late_.push_back(job);
  }
  return !newcomer || (late_.empty() && add_share(view, *newcomer, pool));
}

/// Nobody came or went: what is left of the shares, unless one turns out too small.
bool Promises::keep_shares(const View& view, PoolId pool) {
  kept_.clear();
  late_.clear();
  std::int64_t left = view.cluster.usable_gpus(pool);
  for (const auto& [deadline, job] : by_deadline_) {
    if (rows_[job].pool != pool) continue;
    auto share = rest_of_share(view, job);
    if (!share) return false;
    left -= share->stretches.front().gpus;
    kept_.push_back({job, *std::move(share)});
  }
  free_ = FreeGpus{left};
  return true;
}

Demand Promises::demand(const View& view, JobId job, PoolId pool) {
  return {.curve = &curves_.of(view, job, pool),
          .work = work_left(view, job, start_),
          .slots = (*view.deadline(job) - start_) / slot_};
}

bool Promises::add_share(const View& view, JobId job, PoolId pool) {
  auto share = free_.share(demand(view, job, pool), to_seconds(slot_));
  if (!share || !free_.try_take(*share)) return false;
  kept_.push_back({job, *std::move(share)});
  return true;
}

/// Of the share it had, if that is still enough.
std::optional<Share> Promises::rest_of_share(const View& view, JobId job) {
  const Row& row = rows_[job];
  Share rest = row.share.after((start_ - row.from) / slot_);
  if (rest.stretches.empty()) return std::nullopt;
  const Demand need = demand(view, job, row.pool);
  if (rest.work(*need.curve, to_seconds(slot_)) < need.work) return std::nullopt;
  return rest;
}

void Promises::commit() {
  for (const Kept& one : kept_) {
    rows_[one.job].share = one.share;
    rows_[one.job].from = start_;
  }
}

}  // namespace berth::elasticflow
