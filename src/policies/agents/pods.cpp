#include "policies/agents/pods.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace berth::agents {

/// Without nodes there is nothing to divide.
Pods::Pods(const ClusterState& state, std::int64_t most_devices)
    : pod_of_(state.cluster().nodes.size()) {
  const Cluster& cluster = state.cluster();
  if (state.mode() == ClusterState::Mode::Count)
    most_devices = std::numeric_limits<std::int64_t>::max();
  std::vector<NodeId> order;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) order.push_back(NodeId{i});
  const auto rack_of = [&](NodeId node) { return cluster.nodes[node.value].rack; };
  std::ranges::sort(order, {}, [&](NodeId node) {
    return std::tuple(cluster.zone_of(rack_of(node)), rack_of(node), node);
  });
  for (auto first = order.begin(); first != order.end();) {
    const auto last = std::find_if(first, order.end(),
                                   [&](NodeId node) { return rack_of(node) != rack_of(*first); });
    add_rack(cluster, {first, last}, most_devices);
    first = last;
  }
}

void Pods::add_rack(const Cluster& cluster, std::span<const NodeId> nodes,
                    std::int64_t most_devices) {
  std::int64_t rack = 0;
  for (const NodeId node : nodes) rack += cluster.nodes[node.value].gpus;
  const auto has_room = [&](std::int64_t devices) {
    return size() > 0 && devices <= most_devices - last_size_;
  };
  const bool together = rack <= most_devices;
  if (together && !has_room(rack)) open_pod(cluster);
  for (const NodeId node : nodes) {
    if (!together && !has_room(cluster.nodes[node.value].gpus)) open_pod(cluster);
    add_node(cluster, node);
  }
}

void Pods::open_pod(const Cluster& cluster) {
  nodes_.push_back({});
  devices_.push_back(Column<PoolId, std::int64_t>(cluster.pools.size()));
  last_size_ = 0;
}

void Pods::add_node(const Cluster& cluster, NodeId node) {
  const Node& row = cluster.nodes[node.value];
  const PodId last{static_cast<std::uint32_t>(size() - 1)};
  pod_of_[node] = last;
  nodes_[last].push_back(node);
  devices_[last][row.pool] += row.gpus;
  last_size_ += row.gpus;
}

PodId Pods::pod_of(std::span<const Slice> slices) const noexcept {
  if (slices.empty()) return root();
  const PodId first = pod_of(slices.front().node);
  const bool together =
      std::ranges::all_of(slices, [&](const Slice& slice) { return pod_of(slice.node) == first; });
  return together ? first : root();
}

bool Pods::could_hold(PodId pod, const Shape& shape) const noexcept {
  return std::ranges::any_of(shape.pools,
                             [&](PoolId pool) { return devices_[pod][pool] >= shape.gpus; });
}

/// Fractions of a device go where the placement of the run puts them, which knows no pods.
PodId Pods::home(JobId job, const Shape& shape) const noexcept {
  if (!is_divided() || shape.is_fraction()) return root();
  std::uint32_t able = 0;
  for (std::uint32_t pod = 0; pod < size(); ++pod) able += could_hold(PodId{pod}, shape) ? 1U : 0U;
  if (able == 0) return root();
  std::uint32_t turn = job.value % able;
  for (std::uint32_t pod = 0;; ++pod) {
    if (could_hold(PodId{pod}, shape) && turn-- == 0) return PodId{pod};
  }
}

bool Pods::may_hold(const ClusterState& state, PodId pod, PoolId pool,
                    const Shape& shape) const noexcept {
  if (!state.may_hold(pool, shape)) return false;
  return pod == root() || free_gpus(state, pod, pool) >= shape.gpus;
}

std::optional<PoolId> Pods::first_pool(const ClusterState& state, PodId pod,
                                       const Shape& shape) const noexcept {
  for (const PoolId pool : shape.pools) {
    if (may_hold(state, pod, pool, shape)) return pool;
  }
  return std::nullopt;
}

std::int64_t Pods::free_gpus(const ClusterState& state, PodId pod, PoolId pool) const noexcept {
  return pod == root() ? state.free_gpus(pool) : summary(state, pod, pool).free;
}

PodSummary Pods::summary(const ClusterState& state, PodId pod, PoolId pool) const noexcept {
  PodSummary result;
  for (const NodeId node : nodes(pod)) {
    if (state.cluster().nodes[node.value].pool != pool || !state.is_up(node)) continue;
    result.free += state.free_on(node);
    result.largest_server = std::max(result.largest_server, state.free_on(node));
  }
  return result;
}

}  // namespace berth::agents
