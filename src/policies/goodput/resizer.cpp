#include "policies/goodput/resizer.h"

#include <algorithm>
#include <tuple>

namespace berth::goodput {

namespace {

/// Some node of the pool has so many devices free.
bool fits_one_node(const ClusterState& cluster, PoolId pool, std::int32_t gpus) {
  for (std::int32_t free = gpus; free <= cluster.largest_node(pool); ++free) {
    if (!cluster.nodes_with(pool, free).empty()) return true;
  }
  return false;
}

}  // namespace

std::int32_t Home::gpus() const noexcept {
  std::int32_t sum = 0;
  for (const Slice& slice : slices) sum += slice.gpus;
  return sum;
}

Home leave(Plan& plan, JobId job) {
  Home home{.job = job, .pool = plan.pool_of(job), .slices = {}};
  if (!plan.holds(job)) return home;
  home.slices = devices_of(plan, job);
  plan.preempt(job, Reason::Growth);
  return home;
}

/// A part of what it held, on as few nodes as possible.
void Resizer::shrink_in_place(Plan& plan, const Move& move) {
  const auto& [wish, home] = move;
  if (wish.gpus == 0 || wish.pool != home.pool || wish.gpus >= home.gpus()) return;
  slices_ = home.slices;
  std::ranges::sort(slices_, {}, [](const Slice& s) { return std::tuple(-s.gpus, s.node); });
  std::int32_t left = wish.gpus;
  std::size_t kept = 0;
  for (; kept < slices_.size() && left > 0; ++kept) {
    Slice& slice = slices_[kept];
    for (; slice.gpus > left; --slice.gpus) slice.devices &= slice.devices - 1;
    left -= slice.gpus;
  }
  slices_.resize(kept);
  std::ranges::sort(slices_, {}, &Slice::node);
  static_cast<void>(plan.try_start_on(wish.job, wish.pool, slices_, Reason::Growth));
}

void Resizer::bring_back(Plan& plan, const Home& home, PoolId pool, std::int32_t gpus) const {
  if (plan.try_start_sized(pool, home.job, gpus)) return;
  if (!home.slices.empty() && plan.try_start_on(home.job, home.pool, home.slices, Reason::Growth))
    return;
  for (std::int32_t size = gpus / 2; size >= jobs_->least(home.job); size /= 2) {
    if (plan.try_start_sized(pool, home.job, size)) return;
  }
}

/// At home if it is to be as large as it was, otherwise wherever the placement says.
void Resizer::place_by_size(Plan& plan) {
  std::ranges::stable_sort(moves_,
                           [](const Move& a, const Move& b) { return a.wish.gpus > b.wish.gpus; });
  for (const auto& [wish, home] : moves_) {
    if (wish.gpus == 0 || plan.holds(wish.job)) continue;
    const bool is_at_home = wish.pool == home.pool && wish.gpus == home.gpus() &&
                            plan.try_start_on(wish.job, wish.pool, home.slices, Reason::Growth);
    if (is_at_home) continue;
    // A gang that fits a node waits for one rather than being spread: over several nodes it would
    // get less done than its size was chosen for.
    const bool one_node = wish.gpus <= plan.cluster().largest_node(wish.pool);
    if (one_node && !fits_one_node(plan.cluster(), wish.pool, wish.gpus)) continue;
    static_cast<void>(plan.try_start_sized(wish.pool, wish.job, wish.gpus));
  }
}

bool Resizer::settle(Pass& pass, const Home& home) {
  const bool moved = !std::ranges::equal(pass.plan.slices(home.job), home.slices);
  if (pass.plan.holds(home.job)) jobs_->settle(pass, home.job, moved ? Place::New : Place::Kept);
  return moved;
}

bool Resizer::is_blocked(const Plan& plan, const Move& move) const {
  return move.wish.gpus > 0 && !plan.holds(move.wish.job);
}

/// Where some gang found no node with enough free devices, small jobs move closer together.
void Resizer::make_room(Pass& pass) {
  std::vector<PoolId> tight;
  for (const Move& move : moves_) {
    if (is_blocked(pass.plan, move)) tight.push_back(move.wish.pool);
  }
  if (tight.empty()) return;
  std::ranges::sort(tight);
  tight.erase(std::unique(tight.begin(), tight.end()), tight.end());
  for (const PoolId pool : tight) add_small_jobs(pass, pool);
  place_by_size(pass.plan);
}

/// Jobs smaller than a node that may be moved leave, to be placed again.
void Resizer::add_small_jobs(Pass& pass, PoolId pool) {
  Plan& plan = pass.plan;
  const std::int32_t node = plan.cluster().largest_node(pool);
  for (const JobId job : jobs_->active()) {
    const bool is_here = plan.holds(job) && plan.pool_of(job) == pool;
    if (!is_here || plan.gpus_of(job) >= node || jobs_->is_pinned(pass.view, job)) continue;
    const std::int32_t gpus = plan.gpus_of(job);
    const auto known = std::ranges::find(moves_, job, [](const Move& m) { return m.wish.job; });
    if (known != moves_.end()) {  // it was resized in this pass: its home is known
      plan.preempt(job, Reason::Growth);
      continue;
    }
    moves_.push_back({{job, pool, gpus}, leave(plan, job)});
  }
}

bool Resizer::apply(Pass& pass, std::span<const SizeWish> wishes, Repack repack) {
  Plan& plan = pass.plan;
  // Everybody who changes leaves first, so that who grows finds what who shrinks gives back.
  moves_.clear();
  for (const SizeWish& wish : wishes) moves_.push_back({wish, leave(plan, wish.job)});
  for (const Move& move : moves_) shrink_in_place(plan, move);
  place_by_size(plan);
  if (repack == Repack::SmallJobs) make_room(pass);
  bool moved = false;
  for (const Move& move : moves_) {
    if (is_blocked(plan, move)) bring_back(plan, move.home, move.wish.pool, move.wish.gpus);
    moved |= settle(pass, move.home);
  }
  return moved;
}

}  // namespace berth::goodput
