// The devices chosen for a gang, as they are put together: free ones, then such with one job.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/device_mask.h"
#include "core/cluster_state.h"
#include "policies/bsbf/occupancy.h"

namespace berth::bsbf {

class Choice {
 public:
  /// Nothing is chosen yet of so many devices.
  void begin(std::int32_t gpus, std::int32_t sub_steps) {
    slices_.clear();
    missing_ = gpus;
    sub_steps_ = sub_steps;
  }
  [[nodiscard]] std::int32_t missing() const noexcept { return missing_; }
  /// Ascending by node.
  [[nodiscard]] std::span<const Slice> slices() const noexcept { return slices_; }
  /// Sub-batches with which the job fits on every chosen device.
  [[nodiscard]] std::int32_t sub_steps() const noexcept { return sub_steps_; }
  void need_steps(std::int32_t steps) noexcept { sub_steps_ = std::max(sub_steps_, steps); }

  /// Devices that are not chosen yet.
  void add(NodeId node, std::uint64_t devices) {
    if (devices == 0) return;
    missing_ -= std::popcount(devices);
    const auto at = place_of(node);
    if (at != slices_.end() && at->node == node) {
      at->devices |= devices;
      at->gpus = std::popcount(at->devices);
    } else {
      slices_.insert(at, {.node = node, .gpus = std::popcount(devices), .devices = devices});
    }
  }
  /// All free devices of the pool.
  void add_free(const ClusterState& state, PoolId pool) {
    std::int64_t rest = state.free_gpus(pool);
    for (std::int32_t free = 1; rest > 0; ++free) {
      const NodeSet& nodes = state.nodes_with(pool, free);
      rest -= free * static_cast<std::int64_t>(nodes.size());
      for (const NodeId node : nodes) add(node, state.free_mask(node));
    }
  }
  /// Of the devices a partner has for itself as many as are missing: on servers chosen already
  /// first, which keeps the gang together, then by id.
  void add_beside(std::span<const Slice> partner, const Occupancy& occupancy) {
    const auto take = [&](const Slice& slice) {
      const DeviceMask single{slice.devices & occupancy.single_on(slice.node)};
      add(slice.node, single.lowest(missing_));
    };
    elsewhere_.clear();
    for (const Slice& slice : partner) {
      const auto at = place_of(slice.node);
      if (at != slices_.end() && at->node == slice.node) {
        take(slice);
      } else {
        elsewhere_.push_back(slice);
      }
    }
    for (const Slice& slice : elsewhere_) take(slice);
  }

 private:
  [[nodiscard]] std::vector<Slice>::iterator place_of(NodeId node) {
    return std::ranges::lower_bound(slices_, node, {}, &Slice::node);
  }

  std::vector<Slice> slices_;
  std::int32_t missing_ = 0;
  std::int32_t sub_steps_ = 1;
  std::vector<Slice> elsewhere_;  // scratch
};

}  // namespace berth::bsbf
