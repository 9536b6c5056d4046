#include "policies/chronus/term_choice.h"

#include <algorithm>

namespace berth::chronus {

void TermChoice::make(const View& view, const Plan& plan) {
  clear();
  roster_.note_starved(view);
  if (options_.program == Program::WithBestEffort) invite(view, plan);
  choose_leases(view);
  choose_best_effort(view, plan);
}

void TermChoice::clear() {
  for (const JobId job : leased_) is_chosen_[job] = false;
  for (const JobId job : best_effort_) is_chosen_[job] = false;
  leased_.clear();
  best_effort_.clear();
  invited_.clear();
}

/// Leases of the coming term that can come later make way for short jobs that could run now.
/// Starved jobs need no invitation: they go first anyway.
void TermChoice::invite(const View& view, const Plan& plan) {
  for (std::uint32_t i = 0; i < promises_.pools(); ++i) invite_to(view, plan, PoolId{i});
  std::ranges::sort(invited_);
}

/// The first best-effort jobs that run in the pool or wait for it, as many as the integer program
/// takes beside the promises.
std::vector<JobId> TermChoice::shortest_in(const View& view, const Plan& plan, PoolId pool) {
  const std::size_t promised = promises_.plan(pool).size();
  const std::size_t most = options_.effort.jobs > promised ? options_.effort.jobs - promised : 0;
  order_.clear();
  for (const JobId job : roster_.best_effort())
    if (plan.pool_of(job) == pool) order_.push_back(roster_.key_of(view, job));
  WaitingByShape& waiting = roster_.waiting();
  waiting.unblock();
  std::vector<OrderKey> taken;
  while (taken.size() < most && !waiting.empty()) taken.push_back(waiting.pop(*waiting.first()));
  for (const OrderKey& key : taken) {
    waiting.push(view.jobs.shape[key.job], key);
    const auto& pools = view.shape(key.job).pools;
    const bool is_invited = std::ranges::find(invited_, key.job) != invited_.end();
    if (!is_invited && std::ranges::find(pools, pool) != pools.end()) order_.push_back(key);
  }
  std::ranges::sort(order_);
  std::vector<JobId> jobs;
  for (std::size_t i = 0; i < std::min(most, order_.size()); ++i) jobs.push_back(order_[i].job);
  return jobs;
}

void TermChoice::invite_to(const View& view, const Plan& plan, PoolId pool) {
  std::vector<JobId> leased;
  promises_.plan(pool).next_jobs(leased);
  if (leased.empty()) return;  // nobody is in the way
  const std::vector<JobId> jobs = shortest_in(view, plan, pool);
  std::vector<LeaseGuest> guests;
  for (const JobId job : jobs) {
    const Duration left = std::max(view.estimated_left(job), Duration{std::chrono::seconds{1}});
    guests.push_back({.gpus = view.gpus(job), .reward = 1 / to_seconds(left)});
  }
  if (guests.empty()) return;
  const auto comes = promises_.plan(pool).make_way(guests);
  for (std::size_t i = 0; comes && i < jobs.size(); ++i)
    if ((*comes)[i]) invited_.push_back(jobs[i]);
}

void TermChoice::choose_leases(const View& view) {
  room_.clear();
  for (std::uint32_t i = 0; i < promises_.pools(); ++i) {
    promises_.plan(PoolId{i}).next_jobs(leased_);
    room_.push_back(view.cluster.usable_gpus(PoolId{i}));
  }
  const bool counts_padding = options_.padding == Padding::KeptFree && !is_counted(view);
  for (const JobId job : leased_) {
    is_chosen_[job] = true;
    const PoolId pool = promises_.pool_of(job);
    const LeasePlan& plan = promises_.plan(pool);
    room_[pool.value] -= counts_padding ? plan.request(job).gpus : view.gpus(job);
  }
}

/// False: there are not as many GPUs left.
bool TermChoice::choose(const View& view, JobId job, std::optional<PoolId> preferred) {
  const std::int32_t gpus = view.gpus(job);
  const auto has_room = [&](PoolId pool) { return room_[pool.value] >= gpus; };
  const auto& pools = view.shape(job).pools;
  const auto found = std::ranges::find_if(pools, has_room);
  const bool stays = preferred && has_room(*preferred);
  if (!stays && found == pools.end()) return false;
  room_[stays ? preferred->value : found->value] -= gpus;
  is_chosen_[job] = true;
  best_effort_.push_back(job);
  return true;
}

/// Waiting jobs that fit by number, best first, as long as they come before a given key. They are
/// out of the queue until choose_best_effort() puts them back.
void TermChoice::choose_from(const View& view, WaitingByShape& queue, const OrderKey* before) {
  const auto fits = [&](ShapeId id) {
    const Shape& shape = view.shapes[id];
    return std::ranges::any_of(shape.pools,
                               [&](PoolId pool) { return room_[pool.value] >= shape.gpus; });
  };
  queue.unblock();
  while (const auto shape = queue.first(fits)) {
    if (before != nullptr && *before < queue.top(*shape)) return;
    choose(view, queue.pop(*shape).job, std::nullopt);
  }
}

void TermChoice::choose_best_effort(const View& view, const Plan& plan) {
  choose_from(view, roster_.starved(), nullptr);
  WaitingByShape& waiting = roster_.waiting();
  for (const JobId job : invited_) {
    const bool runs = roster_.holds(job);
    const bool comes = choose(view, job, runs ? std::optional{plan.pool_of(job)} : std::nullopt);
    if (comes && !runs) waiting.forget(view.jobs.shape[job], job);
  }
  order_.clear();
  for (const JobId job : roster_.best_effort())
    if (!has(job)) order_.push_back(roster_.key_of(view, job));
  std::ranges::sort(order_);
  for (const OrderKey& key : order_) {
    choose_from(view, waiting, &key);
    choose(view, key.job, plan.pool_of(key.job));
  }
  choose_from(view, waiting, nullptr);
  for (const JobId job : best_effort_)
    if (!roster_.holds(job)) roster_.put_back(view, job);  // they wait until they are placed
}

}  // namespace berth::chronus
