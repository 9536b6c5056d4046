// What is free right now. Nodes sit in buckets by their number of free devices, so "best fit for k"
// is a look at the first non-empty bucket from k on; totals per pool and rack are kept beside it.
// Every change is O(1) in the size of the cluster. A device that is taken twice is a broken
// invariant.
//
// Devices may be shared, or given in fractions, once track_devices() was called: a device with any
// job on it is not free; who is on it and with how much is kept in a DeviceTable.
//
// In Count mode there are no nodes, only totals per pool: the classic "C GPUs" of the literature.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "core/bit_set.h"
#include "core/bus_table.h"
#include "core/change_log.h"
#include "core/device_table.h"
#include "core/shape.h"
#include "core/slot_index.h"
#include "core/topology_index.h"
#include "model/cluster.h"

namespace berth {

/// Some devices of one node, as a bit mask.
struct Slice {
  NodeId node;
  std::int32_t gpus = 0;
  std::uint64_t devices = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// Nodes of a pool that are built alike, and how many of them work.
struct NodeKind {
  std::int32_t gpus = 0;
  std::int64_t cpus_milli = 0;  // 0 = not described: never a limit
  std::int64_t memory_mib = 0;  // the same
  std::int32_t working = 0;     // not failed, be they on or off

  /// How many devices of such a node, with nothing on it, a gang of the shape could use.
  [[nodiscard]] std::int32_t room(const Shape& shape) const noexcept {
    std::int64_t room = gpus;
    if (shape.cpus_milli_per_gpu > 0 && cpus_milli > 0)
      room = std::min(room, cpus_milli / shape.cpus_milli_per_gpu);
    if (shape.memory_mib_per_gpu > 0 && memory_mib > 0)
      room = std::min(room, memory_mib / shape.memory_mib_per_gpu);
    return static_cast<std::int32_t>(room);
  }
};

/// Booting: switched on, not ready for jobs yet.
enum class PowerState : std::uint8_t { On, Off, Booting };

class ClusterState {
 public:
  enum class Mode : std::uint8_t { Devices, Count };
  ClusterState(const Cluster& cluster, Mode mode);

  [[nodiscard]] const Cluster& cluster() const noexcept { return *cluster_; }
  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  [[nodiscard]] std::size_t pools() const noexcept { return pools_.size(); }
  [[nodiscard]] std::int64_t free_gpus(PoolId pool) const noexcept {
    return pools_[pool.value].free;
  }
  /// Devices of nodes that are up.
  [[nodiscard]] std::int64_t usable_gpus(PoolId pool) const noexcept {
    return pools_[pool.value].usable;
  }
  [[nodiscard]] std::int64_t free_gpus() const noexcept { return free_; }
  [[nodiscard]] std::int64_t usable_gpus() const noexcept { return usable_; }

