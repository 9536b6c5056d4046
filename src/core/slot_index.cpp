#include "core/slot_index.h"

#include <algorithm>

#include "base/check.h"
#include "core/collect.h"

namespace berth {

SlotIndex::SlotIndex(std::shared_ptr<const Topology> topology)
    : topology_(std::move(topology)), pools_(topology_->cluster().pools.size()) {
  std::uint32_t devices = 0;
  for (std::uint32_t i = 0; i < topology_->cluster().nodes.size(); ++i) {
    const Node& node = topology_->cluster().nodes[i];
    PoolIndex& index = pools_[node.pool.value];
    first_device_.push_back(devices);
    place_.push_back(static_cast<std::uint32_t>(index.nodes.size()));
    first_place_.push_back(static_cast<std::uint32_t>(index.devices.size()));
    index.nodes.push_back(NodeId{i});
    for (std::int32_t device = 0; device < node.gpus; ++device)
      index.devices.push_back({NodeId{i}, std::uint64_t{1} << static_cast<unsigned>(device)});
    devices += static_cast<std::uint32_t>(node.gpus);
  }
  slots_.resize(devices);
  server_slots_.resize(first_device_.size());
  for (std::uint32_t i = 0; i < pools_.size(); ++i) add_pool(PoolId{i});
}

void SlotIndex::add_pool(PoolId pool) {
  const Cluster& cluster = topology_->cluster();
  PoolIndex& index = pools_[pool.value];
  const std::int64_t each = slots_per_device(pool);
  std::int64_t server = 0;
  std::vector<std::int64_t> racks(cluster.racks.size());
  std::vector<std::int64_t> zones(cluster.zones.size());
  for (const NodeId id : index.nodes) {
    const Node& node = cluster.nodes[id.value];
    server = std::max(server, node.gpus * each);
    racks[node.rack.value] += node.gpus * each;
    zones[cluster.zone_of(node.rack).value] += node.gpus * each;
  }
  index.free.resize(topology_->server(NodeId{0}).value);
  index.by_slots = CountSet(index.devices.size(), each);
  index.servers = CountSet(index.nodes.size(), server);
  index.racks = CountSet(racks.size(), std::ranges::max(racks));
  index.zones = CountSet(zones.size(), std::ranges::max(zones));
}

std::int32_t SlotIndex::free_slots(VertexId vertex, PoolId pool) const noexcept {
  const PoolIndex& index = pools_[pool.value];
  if (vertex.value < index.free.size()) return index.free[vertex.value];
  const NodeId node{(*topology_)[vertex].id};
  return topology_->cluster().nodes[node.value].pool == pool ? server_slots_[node.value] : 0;
}

void SlotIndex::set_free(NodeId node, std::int32_t device, std::int32_t slots) {
  const PoolId pool = topology_->cluster().nodes[node.value].pool;
  const std::int32_t before = free_slots(node, device);
  if (before == slots) return;
  BERTH_DCHECK(slots >= 0 && slots <= slots_per_device(pool),
               "a device has between none and all of its slots free");
  slots_[first_device_[node.value] + static_cast<std::size_t>(device)] = slots;
  pools_[pool.value].by_slots.move(first_place_[node.value] + static_cast<std::size_t>(device),
                                   before, slots);
  move_vertices(node, slots - before);
}

void SlotIndex::move_vertices(NodeId node, std::int32_t change) {
  PoolIndex& index = pools_[topology_->cluster().nodes[node.value].pool.value];
  const std::int32_t before = server_slots_[node.value];
  server_slots_[node.value] += change;
  index.servers.move(place_[node.value], before, before + change);
  for (VertexId vertex = topology_->server(node); vertex != Topology::root();) {
    vertex = (*topology_)[vertex].parent;
    const Vertex& row = (*topology_)[vertex];
    const std::int32_t from = index.free[vertex.value];
    index.free[vertex.value] = from + change;
    if (row.type == VertexType::Rack) index.racks.move(row.id, from, from + change);
    if (row.type == VertexType::Zone) index.zones.move(row.id, from, from + change);
  }
}

/// What servers give within the limits of a query.
struct SlotIndex::Offer {
  const SlotIndex& index;
  const SlotQuery& query;
  [[nodiscard]] bool may_have(VertexId vertex) const {
    return index.free_slots(vertex, query.pool) >= query.slots;
  }
  [[nodiscard]] std::int32_t room(NodeId node) const { return index.room(node, query); }
  [[nodiscard]] std::uint64_t pick(NodeId node, std::int32_t count) const {
    return index.pick(node, count, query.slots);
  }
};

std::int32_t SlotIndex::room(NodeId node, const SlotQuery& query) const {
  std::int32_t devices = 0;
  for (std::int32_t i = 0; i < topology_->cluster().nodes[node.value].gpus; ++i)
    devices += free_slots(node, i) >= query.slots ? 1 : 0;
  return query.room == nullptr ? devices : std::min(devices, query.room->room(node));
}

std::uint64_t SlotIndex::pick(NodeId node, std::int32_t count, std::int32_t slots) const {
  std::uint64_t taken = 0;
  const std::int32_t gpus = topology_->cluster().nodes[node.value].gpus;
  const std::int32_t all = slots_per_device(topology_->cluster().nodes[node.value].pool);
  for (std::int32_t fit = slots; fit <= all && count > 0; ++fit) {
    for (std::int32_t i = 0; i < gpus && count > 0; ++i) {
      if (free_slots(node, i) != fit) continue;
      taken |= std::uint64_t{1} << static_cast<unsigned>(i);
      --count;
    }
  }
  return taken;
}

std::optional<DeviceSet> SlotIndex::best_device(const SlotQuery& query) const {
  const PoolIndex& index = pools_[query.pool.value];
  for (auto member = index.by_slots.first_from(query.slots); member;
       member = index.by_slots.after(*member)) {
    const DeviceSet& device = index.devices[member->position];
    if (query.room == nullptr || query.room->room(device.node) >= 1) return device;
  }
  return std::nullopt;
}

std::optional<DeviceSet> SlotIndex::best_server(const SlotQuery& query) const {
  const PoolIndex& index = pools_[query.pool.value];
  for (auto member = index.servers.first_from(query.gpus * query.slots); member;
       member = index.servers.after(*member)) {
    const NodeId node = index.nodes[member->position];
    if (room(node, query) < query.gpus) continue;
    const std::uint64_t devices = pick(node, query.gpus, query.slots);
    if (topology_->inside(node).level_of(devices) <= query.max_level)
      return DeviceSet{node, devices};
  }
  return std::nullopt;
}

std::optional<VertexId> SlotIndex::first_with_room(const CountSet& set, VertexId first,
                                                   const SlotQuery& query) const {
  for (auto member = set.first_from(query.gpus * query.slots); member;
       member = set.after(*member)) {
    const VertexId vertex{first.value + static_cast<std::uint32_t>(member->position)};
    if (room_below(*topology_, vertex, Offer{*this, query}) >= query.gpus) return vertex;
  }
  return std::nullopt;
}

std::optional<VertexId> SlotIndex::best_upper(const SlotQuery& query) const {
  if (query.max_level < Level::Rack) return std::nullopt;
  const PoolIndex& index = pools_[query.pool.value];
  if (const auto rack = first_with_room(index.racks, topology_->rack(RackId{0}), query))
    return rack;
  if (query.max_level < Level::CrossRack) return std::nullopt;
  if (const auto zone = first_with_room(index.zones, topology_->zone(ZoneId{0}), query))
    return zone;
  const bool fits = room_below(*topology_, Topology::root(), Offer{*this, query}) >= query.gpus;
  return fits ? std::optional(Topology::root()) : std::nullopt;
}

std::optional<Match> SlotIndex::find(const SlotQuery& query, std::vector<DeviceSet>& buffer) const {
  const std::int64_t wanted = std::int64_t{query.gpus} * query.slots;
  if (free_slots(Topology::root(), query.pool) < wanted ||
      query.slots > slots_per_device(query.pool)) {
    return std::nullopt;
  }
  buffer.clear();
  if (const auto inside = query.gpus == 1 ? best_device(query) : best_server(query)) {
    buffer.push_back(*inside);
    return Match{topology_->inside(inside->node).level_of(inside->devices), buffer};
  }
  if (query.gpus == 1) return std::nullopt;
  const auto vertex = best_upper(query);
  if (!vertex) return std::nullopt;
  collect_below(*topology_, *vertex, Offer{*this, query}, query.gpus, buffer);
  return Match{(*topology_)[*vertex].level, buffer};
}

}  // namespace berth
