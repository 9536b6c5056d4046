// What the cluster has free right now: the one face that policies and placements ask, and that a
// plan and the engine change. It puts together four parts that do not know each other: the free
// devices (core/free_devices.h), cores and host memory (core/host_resources.h), which nodes work
// and are on (core/node_status.h), who is on which device (core/device_table.h); and tells the
// indices that a run asked for (core/kept_indices.h) what changed. Every change is O(1) in the size
// of the cluster. What is given twice is a broken invariant.
//
// Devices may be shared, or given in fractions, once track_devices() was called: a device with any
// job on it is not free.
//
// In Count mode there are no nodes, only totals per pool: the classic "C GPUs" of the literature.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "core/device_table.h"
#include "core/free_devices.h"
#include "core/host_resources.h"
#include "core/kept_indices.h"
#include "core/node_status.h"
#include "core/shape.h"
#include "core/slice.h"
#include "model/cluster.h"

namespace berth {

class ClusterState {
 public:
  enum class Mode : std::uint8_t { Devices, Count };
  ClusterState(const Cluster& cluster, Mode mode);

  [[nodiscard]] const Cluster& cluster() const noexcept { return *cluster_; }
  [[nodiscard]] Mode mode() const noexcept { return mode_; }

  // Devices.
  [[nodiscard]] std::size_t pools() const noexcept { return free_.pools(); }
  [[nodiscard]] std::int64_t free_gpus() const noexcept { return free_.free(); }
  [[nodiscard]] std::int64_t free_gpus(PoolId pool) const noexcept { return free_.free(pool); }
  /// Devices of nodes that are up.
  [[nodiscard]] std::int64_t usable_gpus() const noexcept { return free_.usable(); }
  [[nodiscard]] std::int64_t usable_gpus(PoolId pool) const noexcept { return free_.usable(pool); }
  [[nodiscard]] std::int32_t free_on(NodeId node) const noexcept { return free_.free_on(node); }
  [[nodiscard]] std::uint64_t free_mask(NodeId node) const noexcept { return free_.mask(node); }
  /// Nodes of the pool with exactly `free` free devices.
  [[nodiscard]] const NodeSet& nodes_with(PoolId pool, std::int32_t free) const noexcept {
    return free_.nodes_with(pool, free);
  }
  [[nodiscard]] std::int32_t largest_node(PoolId pool) const noexcept {
    return free_.largest_node(pool);
  }
  [[nodiscard]] std::size_t racks() const noexcept { return cluster_->racks.size(); }
  [[nodiscard]] std::int64_t free_in_rack(PoolId pool, RackId rack) const noexcept {
    return free_.free_in_rack(pool, rack);
  }
  [[nodiscard]] std::span<const NodeId> nodes_of_rack(RackId rack) const noexcept {
    return rack_nodes_[rack.value];
  }
  /// Necessary for the shape to fit in the pool: enough devices without a job, or for a fraction of
  /// one enough thousandths.
  [[nodiscard]] bool may_hold(PoolId pool, const Shape& shape) const noexcept {
    return shape.is_fraction() ? free_.free_milli(pool) >= shape.gpu_milli
                               : free_.free(pool) >= shape.gpus;
  }

  // Nodes.
  /// It works and is on: takes jobs.
  [[nodiscard]] bool is_up(NodeId node) const noexcept { return free_.is_in_service(node); }
  [[nodiscard]] PowerState power(NodeId node) const noexcept { return status_.power(node); }
  [[nodiscard]] bool has_failed(NodeId node) const noexcept { return status_.has_failed(node); }
  /// No job on it, and in service.
  [[nodiscard]] bool is_idle(NodeId node) const noexcept {
    return is_up(node) && free_on(node) == cluster_->nodes[node.value].gpus &&
           !host_.has_job_without_device(node);
  }
  /// Of what nodes the pool is made; few in number, in no particular order.
  [[nodiscard]] std::span<const NodeKind> kinds(PoolId pool) const noexcept {
    return status_.kinds(pool);
  }