  /// It works and is on: takes jobs.
  [[nodiscard]] bool is_up(NodeId node) const noexcept { return nodes_[node.value].up; }
  [[nodiscard]] PowerState power(NodeId node) const noexcept { return nodes_[node.value].power; }
  [[nodiscard]] bool has_failed(NodeId node) const noexcept { return nodes_[node.value].failed; }
  /// No job on it, and in service.
  [[nodiscard]] bool is_idle(NodeId node) const noexcept {
    const NodeRow& row = nodes_[node.value];
    return row.up && row.free == cluster_->nodes[node.value].gpus && row.cores_only == 0;
  }
  [[nodiscard]] std::int32_t free_on(NodeId node) const noexcept { return nodes_[node.value].free; }
  [[nodiscard]] std::uint64_t free_mask(NodeId node) const noexcept {
    return nodes_[node.value].mask;
  }
  /// Nodes of the pool with exactly `free` free devices.
  [[nodiscard]] const NodeSet& nodes_with(PoolId pool, std::int32_t free) const noexcept {
    return pools_[pool.value].by_free[static_cast<std::size_t>(free)];
  }
  [[nodiscard]] std::int32_t largest_node(PoolId pool) const noexcept {
    return static_cast<std::int32_t>(pools_[pool.value].by_free.size()) - 1;
  }
  /// Of what nodes the pool is made; few in number, in no particular order.
  [[nodiscard]] std::span<const NodeKind> kinds(PoolId pool) const noexcept {
    return pools_[pool.value].kinds;
  }
  [[nodiscard]] std::size_t racks() const noexcept { return cluster_->racks.size(); }
  [[nodiscard]] std::int64_t free_in_rack(PoolId pool, RackId rack) const noexcept {
    return pools_[pool.value].rack_free[rack.value];
  }
  [[nodiscard]] std::span<const NodeId> nodes_of_rack(RackId rack) const noexcept {
    return rack_nodes_[rack.value];
  }
  /// How many devices of this node a gang of the shape could use now: devices, cores and memory.
  [[nodiscard]] std::int32_t room_on(NodeId node, const Shape& shape) const noexcept {
    return std::min(free_on(node), side_room_on(node, shape));
  }
  /// The same by cores and memory alone.
  [[nodiscard]] std::int32_t side_room_on(NodeId node, const Shape& shape) const noexcept;
  /// Necessary for the shape to fit in the pool: enough devices without a job, or for a fraction of
  /// one enough thousandths.
  [[nodiscard]] bool may_hold(PoolId pool, const Shape& shape) const noexcept {
    const PoolRow& row = pools_[pool.value];
    return shape.is_fraction() ? row.free_milli >= shape.gpu_milli : row.free >= shape.gpus;
  }

  /// Keeps an index over the topology tree from now on, and one of shareable slots if devices are
  /// tracked already: runs without do not pay for them.
  void track_topology();
  /// Nothing unless it is tracked.
  [[nodiscard]] const TopologyIndex* topology() const noexcept {
    return topology_ ? &*topology_ : nullptr;
  }
  [[nodiscard]] const SlotIndex* slots() const noexcept { return slots_ ? &*slots_ : nullptr; }

  /// Keeps a log of the nodes that change from now on.
  void track_changes() { changes_.log.emplace(); }
  /// Nothing unless it is tracked. A copy of the state has none: it goes its own way.
  [[nodiscard]] const ChangeLog* changes() const noexcept {
    return changes_.log ? &*changes_.log : nullptr;
  }

  /// Keeps who is on which server from now on, with the share of the bus their shapes name.
  void track_buses() { buses_.emplace(cluster_->nodes.size()); }
  /// Nothing unless it is tracked.
  [[nodiscard]] const BusTable* buses() const noexcept { return buses_ ? &*buses_ : nullptr; }

  // Sharing.
  void track_devices() { devices_.emplace(*cluster_); }
  [[nodiscard]] bool tracks_devices() const noexcept { return devices_.has_value(); }
  /// In their order of arrival there.
  [[nodiscard]] std::span<const JobId> jobs_on(NodeId node, std::int32_t device) const noexcept {
    return devices_->jobs(node, device);
  }
  /// All jobs of a node, each once, ascending.
  void jobs_on(NodeId node, std::vector<JobId>& jobs) const;
  [[nodiscard]] std::int32_t free_milli(NodeId node, std::int32_t device) const noexcept;
  /// In how many of its equal parts the device could still be given; every job takes at least one.
  [[nodiscard]] std::int32_t free_slots(NodeId node, std::int32_t device) const noexcept;
  [[nodiscard]] std::int64_t free_milli(PoolId pool) const noexcept {
    return pools_[pool.value].free_milli;
  }
  [[nodiscard]] std::int64_t free_memory_mib(NodeId node, std::int32_t device) const noexcept;
  [[nodiscard]] std::int64_t free_cpus_milli(NodeId node) const noexcept {
    return nodes_[node.value].cpus_milli;
  }
  [[nodiscard]] std::int64_t free_memory_mib(NodeId node) const noexcept {
    return nodes_[node.value].memory_mib;
  }
  /// Could the job join the devices as they are: at most `limit` jobs on each afterwards, memory
  /// (unless the device would be its own), thousandths, cores and host memory respected?
  [[nodiscard]] bool can_join(std::span<const Slice> slices, const Shape& shape,
                              const DeviceUse& use, std::int32_t limit) const noexcept;
  void change_memory(std::span<const Slice> slices, std::int32_t change) noexcept;

