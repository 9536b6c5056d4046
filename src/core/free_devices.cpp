#include "core/free_devices.h"

#include <bit>

#include "base/check.h"

namespace berth {

FreeDevices::FreeDevices(const Cluster& cluster)
    : cluster_(&cluster), nodes_(cluster.nodes.size()), pools_(cluster.pools.size()) {
  for (const Node& node : cluster.nodes) {
    PoolRow& pool = pools_[node.pool.value];
    const auto buckets = static_cast<std::size_t>(node.gpus) + 1;
    // Each bucket could hold every node of the cluster: NodeIds index it directly.
    while (pool.by_free.size() < buckets) pool.by_free.emplace_back(cluster.nodes.size());
    pool.rack_free.resize(cluster.racks.size());
  }
}

void FreeDevices::take(NodeId node, std::uint64_t devices) {
  BERTH_CHECK(is_free(node, devices), "no device is given twice");
  nodes_[node.value].mask &= ~devices;
  move(node, -std::popcount(devices));
}

void FreeDevices::give(NodeId node, std::uint64_t devices) {
  NodeRow& row = nodes_[node.value];
  BERTH_CHECK((devices & row.mask) == 0, "only a taken device comes back");
  row.mask |= devices;
  move(node, std::popcount(devices));
}

void FreeDevices::move(NodeId node, std::int32_t change) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  PoolRow& pool = pools_[described.pool.value];
  pool.by_free[static_cast<std::size_t>(row.free)].erase(node);
  row.free += change;
  pool.by_free[static_cast<std::size_t>(row.free)].insert(node);
  pool.free += change;
  pool.rack_free[described.rack.value] += change;
  free_ += change;
}

void FreeDevices::take_count(PoolId pool, std::int32_t gpus) {
  PoolRow& row = pools_[pool.value];
  BERTH_CHECK(row.free >= gpus, "no device is given twice");
  row.free -= gpus;
  free_ -= gpus;
}

void FreeDevices::give_count(PoolId pool, std::int32_t gpus) {
  pools_[pool.value].free += gpus;
  free_ += gpus;
}

void FreeDevices::enter_service(NodeId node) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  row = {.mask = all_devices(described.gpus), .free = described.gpus, .in_service = true};
  pools_[described.pool.value].by_free[static_cast<std::size_t>(row.free)].insert(node);
  add_totals(node, described.gpus);
}

void FreeDevices::leave_service(NodeId node) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  BERTH_CHECK(row.free == described.gpus, "a node leaves service empty");
  pools_[described.pool.value].by_free[static_cast<std::size_t>(row.free)].erase(node);
  row = {};
  add_totals(node, -described.gpus);
}

void FreeDevices::add_totals(NodeId node, std::int64_t gpus) {
  const Node& described = cluster_->nodes[node.value];
  PoolRow& pool = pools_[described.pool.value];
  pool.free += gpus;
  pool.free_milli += 1000 * gpus;
  pool.usable += gpus;
  pool.rack_free[described.rack.value] += gpus;
  free_ += gpus;
  usable_ += gpus;
}

}  // namespace berth
