#include "policies/common/reserved_nodes.h"

#include <algorithm>
#include <functional>

#include "placements/node_picker.h"

namespace berth {

void ReservedNodes::begin(const Cluster& cluster) {
  is_reserved_.resize(cluster.nodes.size());
  std::vector<std::size_t> nodes_of(cluster.pools.size());
  for (const Node& node : cluster.nodes) ++nodes_of[node.pool.value];
  const auto largest = std::ranges::max_element(nodes_of);
  if (largest == nodes_of.end()) return;
  pool_ = PoolId{static_cast<std::uint32_t>(largest - nodes_of.begin())};
  for (auto i = static_cast<std::uint32_t>(cluster.nodes.size()); i-- > 0;)
    if (cluster.nodes[i].pool == pool_) candidates_.push_back(NodeId{i});
}

void ReservedNodes::reserve(NodeId node) {
  nodes_.push_back(node);
  is_reserved_[node] = true;
}

void ReservedNodes::release(NodeId node) {
  std::erase(nodes_, node);
  is_reserved_[node] = false;
}

bool ReservedNodes::try_start_inside(Plan& plan, JobId job, Reason reason) const {
  const Shape& shape = plan.shape(job);
  const ClusterState& state = plan.cluster();
  return std::ranges::any_of(nodes_, [&](NodeId node) {
    if (!state.is_up(node) || state.room_on(node, shape) < shape.gpus) return false;
    const Slice slice = slice_of(state, node, shape.gpus);
    return plan.try_start_on(job, pool_, {&slice, 1}, reason);
  });
}

bool ReservedNodes::try_start_outside(Plan& plan, JobId job, Reason reason) {
  const Shape& shape = plan.shape(job);
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    return place_outside(plan.cluster(), shape, pool) &&
           plan.try_start_on(job, pool, slices_, reason);
  });
}

bool ReservedNodes::place_outside(const ClusterState& state, const Shape& shape, PoolId pool) {
  slices_.clear();
  std::int32_t need = shape.gpus;
  const auto visit = [&](std::int32_t free, std::int32_t least) {
    for (const NodeId node : state.nodes_with(pool, free)) {
      if (need == 0) return;
      if (contains(node)) continue;
      const std::int32_t room = std::min(need, state.room_on(node, shape));
      if (room < least) continue;
      slices_.push_back(slice_of(state, node, room));
      need -= room;
    }
  };
  for (std::int32_t free = shape.gpus; free <= state.largest_node(pool) && need > 0; ++free)
    visit(free, shape.gpus);
  for (std::int32_t free = state.largest_node(pool); free > 0 && need > 0; --free) visit(free, 1);
  if (need > 0) return false;
  return shape.locality == Locality::Relaxed || slices_.size() == 1 ||
         std::ssize(slices_) <= fewest_outside(state, shape, pool);
}

/// Fewest nodes that hold the gang when nothing is on the pool's nodes outside the reserved ones.
std::ptrdiff_t ReservedNodes::fewest_outside(const ClusterState& state, const Shape& shape,
                                             PoolId pool) const {
  std::vector<std::int32_t> rooms;
  for (std::uint32_t i = 0; i < is_reserved_.size(); ++i) {
    const Node& node = state.cluster().nodes[i];
    if (node.pool != pool || contains(NodeId{i}) || state.has_failed(NodeId{i})) continue;
    rooms.push_back(
        NodeKind{.gpus = node.gpus, .cpus_milli = node.cpus_milli, .memory_mib = node.memory_mib}
            .room(shape));
  }
  std::ranges::sort(rooms, std::ranges::greater{});
  std::ptrdiff_t nodes = 0;
  for (std::int32_t need = shape.gpus; need > 0 && nodes < std::ssize(rooms); ++nodes)
    need -= rooms[static_cast<std::size_t>(nodes)];
  return nodes;
}

bool ReservedNodes::is_outside_large_enough(const Cluster& cluster, const Shape& shape) const {
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    std::int64_t gpus = 0;
    for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
      if (cluster.nodes[i].pool == pool && !contains(NodeId{i})) gpus += cluster.nodes[i].gpus;
    }
    return gpus >= shape.gpus;
  });
}

}  // namespace berth
