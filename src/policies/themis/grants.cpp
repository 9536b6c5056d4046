#include "policies/themis/grants.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/device_mask.h"

namespace berth::themis {

namespace {

struct Grant {
  JobId job;
  std::int32_t gpus;
  Pieces added;
};

/// On the machines it won, beside the devices it had.
bool start_on_pieces(Plan& plan, const Offer& offer, const Grant& grant,
                     std::span<const Slice> had) {
  std::map<NodeId, Slice> slices;
  for (const Slice& slice : had) slices[slice.node] = slice;
  for (const Piece& piece : grant.added) {
    const NodeId node = offer.nodes[piece.machine];
    Slice& slice = slices[node];
    slice.node = node;
    const DeviceMask free{plan.cluster().free_mask(node) & ~slice.devices};
    slice.devices |= free.lowest(piece.gpus);
    slice.gpus = std::popcount(slice.devices);
  }
  std::vector<Slice> chosen;
  std::int32_t found = 0;
  for (const auto& [node, slice] : slices) {
    chosen.push_back(slice);
    found += slice.gpus;
  }
  return found == grant.gpus && plan.try_start_on(grant.job, offer.pool, chosen, Reason::Lease);
}

/// Falls back to the run's placement where the pieces lack cores or memory.
bool start(Plan& plan, const Offer& offer, const Grant& grant) {
  const std::vector<Slice> had = devices_of(plan, grant.job);
  if (!had.empty()) plan.preempt(grant.job, Reason::Growth);
  if (offer.map && start_on_pieces(plan, offer, grant, had)) return true;
  return plan.try_start_sized(offer.pool, grant.job, grant.gpus, Reason::Lease);
}

}  // namespace

/// Records the GPUs and begins a lease.
void Grants::note(const View& view, JobId job, PoolId pool, std::int32_t gpus) {
  apps_.set_held(view, job, pool, gpus);
  leases_.grant(view, job);
}

/// Ended leases that were not renewed.
void Grants::stop_ended(Pass& pass, PoolId pool) {
  for (const JobId job : apps_.ended(pool)) {
    if (!apps_.is_on_offer(job)) continue;
    pass.plan.preempt(job, Reason::Lease);
    apps_.set_held(pass.view, job, pool, 0);
    apps_.refresh(pass.view, apps_.app_of(job));
  }
}

bool Grants::serve_starving(Pass& pass, PoolId pool, AppId app) {
  stop_ended(pass, pool);
  const std::int64_t free = pass.plan.cluster().free_gpus(pool);
  const bool is_all = free == pass.plan.cluster().usable_gpus(pool);
  const Stake stake = apps_.stake(pass.view, app, pool);
  const auto next = stake.split.next(static_cast<std::int32_t>(free));
  if (!next) return is_all;
  const JobId job = stake.jobs[*next];
  const std::int32_t unit = apps_.unit(job);
  if (!pass.plan.try_start_sized(pool, job, unit, Reason::Reservation)) return is_all;
  note(pass.view, job, pool, unit);
  apps_.refresh(pass.view, app);
  return true;
}

/// It has as many as before, on the same nodes: its lease goes on.
bool Grants::keeps_place(const Plan& plan, const Offer& offer, JobId job, std::int32_t gpus,
                         const Pieces& pieces) const {
  if (!apps_.is_on_offer(job) || apps_.held(job) != gpus) return false;
  if (!offer.map) return true;
  return std::ranges::all_of(plan.slices(job), [&](const Slice& slice) {
    return std::ranges::any_of(pieces, [&](const Piece& piece) {
      return offer.nodes[piece.machine] == slice.node && piece.gpus == slice.gpus;
    });
  });
}

void Grants::carry_out(Pass& pass, const Offer& offer, std::span<const Stake> stakes) {
  const View& view = pass.view;
  Plan& plan = pass.plan;
  std::vector<Grant> grants;
  for (const Stake& stake : stakes) {
    std::vector<Pieces> parts(stake.jobs.size());
    if (offer.map) parts = deal(plan, apps_, offer, stake, stake.split, stake.pieces);
    for (std::size_t i = 0; i < stake.jobs.size(); ++i) {
      const JobId job = stake.jobs[i];
      const std::int32_t gpus = stake.split.jobs()[i].held;
      if (gpus == apps_.firm(job)) continue;
      if (keeps_place(plan, offer, job, gpus, parts[i])) {
        note(view, job, offer.pool, gpus);
      } else {
        grants.push_back({job, gpus, std::move(parts[i])});
      }
    }
  }
  // After the loop above, which renews the leases that stay: only the others lose their devices.
  stop_ended(pass, offer.pool);
  bool all_started = true;
  for (const Grant& grant : grants) {
    const bool grows = plan.holds(grant.job);
    if (!pass.attempt([&] { return start(plan, offer, grant); })) {
      all_started = false;
    } else if (grows) {  // within its lease
      apps_.set_held(view, grant.job, offer.pool, grant.gpus);
    } else {
      note(view, grant.job, offer.pool, grant.gpus);
    }
  }
  for (const Stake& stake : stakes) apps_.refresh(view, stake.app);
  if (!all_started) fill_gaps(pass, offer.pool);
}

/// Some gang found no place although there are enough GPUs: the apps that wait try in their order,
/// with the smallest gangs they can use.
void Grants::fill_gaps(Pass& pass, PoolId pool) {
  std::vector<AppId> waiting;  // a copy: the market changes as they start
  for (const auto& [since, app] : apps_.market(pool).waiting()) waiting.push_back(app);
  std::set<std::pair<ShapeId, std::int32_t>> no_place;
  for (const AppId app : waiting) {
    if (pass.plan.cluster().free_gpus(pool) == 0) return;
    for (const JobId job : apps_.jobs_of(app)) {
      const std::int32_t unit = apps_.unit(job);
      const std::pair key{pass.view.jobs.shape[job], unit};
      const auto& pools = pass.view.shape(job).pools;
      if (apps_.held(job) > 0 || no_place.contains(key) ||
          std::ranges::find(pools, pool) == pools.end())
        continue;
      if (!pass.plan.try_start_sized(pool, job, unit, Reason::Backfill)) {
        no_place.insert(key);
        continue;
      }
      note(pass.view, job, pool, unit);
    }
    apps_.refresh(pass.view, app);
  }
}

}  // namespace berth::themis
