#include "placements/node_picker.h"

#include <algorithm>
#include <limits>

#include "base/device_mask.h"

namespace berth {

Slice slice_of(const ClusterState& state, NodeId node, std::int32_t count) noexcept {
  return {.node = node, .gpus = count, .devices = DeviceMask{state.free_mask(node)}.lowest(count)};
}

namespace {

/// First node of the bucket whose cores and memory suffice for `gpus` devices of the shape.
std::optional<NodeId> first_with_room(const ClusterState& state, const Shape& shape,
                                      const NodeSet& bucket, std::int32_t gpus) noexcept {
  if (!shape.needs_side_resources()) return bucket.first();
  for (const NodeId node : bucket) {
    if (state.room_on(node, shape) >= gpus) return node;
  }
  return std::nullopt;
}

}  // namespace

std::optional<NodeId> best_fit_node(const ClusterState& state, const Shape& shape, PoolId pool,
                                    std::int32_t gpus) noexcept {
  for (std::int32_t free = gpus; free <= state.largest_node(pool); ++free) {
    if (const auto node = first_with_room(state, shape, state.nodes_with(pool, free), gpus))
      return node;
  }
  return std::nullopt;
}

std::optional<NodeId> first_fit_node(const ClusterState& state, const Shape& shape,
                                     PoolId pool) noexcept {
  std::optional<NodeId> best;
  for (std::int32_t free = shape.gpus; free <= state.largest_node(pool); ++free) {
    const auto node = first_with_room(state, shape, state.nodes_with(pool, free), shape.gpus);
    if (node && (!best || *node < *best)) best = node;
  }
  return best;
}

std::optional<NodeId> random_fit_node(const ClusterState& state, const Shape& shape, PoolId pool,
                                      Rng& rng) {
  std::size_t candidates = 0;
  for (std::int32_t free = shape.gpus; free <= state.largest_node(pool); ++free) {
    candidates += state.nodes_with(pool, free).size();
  }
  if (candidates == 0) return std::nullopt;
  std::size_t rank = rng.below(candidates);  // one draw over all buckets, by size and then id
  for (std::int32_t free = shape.gpus; free <= state.largest_node(pool); ++free) {
    const NodeSet& bucket = state.nodes_with(pool, free);
    if (rank < bucket.size()) {
      const NodeId node = bucket.nth(rank);
      if (state.room_on(node, shape) >= shape.gpus) return node;
      // The drawn one lacks cores: any that has them.
      return best_fit_node(state, shape, pool, shape.gpus);
    }
    rank -= bucket.size();
  }
  return std::nullopt;
}

std::optional<RackId> best_fit_rack(const ClusterState& state, const Shape& shape,
                                    PoolId pool) noexcept {
  std::optional<RackId> best;
  for (std::uint32_t i = 0; i < state.racks(); ++i) {
    const std::int64_t free = state.free_in_rack(pool, RackId{i});
    if (free >= shape.gpus && (!best || free < state.free_in_rack(pool, *best))) best = RackId{i};
  }
  return best;
}

namespace {

/// Buckets suffice when the whole cluster is searched and only devices count: O(nodes taken x
/// bucket sizes).
bool fewest_by_buckets(const ClusterState& state, PoolId pool, std::int32_t need,
                       std::vector<Slice>& slices) {
  const auto untaken = [&](std::int32_t free) -> std::optional<NodeId> {
    for (const NodeId node : state.nodes_with(pool, free)) {
      if (std::ranges::find(slices, node, &Slice::node) == slices.end()) return node;
    }
    return std::nullopt;
  };
  // Buckets do not change while slices are chosen, so nodes taken so far are skipped: they are few.
  std::int32_t roomiest = state.largest_node(pool);
  while (need > 0) {
    std::optional<NodeId> node;
    for (std::int32_t free = need; free <= state.largest_node(pool) && !node; ++free)
      node = untaken(free);
    if (node) {  // it holds the whole rest, and no tighter one does
      slices.push_back(slice_of(state, *node, need));
      return true;
    }
    roomiest = std::min(roomiest, need - 1);
    while (roomiest > 0 && !(node = untaken(roomiest))) --roomiest;
    if (!node) return false;
    slices.push_back(slice_of(state, *node, roomiest));
    need -= roomiest;
  }
  return true;
}

struct Room {
  NodeId node;
  std::int32_t gpus;
};

void rooms_of_pool(const ClusterState& state, const Shape& shape, PoolId pool,
                   std::optional<RackId> rack, std::vector<Room>& rooms) {
  const auto add = [&](NodeId node) {
    if (state.cluster().nodes[node.value].pool != pool || !state.is_up(node)) return;
    if (const std::int32_t room = state.room_on(node, shape); room > 0)
      rooms.push_back({node, room});
  };
  if (rack) {
    for (const NodeId node : state.nodes_of_rack(*rack)) add(node);
  } else {
    for (std::uint32_t i = 0; i < state.cluster().nodes.size(); ++i) add(NodeId{i});
  }
}

bool fewest_by_scan(const ClusterState& state, std::vector<Room>& rooms, std::int32_t need,
                    std::vector<Slice>& slices) {
  std::ranges::sort(rooms, [](const Room& a, const Room& b) {
    return a.gpus != b.gpus ? a.gpus > b.gpus : a.node < b.node;
  });
  std::size_t i = 0;
  for (; i < rooms.size() && need >= rooms[i].gpus; ++i) {  // all of the roomiest is needed
    slices.push_back(slice_of(state, rooms[i].node, rooms[i].gpus));
    need -= rooms[i].gpus;
  }
  if (need == 0) return true;
  if (i == rooms.size()) return false;
  // Rooms fall from here on: the last that still holds the rest, of equals the lowest id.
  std::size_t tightest = i;
  for (std::size_t j = i; j < rooms.size() && rooms[j].gpus >= need; ++j) {
    if (rooms[j].gpus < rooms[tightest].gpus) tightest = j;
  }
  slices.push_back(slice_of(state, rooms[tightest].node, need));
  return true;
}

}  // namespace

bool fewest_nodes(const ClusterState& state, const Shape& shape, PoolId pool,
                  std::optional<RackId> rack, std::vector<Slice>& slices) {
  if (!rack && !shape.needs_side_resources())
    return fewest_by_buckets(state, pool, shape.gpus, slices);
  std::vector<Room> rooms;
  rooms_of_pool(state, shape, pool, rack, rooms);
  return fewest_by_scan(state, rooms, shape.gpus, slices);
}

bool fullest_nodes(const ClusterState& state, const Shape& shape, PoolId pool,
                   std::vector<Slice>& slices) {
  std::int32_t need = shape.gpus;
  for (std::int32_t free = 1; free <= state.largest_node(pool) && need > 0; ++free) {
    for (const NodeId node : state.nodes_with(pool, free)) {
      const std::int32_t room = std::min(need, state.room_on(node, shape));
      if (room <= 0) continue;
      slices.push_back(slice_of(state, node, room));
      need -= room;
      if (need == 0) break;
    }
  }
  return need == 0;
}

std::int32_t fewest_possible(const ClusterState& state, const Shape& shape, PoolId pool) noexcept {
  // Kinds are few: the next roomiest one is looked for anew each time instead of sorting them.
  std::int32_t nodes = 0;
  std::int32_t need = shape.gpus;
  std::int32_t above = std::numeric_limits<std::int32_t>::max();  // done with rooms from here on
  while (need > 0) {
    std::int32_t room = 0;
    for (const NodeKind& kind : state.kinds(pool)) {
      const std::int32_t here = kind.room(shape);
      if (kind.working > 0 && here < above) room = std::max(room, here);
    }
    if (room == 0) return nodes + 1;
    std::int32_t alike = 0;
    for (const NodeKind& kind : state.kinds(pool)) {
      if (kind.room(shape) == room) alike += kind.working;
    }
    const std::int32_t taken = std::min(alike, (need + room - 1) / room);
    nodes += taken;
    need -= static_cast<std::int32_t>(std::min<std::int64_t>(need, std::int64_t{taken} * room));
    above = room;
  }
  return nodes;
}

}  // namespace berth
