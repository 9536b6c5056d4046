// From what apps have at stake to devices in the plan.
#include <algorithm>
#include <bit>
#include <set>

#include "policies/themis/themis.h"

namespace berth::themis {

namespace {

/// The lowest `count` bits of a mask.
std::uint64_t lowest_bits(std::uint64_t mask, std::int32_t count) {
  std::uint64_t chosen = 0;
  for (; count > 0 && mask != 0; --count) {
    chosen |= mask & (~mask + 1);
    mask &= mask - 1;
  }
  return chosen;
}

}  // namespace

void Themis::note_held(const View& view, JobId job, PoolId pool, std::int32_t gpus) {
  JobRow& row = jobs_[job.value];
  if (gpus == 0 && row.held > 0) row.since = view.now;
  if (gpus != row.held) row.work_at_change = view.jobs.work_done(job, view.now);
  row.held = gpus;
  row.pool = pool;
  row.on_offer = false;
}

/// Ended leases that were not renewed.
void Themis::stop_ended(const View& view, Plan& plan, PoolId pool) {
  for (const JobId job : pools_[pool.value].ended) {
    if (!jobs_[job.value].on_offer) continue;
    plan.preempt(job, Reason::Lease);
    note_held(view, job, pool, 0);
    refresh(view, jobs_[job.value].app);
  }
}

/// It has as many as before, on the same nodes: its lease goes on.
bool Themis::keeps_place(const Plan& plan, const Offer& offer, JobId job, std::int32_t gpus,
                         const Pieces& pieces) const {
  if (!jobs_[job.value].on_offer || jobs_[job.value].held != gpus) return false;
  if (!offer.map) return true;
  return std::ranges::all_of(plan.slices(job), [&](const Slice& slice) {
    return std::ranges::any_of(pieces, [&](const Piece& piece) {
      return offer.nodes[piece.machine] == slice.node && piece.gpus == slice.gpus;
    });
  });
}

/// On the machines it won, beside the devices it keeps; where these do not do (cores, memory),
/// wherever the run's placement finds room.
bool Themis::start(Plan& plan, const Offer& offer, JobId job, std::int32_t gpus,
                   const Pieces& added) {
  if (offer.map) {
    std::map<NodeId, Slice> slices;
    if (plan.holds(job)) {
      for (const Slice& slice : plan.slices(job)) slices[slice.node] = slice;
      plan.preempt(job, Reason::Growth);
    }
    for (const Piece& piece : added) {
      const NodeId node = offer.nodes[piece.machine];
      Slice& slice = slices[node];
      slice.node = node;
      slice.devices |= lowest_bits(plan.cluster().free_mask(node) & ~slice.devices, piece.gpus);
      slice.gpus = std::popcount(slice.devices);
    }
    std::vector<Slice> chosen;
    std::int32_t found = 0;
    for (const auto& [node, slice] : slices) {
      chosen.push_back(slice);
      found += slice.gpus;
    }
    if (found == gpus && plan.try_start_on(job, offer.pool, chosen, Reason::Lease)) return true;
  } else if (plan.holds(job)) {
    plan.preempt(job, Reason::Growth);
  }
  return plan.try_start_sized(offer.pool, job, gpus, Reason::Lease);
}

void Themis::grant(const View& view, Plan& plan, const Offer& offer,
                   std::span<const Stake> stakes) {
  struct Grant {
    JobId job;
    std::int32_t gpus;
    Pieces added;
  };
  std::vector<Grant> grants;
  for (const Stake& stake : stakes) {
    std::vector<Pieces> parts(stake.jobs.size());
    if (offer.map) parts = deal(plan, offer, stake, stake.split, stake.pieces);
    for (std::size_t i = 0; i < stake.jobs.size(); ++i) {
      const JobId job = stake.jobs[i];
      const std::int32_t gpus = stake.split.jobs()[i].held;
      if (gpus == firm(job)) continue;
      if (keeps_place(plan, offer, job, gpus, parts[i])) {
        note_held(view, job, offer.pool, gpus);
        set_lease(view, job);
      } else {
        grants.push_back({job, gpus, std::move(parts[i])});
      }
    }
  }
  stop_ended(view, plan, offer.pool);
  bool all_started = true;
  for (const Grant& each : grants) {
    const Plan::Mark mark = plan.mark();
    const bool grows = plan.holds(each.job);
    if (!start(plan, offer, each.job, each.gpus, each.added)) {
      plan.rollback(mark);
      all_started = false;
      continue;
    }
    note_held(view, each.job, offer.pool, each.gpus);
    if (!grows) set_lease(view, each.job);
  }
  for (const Stake& stake : stakes) refresh(view, stake.app);
  if (!all_started) fill_gaps(view, plan, offer.pool);
}

/// Some gang found no place although there are enough GPUs (cores, memory, closeness): whoever does
/// find one takes them.
void Themis::fill_gaps(const View& view, Plan& plan, PoolId pool) {
  std::vector<AppId> apps;
  for (const auto& [since, id] : pools_[pool.value].market.waiting()) apps.push_back(id);
  std::set<std::pair<ShapeId, std::int32_t>> blocked;
  for (const AppId id : apps) {
    if (plan.cluster().free_gpus(pool) == 0) return;
    for (const JobId job : std::vector<JobId>(app(id).jobs)) {
      const JobRow& row = jobs_[job.value];
      const std::pair key{view.jobs.shape[job], row.unit};
      const auto& pools = view.shape(job).pools;
      if (row.held > 0 || blocked.contains(key) || std::ranges::find(pools, pool) == pools.end())
        continue;
      if (!plan.try_start_sized(pool, job, row.unit, Reason::Backfill)) {
        blocked.insert(key);
        continue;
      }
      note_held(view, job, pool, row.unit);
      set_lease(view, job);
    }
    refresh(view, id);
  }
}

}  // namespace berth::themis