  /// Count mode: are there cores and memory for the whole gang in the pool's totals?
  [[nodiscard]] bool has_side_room(PoolId pool, const Shape& shape) const noexcept;

  void take(std::span<const Slice> slices, const Shape& shape, JobId job = {}, DeviceUse use = {});
  void give(std::span<const Slice> slices, const Shape& shape, JobId job = {}, DeviceUse use = {});
  void take_count(PoolId pool, const Shape& shape);
  void give_count(PoolId pool, const Shape& shape);
  [[nodiscard]] bool is_free(std::span<const Slice> slices, const Shape& shape) const noexcept;

  /// It fails, or is repaired. It must hold no job. In Count mode its devices leave the totals if
  /// they are free there.
  void set_down(NodeId node);
  void set_up(NodeId node);
  /// It must hold no job unless it stays on. Independent of failures: a node takes jobs when it is
  /// on and works.
  void set_power(NodeId node, PowerState power);

 private:
  struct NodeRow {
    std::uint64_t mask = 0;
    std::int32_t free = 0;
    std::uint32_t kind = 0;  // of its pool
    bool up = true;
    bool failed = false;
    PowerState power = PowerState::On;
    std::int32_t cores_only = 0;  // jobs here without a device
    std::int64_t cpus_milli = std::numeric_limits<std::int64_t>::max();
    std::int64_t memory_mib = std::numeric_limits<std::int64_t>::max();
  };
  struct PoolRow {
    std::int64_t free = 0;
    std::int64_t usable = 0;
    std::int64_t free_milli = 0;  // of all devices, full ones included
    std::int64_t cpus_milli = 0;  // totals for Count mode
    std::int64_t memory_mib = 0;
    bool limits_cpus = false;
    bool limits_memory = false;
    std::vector<NodeSet> by_free;  // index = free devices
    std::vector<std::int64_t> rack_free;
    std::vector<NodeKind> kinds;
  };
  void add_free(NodeId node, std::int32_t change);
  void add_kind(NodeId node);
  void set_failed(NodeId node, bool failed);
  void refresh(NodeId node);  // in service or out of it, as failures and power say
  void enter_service(NodeId node);
  void leave_service(NodeId node);
  /// Parts in which a device of the node can be shared.
  [[nodiscard]] std::int32_t slots_of(NodeId node) const noexcept {
    return cluster_->pools[cluster_->nodes[node.value].pool.value].slots;
  }
  /// A log that stays with its state: who follows it must not take a copy's changes for its own.
  struct OwnLog {
    OwnLog() = default;
    OwnLog(const OwnLog&) noexcept {}
    OwnLog& operator=(const OwnLog&) noexcept {
      log.reset();
      return *this;
    }
    std::optional<ChangeLog> log;
  };
  /// After every change of what is free on a node; `devices` are those it happened to.
  void tell(NodeId node, std::uint64_t devices);
  /// The devices of the slice whose state changes between free and in use.
  [[nodiscard]] std::uint64_t join(const Slice& slice, JobId job, const DeviceUse& use);
  [[nodiscard]] std::uint64_t leave(const Slice& slice, JobId job, const DeviceUse& use);

  const Cluster* cluster_;
  Mode mode_;
  std::vector<std::vector<NodeId>> rack_nodes_;
  std::vector<NodeRow> nodes_;
  std::vector<PoolRow> pools_;
  std::optional<DeviceTable> devices_;
  std::optional<BusTable> buses_;
  std::optional<TopologyIndex> topology_;
  std::optional<SlotIndex> slots_;
  OwnLog changes_;
  std::int64_t free_ = 0;
  std::int64_t usable_ = 0;
};

}  // namespace berth
