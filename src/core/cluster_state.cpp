#include "core/cluster_state.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace berth {

namespace {
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::uint64_t all_devices(std::int32_t count) noexcept {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << static_cast<unsigned>(count)) - 1;
}
}  // namespace

ClusterState::ClusterState(const Cluster& cluster, Mode mode)
    : cluster_(&cluster),
      mode_(mode),
      rack_nodes_(cluster.racks.size()),
      nodes_(cluster.nodes.size()),
      pools_(cluster.pools.size()) {
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    PoolRow& pool = pools_[node.pool.value];
    const auto buckets = static_cast<std::size_t>(node.gpus) + 1;
    while (pool.by_free.size() < buckets) pool.by_free.emplace_back(cluster.nodes.size());
    pool.rack_free.resize(cluster.racks.size());
    rack_nodes_[node.rack.value].push_back(NodeId{i});
    if (node.cpus_milli > 0) {
      nodes_[i].cpus_milli = node.cpus_milli;
      pool.cpus_milli += node.cpus_milli;
      pool.limits_cpus = true;
    }
    if (node.memory_mib > 0) {
      nodes_[i].memory_mib = node.memory_mib;
      pool.memory_mib += node.memory_mib;
      pool.limits_memory = true;
    }
  }
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    nodes_[i].up = false;
    set_up(NodeId{i});
  }
}

void ClusterState::add_free(NodeId node, std::int32_t change) {
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

std::int32_t ClusterState::room_on(NodeId node, const Shape& shape) const noexcept {
  const NodeRow& row = nodes_[node.value];
  std::int64_t room = row.free;
  if (shape.cpus_milli_per_gpu > 0 && row.cpus_milli != kUnlimited) {
    room = std::min(room, row.cpus_milli / shape.cpus_milli_per_gpu);
  }
  if (shape.memory_mib_per_gpu > 0 && row.memory_mib != kUnlimited) {
    room = std::min(room, row.memory_mib / shape.memory_mib_per_gpu);
  }
  return static_cast<std::int32_t>(room);
}

bool ClusterState::has_side_room(PoolId pool, const Shape& shape) const noexcept {
  const PoolRow& row = pools_[pool.value];
  const auto need = [&](std::int32_t per_gpu) { return std::int64_t{shape.gpus} * per_gpu; };
  if (row.limits_cpus && need(shape.cpus_milli_per_gpu) > row.cpus_milli) return false;
  return !(row.limits_memory && need(shape.memory_mib_per_gpu) > row.memory_mib);
}

void ClusterState::take(std::span<const Slice> slices, const Shape& shape) {
  for (const Slice& slice : slices) {
    NodeRow& row = nodes_[slice.node.value];
    BERTH_CHECK(row.up && (slice.devices & ~row.mask) == 0, "no device is given twice");
    BERTH_CHECK(std::popcount(slice.devices) == slice.gpus, "a slice counts its own devices");
    row.mask &= ~slice.devices;
    add_free(slice.node, -slice.gpus);
    if (row.cpus_milli != kUnlimited)
      row.cpus_milli -= std::int64_t{slice.gpus} * shape.cpus_milli_per_gpu;
    if (row.memory_mib != kUnlimited)
      row.memory_mib -= std::int64_t{slice.gpus} * shape.memory_mib_per_gpu;
    BERTH_CHECK(row.cpus_milli >= 0 && row.memory_mib >= 0, "no core or memory is given twice");
  }
}

void ClusterState::give(std::span<const Slice> slices, const Shape& shape) {
  for (const Slice& slice : slices) {
    NodeRow& row = nodes_[slice.node.value];
    BERTH_CHECK((slice.devices & row.mask) == 0, "only a taken device comes back");
    row.mask |= slice.devices;
    add_free(slice.node, slice.gpus);
    if (row.cpus_milli != kUnlimited)
      row.cpus_milli += std::int64_t{slice.gpus} * shape.cpus_milli_per_gpu;
    if (row.memory_mib != kUnlimited)
      row.memory_mib += std::int64_t{slice.gpus} * shape.memory_mib_per_gpu;
  }
}

void ClusterState::take_count(PoolId pool, const Shape& shape) {
  PoolRow& row = pools_[pool.value];
  BERTH_CHECK(row.free >= shape.gpus, "no device is given twice");
  row.free -= shape.gpus;
  free_ -= shape.gpus;
  if (row.limits_cpus) row.cpus_milli -= std::int64_t{shape.gpus} * shape.cpus_milli_per_gpu;
  if (row.limits_memory) row.memory_mib -= std::int64_t{shape.gpus} * shape.memory_mib_per_gpu;
}

void ClusterState::give_count(PoolId pool, const Shape& shape) {
  PoolRow& row = pools_[pool.value];
  row.free += shape.gpus;
  free_ += shape.gpus;
  if (row.limits_cpus) row.cpus_milli += std::int64_t{shape.gpus} * shape.cpus_milli_per_gpu;
  if (row.limits_memory) row.memory_mib += std::int64_t{shape.gpus} * shape.memory_mib_per_gpu;
}

bool ClusterState::is_free(std::span<const Slice> slices, const Shape& shape) const noexcept {
  return std::ranges::all_of(slices, [&](const Slice& slice) {
    const NodeRow& row = nodes_[slice.node.value];
    return row.up && (slice.devices & ~row.mask) == 0 && room_on(slice.node, shape) >= slice.gpus;
  });
}

void ClusterState::set_down(NodeId node) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  PoolRow& pool = pools_[described.pool.value];
  BERTH_CHECK(row.up && row.free == described.gpus, "a node goes down empty");
  row.up = false;
  row.mask = 0;
  pool.by_free[static_cast<std::size_t>(row.free)].erase(node);
  row.free = 0;
  pool.free -= described.gpus;
  pool.usable -= described.gpus;
  pool.rack_free[described.rack.value] -= described.gpus;
  free_ -= described.gpus;
  usable_ -= described.gpus;
}

void ClusterState::set_up(NodeId node) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  PoolRow& pool = pools_[described.pool.value];
  BERTH_CHECK(!row.up, "only a node that is down comes up");
  row.up = true;
  row.mask = all_devices(described.gpus);
  row.free = described.gpus;
  pool.by_free[static_cast<std::size_t>(row.free)].insert(node);
  pool.free += described.gpus;
  pool.usable += described.gpus;
  pool.rack_free[described.rack.value] += described.gpus;
  free_ += described.gpus;
  usable_ += described.gpus;
}

}  // namespace berth
