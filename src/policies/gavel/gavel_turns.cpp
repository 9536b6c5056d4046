// How Gavel's policy carries a round out: who keeps its devices, who comes and goes, what is done
// when a gang finds no place.
#include <algorithm>
#include <tuple>

#include "policies/gavel/gavel.h"

namespace berth::gavel {

void Gavel::carry_out(const View& view, Plan& plan, std::span<const Pick> picks) {
  std::vector<Placing> order = placings(plan, picks);
  for (const JobId job : running_) plan.preempt(job, Reason::Lease);
  const Plan::Mark empty = plan.mark();
  // Those that stay first, then the largest: what is left is in the largest pieces.
  const auto stays_first = [&](const Placing& a, const Placing& b) {
    return std::tuple(!a.stays, -book_[a.pick.candidate].gpus) <
           std::tuple(!b.stays, -book_[b.pick.candidate].gpus);
  };
  std::ranges::stable_sort(order, stays_first);
  const std::int64_t homeless = place(plan, order);
  if (homeless == 0) return;
  // Free devices lie scattered: pack anew, the largest first, if that helps.
  std::vector<Placing> largest_first = order;
  std::ranges::stable_sort(largest_first, [&](const Placing& a, const Placing& b) {
    return std::tuple(-book_[a.pick.candidate].gpus, !a.stays) <
           std::tuple(-book_[b.pick.candidate].gpus, !b.stays);
  });
  plan.rollback(empty);
  if (place(plan, largest_first) >= homeless) {
    plan.rollback(empty);
    static_cast<void>(place(plan, order));
  }
  fill_rest(view, plan, order);
}

/// The leader of a pair is the one that is on that type already.
std::vector<Gavel::Placing> Gavel::placings(const Plan& plan, std::span<const Pick> picks) const {
  const auto is_there = [&](JobId job, PoolId pool) {
    return plan.holds(job) && plan.pool_of(job) == pool;
  };
  std::vector<Placing> order;
  order.reserve(picks.size());
  for (const Pick& pick : picks) {
    const Candidate& candidate = book_[pick.candidate];
    Placing placing{.pick = pick, .leader = candidate.job};
    placing.stays = is_there(candidate.job, pick.pool);
    if (!placing.stays && candidate.partner && is_there(*candidate.partner, pick.pool)) {
      placing.leader = *candidate.partner;
      placing.stays = true;
    }
    order.push_back(placing);
  }
  return order;
}

/// GPUs of those that found no place.
std::int64_t Gavel::place(Plan& plan, std::span<const Placing> order) {
  std::int64_t homeless = 0;
  for (const Placing& placing : order) {
    const Candidate& candidate = book_[placing.pick.candidate];
    const PoolId pool = placing.pick.pool;
    if (!plan.try_start_in(pool, placing.leader, Reason::TimeSlice)) {
      homeless += candidate.gpus;
      continue;
    }
    if (!candidate.partner) continue;
    const JobId other = placing.leader == candidate.job ? *candidate.partner : candidate.job;
    const auto slices = plan.slices(placing.leader);
    const std::vector<Slice> devices{slices.begin(), slices.end()};
    static_cast<void>(plan.try_share_on(other, pool, devices, 2, Reason::Packing));
  }
  return homeless;
}

/// Somebody found no place on its type: it may go elsewhere, and others to what it left free.
void Gavel::fill_rest(const View& view, Plan& plan, std::span<const Placing> order) {
  const auto try_anywhere = [&](JobId job) {
    if (!plan.holds(job) && plan.has_room(view.shape(job)))
      static_cast<void>(plan.try_start(job, Reason::Backfill));
  };
  for (const Placing& placing : order) try_anywhere(placing.leader);
  std::vector<JobId> rest;
  for (std::uint32_t i = 0; i < book_.size(); ++i) {
    const JobId job = book_[i].job;
    if (!plan.holds(job) && plan.has_room(view.shape(job))) rest.push_back(job);
  }
  std::ranges::sort(rest);
  for (const JobId job : rest) try_anywhere(job);
}

/// On what is free until the next round, in order of arrival. Whoever runs is left alone.
void Gavel::start_waiting(const View& view, Plan& plan) {
  blocked_.assign(view.shapes.size(), false);
  std::vector<JobId> waiting;
  for (std::uint32_t i = 0; i < book_.size(); ++i) {
    if (!book_[i].partner && !plan.holds(book_[i].job)) waiting.push_back(book_[i].job);
  }
  std::ranges::sort(waiting);
  for (const JobId job : waiting) {
    const ShapeId shape = view.jobs.shape[job];
    if (blocked_[shape.value]) continue;
    blocked_[shape.value] = !plan.try_start(job, Reason::Backfill);
    if (blocked_[shape.value]) continue;
    Row& row = rows_[job.value];
    row.pool = plan.pool_of(job);
    row.partner.reset();
    row.attained = view.jobs.attained(job, view.now);
    const auto at = std::ranges::lower_bound(running_, job);
    if (at == running_.end() || *at != job) running_.insert(at, job);  // it may have lost its turn
  }
}

void Gavel::remember_turns(const View& view, const Plan& plan) {
  running_.clear();
  for (std::uint32_t i = 0; i < book_.size(); ++i) {
    if (book_[i].partner) continue;
    const JobId job = book_[i].job;
    Row& row = rows_[job.value];
    row.pool.reset();
    row.partner.reset();
    if (!plan.holds(job)) continue;
    row.pool = plan.pool_of(job);
    row.attained = view.jobs.attained(job, view.now);
    running_.push_back(job);
  }
  for (std::uint32_t i = 0; i < book_.size(); ++i) {
    const Candidate& pair = book_[i];
    if (!pair.partner || !plan.holds(pair.job) || !plan.holds(*pair.partner)) continue;
    const auto mine = plan.slices(pair.job);
    const auto other = plan.slices(*pair.partner);
    if (!std::ranges::equal(mine, other)) continue;
    rows_[pair.job.value].partner = pair.partner;
    rows_[pair.partner->value].partner = pair.job;
  }
  std::ranges::sort(running_);
}

}  // namespace berth::gavel
