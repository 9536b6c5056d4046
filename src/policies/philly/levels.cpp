#include "policies/philly/levels.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "placements/node_picker.h"

namespace berth::philly {

namespace {

struct Room {
  NodeId node;
  std::int32_t free = 0;
};

bool contains(std::span<const NodeId> nodes, NodeId node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

/// Servers of the rack with room, most free first.
void list_rooms(const ClusterState& state, const Shape& shape, PoolId pool, RackId rack,
                std::span<const NodeId> avoided, std::vector<Room>& rooms) {
  rooms.clear();
  for (const NodeId node : state.nodes_of_rack(rack)) {
    if (state.cluster().nodes[node.value].pool != pool || !state.is_up(node)) continue;
    if (contains(avoided, node)) continue;
    const std::int32_t free = state.room_on(node, shape);
    if (free > 0) rooms.push_back({node, free});
  }
  std::ranges::sort(rooms, {}, [](const Room& room) { return std::tuple(-room.free, room.node); });
}

/// Evenly, larger parts first, if each server has room for its part; else as they come.
void deal(const ClusterState& state, std::span<const Room> rooms, std::int32_t gpus,
          std::vector<Slice>& slices) {
  const auto servers = static_cast<std::int32_t>(rooms.size());
  const auto part = [&](std::int32_t i) { return gpus / servers + (i < gpus % servers ? 1 : 0); };
  bool even = true;
  for (std::int32_t i = 0; i < servers; ++i)
    even = even && rooms[static_cast<std::size_t>(i)].free >= part(i);
  std::int32_t left = gpus;
  for (std::int32_t i = 0; i < servers && left > 0; ++i) {
    const Room& room = rooms[static_cast<std::size_t>(i)];
    const std::int32_t taken = even ? part(i) : std::min(left, room.free);
    if (taken > 0) slices.push_back(slice_of(state, room.node, taken));
    left -= taken;
  }
}

bool place_single(const ClusterState& state, const Shape& shape, PoolId pool,
                  std::span<const NodeId> avoided, std::vector<Slice>& slices) {
  for (std::int32_t free = 1; free <= state.largest_node(pool); ++free) {
    const NodeSet& nodes = state.nodes_with(pool, free);
    for (const NodeId node : nodes) {
      if (state.room_on(node, shape) < 1 || contains(avoided, node)) continue;
      slices.push_back(slice_of(state, node, 1));
      return true;
    }
  }
  return false;
}

/// How many servers of this rack a gang may be on.
std::size_t most_servers(const ClusterState& state, PoolId pool, RackId rack, std::int32_t gpus,
                         std::int32_t level) {
  if (level >= 2) return std::numeric_limits<std::size_t>::max();
  std::int32_t largest = 1;
  for (const NodeId node : state.nodes_of_rack(rack)) {
    const Node& server = state.cluster().nodes[node.value];
    if (server.pool == pool) largest = std::max(largest, server.gpus);
  }
  const std::int32_t fewest = (gpus + largest - 1) / largest;
  return static_cast<std::size_t>(level == 0 ? fewest : 2 * fewest);
}

}  // namespace

bool place_at_level(const ClusterState& state, const Shape& shape, PoolId pool, std::int32_t level,
                    std::vector<Slice>& slices, std::span<const NodeId> avoided) {
  slices.clear();
  if (state.free_gpus(pool) < shape.gpus) return false;
  if (shape.gpus == 1) return place_single(state, shape, pool, avoided, slices);
  std::vector<RackId> racks;
  for (std::uint32_t i = 0; i < state.racks(); ++i) {
    if (state.free_in_rack(pool, RackId{i}) > 0) racks.push_back(RackId{i});
  }
  std::ranges::sort(racks, {},
                    [&](RackId rack) { return std::tuple(-state.free_in_rack(pool, rack), rack); });
  std::vector<Room> rooms, chosen;
  std::int32_t found = 0;
  for (const RackId rack : racks) {
    if (level < 3) {
      if (state.free_in_rack(pool, rack) < shape.gpus) break;  // the next have even less
      chosen.clear();
      found = 0;
    }
    const std::size_t most = most_servers(state, pool, rack, shape.gpus, level);
    list_rooms(state, shape, pool, rack, avoided, rooms);
    for (const Room& room : rooms) {
      if (found >= shape.gpus || (level < 3 && chosen.size() == most)) break;
      chosen.push_back(room);
      found += room.free;
    }
    if (found < shape.gpus) continue;
    deal(state, chosen, shape.gpus, slices);
    return true;
  }
  return false;
}

}  // namespace berth::philly
