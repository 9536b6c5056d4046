// Where a term begins: who has a lease, who runs on what is left, and where.
#include <algorithm>
#include <bit>

#include "policies/chronus/chronus.h"

namespace berth::chronus {

void Chronus::begin_term(const View& view, Plan& plan) {
  refresh_promises(view, plan);
  invited_.clear();
  if (options_.best_effort_in_program) invite(view, plan);
  choose_leases(view);
  const std::vector<JobId> promised(promised_.begin(), promised_.end());
  for (const JobId job : promised) {
    if (rows_[job.value].holds && !rows_[job.value].is_chosen) stop(view, plan, job);
  }
  choose_best_effort(view, plan);
  const std::vector<JobId> running(best_effort_.begin(), best_effort_.end());
  for (const JobId job : running) {
    if (!rows_[job.value].is_chosen) stop(view, plan, job);
  }
  std::ranges::fill(padding_, 0);
  for (std::uint32_t i = 0; i < pools_.size(); ++i) place_leases(view, plan, PoolId{i});
  for (const JobId job : chosen_) {
    // Pushed aside or new; if its placement declines, it waits in the queue.
    if (!rows_[job.value].holds) static_cast<void>(start(view, plan, job, Reason::Order));
  }
  for (const JobId job : leased_) rows_[job.value].is_chosen = false;
  for (const JobId job : chosen_) rows_[job.value].is_chosen = false;
  for (std::uint32_t i = 0; i < pools_.size(); ++i) improve(view, plan, PoolId{i});
  may_improve_ = false;
  for (Pool& pool : pools_) pool.plan.advance(rounds_.number(view.now) + 1);
}

void Chronus::choose_leases(const View& view) {
  leased_.clear();
  for (const Pool& pool : pools_) pool.plan.next_jobs(leased_);
  room_.clear();
  for (std::uint32_t i = 0; i < pools_.size(); ++i)
    room_.push_back(view.cluster.usable_gpus(PoolId{i}));
  for (const JobId job : leased_) {
    Row& row = rows_[job.value];
    row.is_chosen = true;
    const Pool& pool = pools_[row.pool.value];
    room_[row.pool.value] -= padding_.empty() ? view.gpus(job) : pool.plan.request(job).gpus;
  }
}

/// Who has waited too long goes before everybody else.
void Chronus::note_starved(const View& view) {
  while (!waits_.empty() &&
         view.now - waits_.begin()->first > options_.lease * options_.starve_leases) {
    const auto [since, job] = *waits_.begin();
    dequeue(view, job);
    rows_[job.value].is_starved = true;
    starved_.push(view.jobs.shape[job], {since.time_since_epoch().count(), job});
  }
}

bool Chronus::choose(const View& view, JobId job, std::optional<PoolId> preferred) {
  const std::int32_t gpus = view.gpus(job);
  const auto has_room = [&](PoolId pool) { return room_[pool.value] >= gpus; };
  const auto& pools = view.shape(job).pools;
  const auto found = std::ranges::find_if(pools, has_room);
  const bool stays = preferred && has_room(*preferred);
  if (!stays && found == pools.end()) return false;
  room_[stays ? preferred->value : found->value] -= gpus;
  rows_[job.value].is_chosen = true;
  chosen_.push_back(job);
  return true;
}

/// Waiting jobs that fit by number, best first, as long as they come before a given key.
void Chronus::choose_from(const View& view, WaitingByShape& queue, const OrderKey* before) {
  const auto fits = [&](const Shape& shape) {
    return std::ranges::any_of(shape.pools,
                               [&](PoolId pool) { return room_[pool.value] >= shape.gpus; });
  };
  for (;;) {
    const ShapeId* best = nullptr;
    for (const ShapeId& shape : queue.active()) {
      if (!fits(view.shapes[shape])) continue;
      if (best == nullptr || queue.top(shape) < queue.top(*best)) best = &shape;
    }
    if (best == nullptr || (before != nullptr && *before < queue.top(*best))) return;
    const JobId job = queue.pop(*best).job;  // back in choose_best_effort()
    static_cast<void>(choose(view, job, std::nullopt));
  }
}

void Chronus::choose_best_effort(const View& view, const Plan& plan) {
  chosen_.clear();
  note_starved(view);
  choose_from(view, starved_, nullptr);
  for (const JobId job : invited_) {
    const bool runs = rows_[job.value].holds;
    const bool comes = choose(view, job, runs ? std::optional{plan.pool_of(job)} : std::nullopt);
    if (comes && !runs) waiting_.forget(view.jobs.shape[job], job);  // back below
  }
  order_.clear();
  for (const JobId job : best_effort_) {
    if (!rows_[job.value].is_chosen) order_.push_back(key_of(view, job));
  }
  std::ranges::sort(order_);
  for (const OrderKey& key : order_) {
    choose_from(view, waiting_, &key);
    static_cast<void>(choose(view, key.job, plan.pool_of(key.job)));
  }
  choose_from(view, waiting_, nullptr);
  // They wait until they are placed.
  for (const JobId job : chosen_) {
    const Row& row = rows_[job.value];
    if (row.holds) continue;
    const OrderKey since{row.waits_since.time_since_epoch().count(), job};
    if (row.is_starved) {
      starved_.push(view.jobs.shape[job], since);
    } else {
      waiting_.push(view.jobs.shape[job], key_of(view, job));
    }
  }
}

BuddyServers::Map Chronus::map_of(const Plan& plan, const BuddyServers& servers,
                                  const std::vector<JobId>& jobs) const {
  const ClusterState& state = plan.cluster();
  std::vector<std::uint64_t> busy(state.cluster().nodes.size());
  for (std::uint32_t i = 0; i < busy.size(); ++i) busy[i] = ~state.free_mask(NodeId{i});
  for (const JobId job : jobs) {
    for (const Slice& slice : plan.slices(job)) busy[slice.node.value] &= ~slice.devices;
  }
  BuddyServers::Map map;
  for (std::uint32_t s = 0; s < servers.size(); ++s) {
    const NodeId node = servers.node(s);
    const bool up = state.is_up(node);
    map.taken.push_back(up ? 0 : servers.all());
    map.settled.push_back(0);
    map.lent.push_back(up ? servers.of_node(s, busy[node.value]) : 0);
  }
  return map;
}

/// Best-effort jobs on devices that leases are about to take.
void Chronus::push_aside(const View& view, Plan& plan) {
  const std::vector<JobId> running(best_effort_.begin(), best_effort_.end());
  for (const JobId job : running) {
    const bool is_hit = std::ranges::any_of(plan.slices(job), [&](const Slice& slice) {
      return (needed_[slice.node.value] & slice.devices) != 0;
    });
    if (is_hit) stop(view, plan, job);
  }
}

/// BuddyBlocks for the leases, and everybody out of their way.
Chronus::Places Chronus::make_places(const View& view, Plan& plan, PoolId pool,
                                     const std::vector<JobId>& jobs) {
  const BuddyServers& servers = pools_[pool.value].servers;
  std::vector<BuddyTenant> tenants;
  for (const JobId job : jobs) {
    tenants.push_back({view.gpus(job), std::nullopt});
    if (plan.holds(job)) tenants.back().own = servers.around(plan.slices(job), view.gpus(job));
  }
  Places places = place_tenants(servers, tenants, map_of(plan, servers, jobs));
  needed_.assign(view.cluster.cluster().nodes.size(), 0);
  const auto need = [&](const BuddyBlocks& blocks, std::int32_t gpus) {
    for (const Slice& slice : servers.slices(blocks, gpus))
      needed_[slice.node.value] |= slice.devices;
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!places[i]) continue;
    const bool stays = tenants[i].own == places[i];
    if (!stays && plan.holds(jobs[i])) stop(view, plan, jobs[i]);
    if (!stays) need(*places[i], tenants[i].gpus);
    if (!padding_.empty())
      need(*places[i], servers.gpus_each() * static_cast<std::int32_t>(places[i]->size()));
  }
  push_aside(view, plan);
  return places;
}

void Chronus::start_lease(const View& view, Plan& plan, JobId job,
                          const std::optional<BuddyBlocks>& place) {
  const PoolId pool = rows_[job.value].pool;
  const bool in_place =
      place &&
      plan.try_start_on(job, pool, pools_[pool.value].servers.slices(*place, view.gpus(job)),
                        Reason::Reservation);
  // Without nodes there are no places; and a place may lack cores or memory that others have.
  if (in_place || plan.try_start_in(pool, job, Reason::Reservation)) set_holding(view, job, true);
}

void Chronus::place_leases(const View& view, Plan& plan, PoolId pool) {
  std::vector<JobId> jobs;
  for (const JobId job : leased_) {
    if (rows_[job.value].pool == pool) jobs.push_back(job);
  }
  if (jobs.empty()) return;
  const Places places = counts_ ? Places(jobs.size()) : make_places(view, plan, pool, jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!rows_[jobs[i].value].holds) start_lease(view, plan, jobs[i], places[i]);
  }
  for (std::uint32_t i = 0; i < padding_.size(); ++i)
    padding_[i] |= needed_[i] & plan.cluster().free_mask(NodeId{i});
}

}  // namespace berth::chronus