  // Cores and host memory.
  [[nodiscard]] std::int64_t free_cpus_milli(NodeId node) const noexcept {
    return host_.cpus_milli(node);
  }
  [[nodiscard]] std::int64_t free_memory_mib(NodeId node) const noexcept {
    return host_.memory_mib(node);
  }
  /// How many devices of this node a gang of the shape could use now: devices, cores and memory.
  [[nodiscard]] std::int32_t room_on(NodeId node, const Shape& shape) const noexcept {
    return std::min(free_on(node), side_room_on(node, shape));
  }
  /// The same by cores and memory alone.
  [[nodiscard]] std::int32_t side_room_on(NodeId node, const Shape& shape) const noexcept {
    return static_cast<std::int32_t>(host_.room(node, shape, cluster_->nodes[node.value].gpus));
  }
  /// A job of the shape could run here without a device, by cores and memory.
  [[nodiscard]] bool has_room_without_device(NodeId node, const Shape& shape) const noexcept {
    return is_up(node) && host_.room(node, shape, 1) >= 1;
  }
  /// Count mode: are there cores and memory for the whole gang in the pool's totals?
  [[nodiscard]] bool has_side_room(PoolId pool, const Shape& shape) const noexcept {
    return host_.has_room(pool, shape);
  }

  // Sharing. All but tracks_devices() and free_milli(pool) only if devices are tracked.
  void track_devices() { devices_.emplace(*cluster_); }
  [[nodiscard]] bool tracks_devices() const noexcept { return devices_.has_value(); }
  /// In their order of arrival there.
  [[nodiscard]] std::span<const JobId> jobs_on(NodeId node, std::int32_t device) const noexcept {
    return devices_->jobs(node, device);
  }
  /// All jobs of a node, each once, ascending.
  void jobs_on(NodeId node, std::vector<JobId>& jobs) const { devices_->jobs(node, jobs); }
  [[nodiscard]] std::int64_t free_milli(PoolId pool) const noexcept {
    return free_.free_milli(pool);
  }
  [[nodiscard]] std::int32_t free_milli(NodeId node, std::int32_t device) const noexcept {
    return devices_->free_milli(node, device);
  }
  /// In how many of its equal parts the device could still be given; every job takes at least one.
  [[nodiscard]] std::int32_t free_slots(NodeId node, std::int32_t device) const noexcept {
    return devices_->free_slots(node, device);
  }
  [[nodiscard]] std::int64_t free_memory_mib(NodeId node, std::int32_t device) const noexcept {
    return devices_->free_memory_mib(node, device);
  }
  /// Could the job join the devices as they are: at most `limit` jobs on each afterwards, memory
  /// (unless the device would be its own), thousandths, cores and host memory respected?
  [[nodiscard]] bool can_join(std::span<const Slice> slices, const Shape& shape,
                              const DeviceUse& use, std::int32_t limit) const noexcept;
  void change_memory(std::span<const Slice> slices, std::int32_t change) noexcept;

  // Indices that are kept only if asked for; nothing unless they are.
  /// Keeps an index over the topology tree from now on, and one of shareable slots if devices are
  /// tracked already.
  void track_topology();
  [[nodiscard]] const TopologyIndex* topology() const noexcept { return kept_.topology(); }
  [[nodiscard]] const SlotIndex* slots() const noexcept { return kept_.slots(); }
  /// Keeps who is on which server from now on, with the share of the bus their shapes name.
  void track_buses() { kept_.keep_buses(cluster_->nodes.size()); }
  [[nodiscard]] const BusTable* buses() const noexcept { return kept_.buses(); }
  /// Keeps a log of the nodes that change from now on. A copy of the state has none: it goes its
  /// own way.
  void track_changes() { kept_.keep_changes(); }
  [[nodiscard]] const ChangeLog* changes() const noexcept { return kept_.changes(); }

  // Changes.
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
  /// Puts it into service or out of it, as its status says.
  void refresh(NodeId node);
  /// After every change of what is free on a node; `devices` are those it happened to.
  void tell(NodeId node, std::uint64_t devices);

  const Cluster* cluster_;
  Mode mode_;
  std::vector<std::vector<NodeId>> rack_nodes_;
  FreeDevices free_;
  HostResources host_;
  NodeStatus status_;
  std::optional<DeviceTable> devices_;
  KeptIndices kept_;
};

}  // namespace berth
