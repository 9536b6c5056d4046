// Where in the topology tree are how many shareable slots free. A device can be shared in equal
// slots (model/catalogue.h); every vertex knows the free slots below it per pool, so that a query
// for gangs of which each member needs some slots of a device looks only where there are enough. A
// change of one device costs O(depth).
//
// The choice for one device: the one with the fewest free slots that suffice, then the lowest id.
// For several: by the rule of core/topology_index.h, of all levels from the server upwards the
// lowest with room, on it the vertex with the fewest free slots; inside of a server the devices
// with the fewest. A vertex with slots enough may have them on too few devices: candidates are
// tried in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/count_set.h"
#include "core/topology_index.h"

namespace berth {

struct SlotQuery {
  PoolId pool;
  std::int32_t gpus = 1;
  std::int32_t slots = 1;  // of each device
  Level max_level = Level::CrossRack;
  const ServerRoom* room = nullptr;  // none: slots are room
};

class SlotIndex {
 public:
  /// Nothing is free at first.
  explicit SlotIndex(std::shared_ptr<const Topology> topology);

  void set_free(NodeId node, std::int32_t device, std::int32_t slots);
  [[nodiscard]] std::int32_t free_slots(NodeId node, std::int32_t device) const noexcept {
    return slots_[first_device_[node.value] + static_cast<std::size_t>(device)];
  }
  /// Of a cluster, zone, rack or server vertex.
  [[nodiscard]] std::int32_t free_slots(VertexId vertex, PoolId pool) const noexcept;
  [[nodiscard]] std::int32_t slots_per_device(PoolId pool) const noexcept {
    return topology_->cluster().pools[pool.value].slots;
  }

  /// `buffer` is overwritten with the answer.
  [[nodiscard]] std::optional<Match> find(const SlotQuery& query,
                                          std::vector<DeviceSet>& buffer) const;

 private:
  struct Offer;
  struct PoolIndex {
    std::vector<NodeId> nodes;       // by position
    std::vector<DeviceSet> devices;  // by position, one each
    CountSet by_slots;               // positions in devices
    CountSet servers;                // positions in nodes
    CountSet racks;
    CountSet zones;
    std::vector<std::int32_t> free;  // by vertex down to racks
  };
  void add_pool(PoolId pool);
  void move_vertices(NodeId node, std::int32_t change);

  [[nodiscard]] std::optional<DeviceSet> best_device(const SlotQuery& query) const;
  [[nodiscard]] std::optional<DeviceSet> best_server(const SlotQuery& query) const;
  [[nodiscard]] std::optional<VertexId> best_upper(const SlotQuery& query) const;
  [[nodiscard]] std::optional<VertexId> first_with_room(const CountSet& set, VertexId first,
                                                        const SlotQuery& query) const;
  [[nodiscard]] std::int32_t room(NodeId node, const SlotQuery& query) const;
  [[nodiscard]] std::uint64_t pick(NodeId node, std::int32_t count, std::int32_t slots) const;

  std::shared_ptr<const Topology> topology_;
  std::vector<std::uint32_t> first_device_;  // by NodeId, into slots_
  std::vector<std::uint32_t> place_;         // by NodeId, position in the nodes of its pool
  std::vector<std::uint32_t> first_place_;   // by NodeId, position of its first device in the pool
  std::vector<std::int32_t> slots_;          // free, by device
  std::vector<std::int32_t> server_slots_;   // free, by NodeId
  std::vector<PoolIndex> pools_;
};

}  // namespace berth
