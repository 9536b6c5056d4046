#include "policies/gandiva_fair/quantum.h"

#include <algorithm>

#include "base/device_mask.h"

namespace berth::gandiva_fair {

void Quantum::hold(Pass& pass) {
  count_free(pass.view);
  chosen_.clear();
  // A job that still pays for its start continues: with a quantum shorter than that cost no job
  // would ever progress otherwise.
  const auto still_starts = [&](JobId job) {
    return pass.plan.holds(job) && pass.view.jobs.work_from[job] >= pass.view.now;
  };
  for (std::uint32_t i = 0; i < homes_.pools(); ++i) {
    const PoolId pool{i};
    if (options_.balancing == Mechanism::On) homes_.balance(pass.view, pool);
    const auto order = homes_.stride(pool).order();
    for (const GangStride::Entry& entry : order)
      if (still_starts(entry.job)) choose(pass, entry.job);
    for (const GangStride::Entry& entry : order)
      if (!still_starts(entry.job)) choose(pass, entry.job);
  }
  stop_others(pass.plan);
  std::ranges::stable_sort(chosen_, std::ranges::greater{},
                           [&](JobId job) { return pass.view.gpus(job); });
  for (const JobId job : chosen_)
    if (!pass.plan.holds(job)) start(pass, job);
}

void Quantum::count_free(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  pool_free_.resize(cluster.pools.size());
  node_free_.resize(cluster.nodes.size());
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i)
    pool_free_[PoolId{i}] = view.cluster.usable_gpus(PoolId{i});
  if (view.cluster.mode() == ClusterState::Mode::Count) return;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    node_free_[NodeId{i}] = view.cluster.is_up(NodeId{i}) ? cluster.nodes[i].gpus : 0;
}

void Quantum::choose(const Pass& pass, JobId job) {
  turns_[job].is_chosen = try_choose(pass, job);
  if (turns_[job].is_chosen) chosen_.push_back(job);
}

/// A turn, if its home (or for larger ones the type) still has devices enough in this quantum.
bool Quantum::try_choose(const Pass& pass, JobId job) {
  const Homes::Row& row = homes_[job];
  const std::int32_t gpus = pass.view.gpus(job);
  std::vector<Slice>& devices = turns_[job].devices;
  devices.clear();
  if (pool_free_[*row.pool] < gpus) return false;
  if (pass.view.cluster.mode() == ClusterState::Mode::Devices) {
    if (row.home) {
      if (node_free_[*row.home] < gpus) return false;
      devices.push_back({.node = *row.home, .gpus = gpus});
    } else if (!try_spread(pass, job, devices)) {
      return false;
    }
    for (const Slice& slice : devices) node_free_[slice.node] -= slice.gpus;
  }
  pool_free_[*row.pool] -= gpus;
  return true;
}

/// Where it is, or on the emptiest servers.
bool Quantum::try_spread(const Pass& pass, JobId job, std::vector<Slice>& devices) const {
  const auto held = pass.plan.slices(job);
  const auto fits = [&](const Slice& slice) { return node_free_[slice.node] >= slice.gpus; };
  if (pass.plan.holds(job) && std::ranges::all_of(held, fits)) {
    devices.assign(held.begin(), held.end());
    return true;
  }
  std::vector<NodeId> servers;
  for (const NodeId node : homes_.nodes(*homes_[job].pool))
    if (node_free_[node] > 0) servers.push_back(node);
  std::ranges::stable_sort(servers, std::ranges::greater{},
                           [&](NodeId node) { return node_free_[node]; });
  std::int64_t left = pass.view.gpus(job);
  for (const NodeId node : servers) {
    const std::int64_t part = std::min(left, node_free_[node]);
    devices.push_back({.node = node, .gpus = static_cast<std::int32_t>(part)});
    left -= part;
    if (left == 0) break;
  }
  std::ranges::sort(devices, {}, &Slice::node);
  return left == 0;
}

/// Jobs that have no turn, or have it elsewhere.
void Quantum::stop_others(Plan& plan) const {
  const auto same = [](const Slice& a, const Slice& b) {
    return a.node == b.node && a.gpus == b.gpus;
  };
  for (std::uint32_t i = 0; i < homes_.pools(); ++i) {
    for (const GangStride::Entry& entry : homes_.stride(PoolId{i}).entries()) {
      if (!plan.holds(entry.job)) continue;
      const Turn& turn = turns_[entry.job];
      const bool stays =
          turn.devices.empty() || std::ranges::equal(turn.devices, plan.slices(entry.job), same);
      if (!turn.is_chosen || !stays) plan.suspend(entry.job, Reason::TimeSlice);
    }
  }
}

void Quantum::start(Pass& pass, JobId job) {
  const Homes::Row& row = homes_[job];
  std::vector<Slice>& devices = turns_[job].devices;
  for (Slice& slice : devices) {
    const DeviceMask free{pass.plan.cluster().free_mask(slice.node)};
    if (free.size() < slice.gpus) return;
    slice.devices = free.lowest(slice.gpus);
  }
  const bool is_started = pass.view.cluster.mode() == ClusterState::Mode::Count
                              ? pass.plan.try_start_in(*row.pool, job, Reason::TimeSlice)
                              : pass.plan.try_start_on(job, *row.pool, devices, Reason::TimeSlice);
  if (is_started) pass.plan.set_pause(job, row.start_cost);
}

}  // namespace berth::gandiva_fair
