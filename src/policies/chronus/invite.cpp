// Best-effort jobs inside the integer program: leases of the coming term that can come later make
// way for short jobs that could run now.
#include <algorithm>

#include "policies/chronus/chronus.h"

namespace berth::chronus {

void Chronus::invite(const View& view, const Plan& plan) {
  note_starved(view);  // who has waited too long needs no invitation
  for (std::uint32_t i = 0; i < pools_.size(); ++i) invite_to(view, plan, PoolId{i});
  std::ranges::sort(invited_);
}

/// The first best-effort jobs that run in the pool or wait for it, as many as the program takes
/// beside the promises.
std::vector<JobId> Chronus::shortest_in(const View& view, const Plan& plan, PoolId pool) {
  const std::size_t promises = pools_[pool.value].plan.size();
  const std::size_t most = options_.effort.jobs > promises ? options_.effort.jobs - promises : 0;
  order_.clear();
  for (const JobId job : best_effort_) {
    if (plan.pool_of(job) == pool) order_.push_back(key_of(view, job));
  }
  std::vector<OrderKey> taken;
  while (taken.size() < most && !waiting_.empty()) {
    const ShapeId first = *std::ranges::min_element(
        waiting_.active(), {}, [&](ShapeId shape) { return waiting_.top(shape); });
    taken.push_back(waiting_.pop(first));
  }
  for (const OrderKey& key : taken) {
    waiting_.push(view.jobs.shape[key.job], key);
    const auto& pools = view.shape(key.job).pools;
    const bool is_invited = std::ranges::find(invited_, key.job) != invited_.end();
    if (!is_invited && std::ranges::find(pools, pool) != pools.end()) order_.push_back(key);
  }
  std::ranges::sort(order_);
  std::vector<JobId> jobs;
  for (std::size_t i = 0; i < std::min(most, order_.size()); ++i) jobs.push_back(order_[i].job);
  return jobs;
}

void Chronus::invite_to(const View& view, const Plan& plan, PoolId pool) {
  std::vector<JobId> leased;
  pools_[pool.value].plan.next_jobs(leased);
  if (leased.empty()) return;  // nobody is in the way
  const std::vector<JobId> jobs = shortest_in(view, plan, pool);
  std::vector<LeaseGuest> guests;
  for (const JobId job : jobs) {
    const Duration left = std::max(view.estimated_left(job), Duration{std::chrono::seconds{1}});
    guests.push_back({.gpus = view.gpus(job), .reward = 1 / to_seconds(left)});
  }
  if (guests.empty()) return;
  const auto comes = pools_[pool.value].plan.make_way(guests);
  for (std::size_t i = 0; comes && i < jobs.size(); ++i) {
    if ((*comes)[i]) invited_.push_back(jobs[i]);
  }
}

}  // namespace berth::chronus
