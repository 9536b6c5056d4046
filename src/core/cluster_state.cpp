#include "core/cluster_state.h"

#include <bit>

#include "base/check.h"
#include "base/device_mask.h"

namespace berth {

ClusterState::ClusterState(const Cluster& cluster, Mode mode)
    : cluster_(&cluster),
      mode_(mode),
      rack_nodes_(cluster.racks.size()),
      free_(cluster),
      host_(cluster),
      status_(cluster) {
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    rack_nodes_[cluster.nodes[i].rack.value].push_back(NodeId{i});
    free_.enter_service(NodeId{i});
  }
}

void ClusterState::track_topology() {
  const auto tree = std::make_shared<const Topology>(*cluster_);
  kept_.keep_topology(tree);
  if (devices_) kept_.keep_slots(tree);
  // The indices begin with nothing free: they are told what there is.
  for (std::uint32_t i = 0; i < cluster_->nodes.size(); ++i)
    tell(NodeId{i}, all_devices(cluster_->nodes[i].gpus));
}

void ClusterState::tell(NodeId node, std::uint64_t devices) {
  kept_.set_free(node, free_.mask(node));
  if (kept_.slots() == nullptr) return;
  for (const std::int32_t device : DeviceMask{devices})
    kept_.set_free_slots(node, device, is_up(node) ? free_slots(node, device) : 0);
}

void ClusterState::take(std::span<const Slice> slices, const Shape& shape, JobId job,
                        DeviceUse use) {
  for (const Slice& slice : slices) {
    BERTH_CHECK(std::popcount(slice.devices) == slice.gpus, "a slice counts its own devices");
    std::uint64_t taken = slice.devices;
    if (devices_) {  // a device that others are on already was taken by the first of them
      const DeviceTable::Change change = devices_->join(slice, job, use);
      free_.add_milli(cluster_->nodes[slice.node.value].pool, change.milli);
      taken = change.flipped;
    }
    free_.take(slice.node, taken);
    host_.take(slice, shape);
    tell(slice.node, slice.devices);
    kept_.enter(slice.node, job, shape.bus_milli);
  }
}

void ClusterState::give(std::span<const Slice> slices, const Shape& shape, JobId job,
                        DeviceUse use) {
  for (const Slice& slice : slices) {
    std::uint64_t given = slice.devices;
    if (devices_) {  // and comes back with the last
      const DeviceTable::Change change = devices_->leave(slice, job, use);
      free_.add_milli(cluster_->nodes[slice.node.value].pool, change.milli);
      given = change.flipped;
    }
    free_.give(slice.node, given);
    host_.give(slice, shape);
    tell(slice.node, slice.devices);
    kept_.leave(slice.node, job);
  }
}

void ClusterState::take_count(PoolId pool, const Shape& shape) {
  free_.take_count(pool, shape.gpus);
  host_.take(pool, shape);
}

void ClusterState::give_count(PoolId pool, const Shape& shape) {
  free_.give_count(pool, shape.gpus);
  host_.give(pool, shape);
}

bool ClusterState::is_free(std::span<const Slice> slices, const Shape& shape) const noexcept {
  return std::ranges::all_of(slices, [&](const Slice& slice) {
    return free_.is_free(slice.node, slice.devices) &&
           side_room_on(slice.node, shape) >= slice.workers();
  });
}

bool ClusterState::can_join(std::span<const Slice> slices, const Shape& shape, const DeviceUse& use,
                            std::int32_t limit) const noexcept {
  return std::ranges::all_of(slices, [&](const Slice& slice) {
    return is_up(slice.node) && host_.has_room(slice, shape) &&
           devices_->has_room(slice, use, limit);
  });
}

void ClusterState::change_memory(std::span<const Slice> slices, std::int32_t change) noexcept {
  for (const Slice& slice : slices) devices_->change_memory(slice, change);
}

void ClusterState::set_down(NodeId node) {
  status_.set_failed(node, true);
  refresh(node);
}

void ClusterState::set_up(NodeId node) {
  status_.set_failed(node, false);
  refresh(node);
}

void ClusterState::set_power(NodeId node, PowerState power) {
  status_.set_power(node, power);
  refresh(node);
}

void ClusterState::refresh(NodeId node) {
  const bool in_service = status_.takes_jobs(node);
  if (in_service == free_.is_in_service(node)) return;
  if (in_service)
    free_.enter_service(node);
  else
    free_.leave_service(node);
  tell(node, all_devices(cluster_->nodes[node.value].gpus));
}

}  // namespace berth
