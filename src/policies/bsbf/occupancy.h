// Which devices hold exactly one job: the ones a newcomer may share. Kept per node as a mask, with
// totals per pool, from the starts and departures a policy tells it of.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/allocation.h"
#include "core/cluster_state.h"

namespace berth {

class Occupancy {
 public:
  void begin(const ClusterState& state);

  /// After a start or a departure: looks at these devices again.
  void refresh(const ClusterState& state, std::span<const Slice> slices);

  /// Devices of the pool with exactly one job.
  [[nodiscard]] std::int64_t single(PoolId pool) const noexcept { return single_[pool.value]; }
  [[nodiscard]] std::uint64_t single_on(NodeId node) const noexcept { return mask_[node.value]; }
  /// Nodes with such a device, ascending by id.
  [[nodiscard]] const NodeSet& nodes(PoolId pool) const noexcept { return nodes_[pool.value]; }
  /// How many of these devices hold nobody else.
  [[nodiscard]] std::int32_t single_of(std::span<const Slice> slices) const noexcept {
    std::int32_t count = 0;
    for (const Slice& slice : slices)
      count += std::popcount(slice.devices & mask_[slice.node.value]);
    return count;
  }

 private:
  std::vector<std::uint64_t> mask_;   // by node
  std::vector<std::int64_t> single_;  // by pool
  std::vector<NodeSet> nodes_;        // by pool
};

}  // namespace berth
