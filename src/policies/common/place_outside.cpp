#include "policies/common/place_outside.h"

#include <algorithm>

#include "placements/node_picker.h"

namespace berth {

namespace {

/// Fewest nodes that hold the gang when nothing is on the pool's nodes outside the reserved ones.
std::ptrdiff_t fewest_outside(const ClusterState& state, const Shape& shape, PoolId pool,
                              const std::vector<bool>& reserved) {
  std::vector<std::int32_t> rooms;
  for (std::uint32_t i = 0; i < reserved.size(); ++i) {
    const Node& node = state.cluster().nodes[i];
    if (node.pool != pool || reserved[i] || state.has_failed(NodeId{i})) continue;
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

}  // namespace

bool place_outside(const ClusterState& state, const Shape& shape, PoolId pool,
                   const std::vector<bool>& reserved, std::vector<Slice>& slices) {
  slices.clear();
  std::int32_t need = shape.gpus;
  const auto visit = [&](std::int32_t free, std::int32_t least) {
    const NodeSet& nodes = state.nodes_with(pool, free);
    for (auto node = nodes.first(); node && need > 0; node = nodes.next(NodeId{node->value + 1})) {
      if (reserved[node->value]) continue;
      const std::int32_t room = std::min(need, state.room_on(*node, shape));
      if (room < least) continue;
      slices.push_back(slice_of(state, *node, room));
      need -= room;
    }
  };
  for (std::int32_t free = shape.gpus; free <= state.largest_node(pool) && need > 0; ++free)
    visit(free, shape.gpus);
  for (std::int32_t free = state.largest_node(pool); free > 0 && need > 0; --free) visit(free, 1);
  if (need > 0) return false;
  return shape.locality == Locality::Relaxed || slices.size() == 1 ||
         std::ssize(slices) <= fewest_outside(state, shape, pool, reserved);
}

bool is_outside_large_enough(const Cluster& cluster, const Shape& shape,
                             const std::vector<bool>& reserved) {
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    std::int64_t gpus = 0;
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      if (cluster.nodes[i].pool == pool && !reserved[i]) gpus += cluster.nodes[i].gpus;
    }
    return gpus >= shape.gpus;
  });
}

}  // namespace berth
