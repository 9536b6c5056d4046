#include "policies/chronus/placing.h"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>

#include "base/device_mask.h"

namespace berth::chronus {

namespace {

/// `gpus` devices of the pool out of those in `free`: the fullest node that holds all of them,
/// otherwise the emptiest nodes. False: there are not as many.
template <class FreeOn>
bool pick_devices(const Cluster& cluster, PoolId pool, std::int32_t gpus, const FreeOn& free,
                  std::vector<Slice>& slices) {
  slices.clear();
  std::vector<std::pair<std::int32_t, NodeId>> nodes;  // free devices, node
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const NodeId node{i};
    if (cluster.nodes[i].pool == pool && free(node) != 0)
      nodes.emplace_back(std::popcount(free(node)), node);
  }
  std::ranges::sort(nodes, {}, [&](const auto& node) {
    const bool holds_all = node.first >= gpus;
    return std::tuple(!holds_all, holds_all ? node.first : -node.first, node.second);
  });
  std::int32_t left = gpus;
  for (const auto& [count, node] : nodes) {
    if (left == 0) break;
    const std::int32_t here = std::min(left, count);
    slices.push_back({node, here, DeviceMask{free(node)}.lowest(here)});
    left -= here;
  }
  std::ranges::sort(slices, {}, &Slice::node);
  return left == 0;
}

/// The pool's servers as leases see them: the devices of these jobs count as free.
BuddyServers::Map map_without(const Plan& plan, const BuddyServers& servers,
                              const std::vector<JobId>& jobs) {
  const ClusterState& state = plan.cluster();
  Column<NodeId, std::uint64_t> busy(state.cluster().nodes.size());
  for (std::uint32_t i = 0; i < busy.size(); ++i) busy[NodeId{i}] = ~state.free_mask(NodeId{i});
  for (const JobId job : jobs)
    for (const Slice& slice : plan.slices(job)) busy[slice.node] &= ~slice.devices;
  BuddyServers::Map map;
  for (std::uint32_t s = 0; s < servers.size(); ++s) {
    const NodeId node = servers.node(s);
    const bool up = state.is_up(node);
    map.taken.push_back(up ? 0 : servers.all());
    map.settled.push_back(0);
    map.lent.push_back(up ? servers.of_node(s, busy[node]) : 0);
  }
  return map;
}

}  // namespace

void Placing::begin(const View& view) {
  if (options_.padding == Padding::KeptFree && !is_counted(view))
    padding_.resize(view.cluster.cluster().nodes.size());
}

void Placing::stop(Pass& pass, JobId job) {
  pass.plan.preempt(job, promises_.is_broken(job) ? Reason::Deadline : Reason::Lease);
  roster_.note_waits(pass.view, job);
}

bool Placing::start_in(Pass& pass, JobId job, PoolId pool, Reason reason) {
  if (!keeps_padding()) return pass.plan.try_start_in(pool, job, reason);
  const auto free = [&](NodeId node) { return lendable(pass.plan, node); };
  return pick_devices(pass.view.cluster.cluster(), pool, pass.view.gpus(job), free, slices_) &&
         pass.plan.try_start_on(job, pool, slices_, reason);
}

bool Placing::start_early(Pass& pass, JobId job) {
  if (!start_in(pass, job, promises_.pool_of(job), Reason::Backfill)) return false;
  roster_.note_holds(pass.view, job);
  return true;
}

bool Placing::start(Pass& pass, JobId job, Reason reason) {
  if (promises_.is_broken(job)) reason = Reason::Deadline;  // the log shows the broken promise
  const bool is_started =
      keeps_padding()
          ? std::ranges::any_of(pass.view.shape(job).pools,
                                [&](PoolId pool) { return start_in(pass, job, pool, reason); })
          : pass.plan.try_start(job, reason);
  if (is_started) roster_.note_holds(pass.view, job);
  return is_started;
}

void Placing::place_leases(Pass& pass, const std::vector<JobId>& leased) {
  padding_ = Column<NodeId, std::uint64_t>(padding_.size());
  std::vector<JobId> jobs;
  for (std::uint32_t i = 0; i < promises_.pools(); ++i) {
    jobs.clear();
    for (const JobId job : leased)
      if (promises_.pool_of(job) == PoolId{i}) jobs.push_back(job);
    if (!jobs.empty()) place_in(pass, PoolId{i}, jobs);
  }
}

void Placing::place_in(Pass& pass, PoolId pool, const std::vector<JobId>& jobs) {
  // Without nodes there are no places, only numbers.
  const Places places = is_counted(pass.view) ? Places(jobs.size()) : make_places(pass, pool, jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (!roster_.holds(jobs[i])) start_lease(pass, pool, jobs[i], places[i]);
  for (std::uint32_t i = 0; i < padding_.size(); ++i)
    padding_[NodeId{i}] |= needed_[NodeId{i}] & pass.plan.cluster().free_mask(NodeId{i});
}

/// Chooses blocks for the leases and stops every other job on them.
Placing::Places Placing::make_places(Pass& pass, PoolId pool, const std::vector<JobId>& jobs) {
  Plan& plan = pass.plan;
  const BuddyServers& servers = promises_.servers(pool);
  std::vector<BuddyTenant> tenants;
  for (const JobId job : jobs) {
    const std::int32_t gpus = pass.view.gpus(job);
    tenants.push_back({gpus, std::nullopt});
    if (plan.holds(job)) tenants.back().own = servers.around(plan.slices(job), gpus);
  }
  Places places = place_tenants(servers, tenants, map_without(plan, servers, jobs));
  needed_ = Column<NodeId, std::uint64_t>(pass.view.cluster.cluster().nodes.size());
  const auto need = [&](const BuddyBlocks& blocks, std::int32_t gpus) {
    for (const Slice& slice : servers.slices(blocks, gpus)) needed_[slice.node] |= slice.devices;
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!places[i]) continue;
    const bool stays = tenants[i].own == places[i];
    if (!stays && plan.holds(jobs[i])) stop(pass, jobs[i]);
    if (!stays) need(*places[i], tenants[i].gpus);
    if (keeps_padding())
      need(*places[i], servers.gpus_each() * static_cast<std::int32_t>(places[i]->size()));
  }
  push_aside(pass);
  return places;
}

/// Best-effort jobs on devices that leases are about to take.
void Placing::push_aside(Pass& pass) {
  const std::vector<JobId> running(roster_.best_effort().begin(), roster_.best_effort().end());
  for (const JobId job : running) {
    const bool is_hit = std::ranges::any_of(pass.plan.slices(job), [&](const Slice& slice) {
      return (needed_[slice.node] & slice.devices) != 0;
    });
    if (is_hit) stop(pass, job);
  }
}

void Placing::start_lease(Pass& pass, PoolId pool, JobId job,
                          const std::optional<BuddyBlocks>& place) {
  const auto start_there = [&] {
    const auto slices = promises_.servers(pool).slices(*place, pass.view.gpus(job));
    return pass.plan.try_start_on(job, pool, slices, Reason::Reservation);
  };
  // A place may lack cores or memory that others have.
  if ((place && start_there()) || pass.plan.try_start_in(pool, job, Reason::Reservation))
    roster_.note_holds(pass.view, job);
}

}  // namespace berth::chronus
