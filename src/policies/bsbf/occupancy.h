// Which devices hold exactly one job: the ones a newcomer may share. A mask per node with totals
// per pool; it knows only the starts and departures it is told of.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "base/device_mask.h"
#include "base/id.h"
#include "core/cluster_state.h"

namespace berth::bsbf {

class Occupancy {
 public:
  explicit Occupancy(const ClusterState& state)
      : mask_(state.cluster().nodes.size()),
        single_(state.pools()),
        nodes_(state.pools(), NodeSet{state.cluster().nodes.size()}) {}

  /// After a start or a departure: looks at these devices again.
  void refresh(const ClusterState& state, std::span<const Slice> slices) {
    for (const Slice& slice : slices) {
      const PoolId pool = state.cluster().nodes[slice.node.value].pool;
      std::uint64_t& mask = mask_[slice.node];
      const std::uint64_t before = mask;
      for (const std::int32_t device : DeviceMask{slice.devices}) {
        const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(device);
        mask = state.jobs_on(slice.node, device).size() == 1 ? mask | bit : mask & ~bit;
      }
      single_[pool] += std::popcount(mask) - std::popcount(before);
      if (before == 0 && mask != 0) nodes_[pool].insert(slice.node);
      if (before != 0 && mask == 0) nodes_[pool].erase(slice.node);
    }
  }

  /// Devices of the pool with exactly one job.
  [[nodiscard]] std::int64_t single(PoolId pool) const noexcept { return single_[pool]; }
  [[nodiscard]] std::uint64_t single_on(NodeId node) const noexcept { return mask_[node]; }
  /// Nodes with such a device, ascending by id.
  [[nodiscard]] const NodeSet& nodes(PoolId pool) const noexcept { return nodes_[pool]; }
  /// How many of these devices hold nobody else.
  [[nodiscard]] std::int32_t single_of(std::span<const Slice> slices) const noexcept {
    std::int32_t count = 0;
    for (const Slice& slice : slices) count += std::popcount(slice.devices & mask_[slice.node]);
    return count;
  }

 private:
  Column<NodeId, std::uint64_t> mask_;
  Column<PoolId, std::int64_t> single_;
  Column<PoolId, NodeSet> nodes_;
};

}  // namespace berth::bsbf
