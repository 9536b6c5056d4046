#include "policies/bsbf/occupancy.h"

namespace berth {

void Occupancy::begin(const ClusterState& state) {
  const std::size_t nodes = state.cluster().nodes.size();
  mask_.assign(nodes, 0);
  single_.assign(state.pools(), 0);
  nodes_.clear();
  for (std::size_t i = 0; i < state.pools(); ++i) nodes_.emplace_back(nodes);
}

void Occupancy::refresh(const ClusterState& state, std::span<const Slice> slices) {
  for (const Slice& slice : slices) {
    const PoolId pool = state.cluster().nodes[slice.node.value].pool;
    std::uint64_t& mask = mask_[slice.node.value];
    const std::uint64_t before = mask;
    for_each_device(slice.devices, [&](std::int32_t device) {
      const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(device);
      mask = state.jobs_on(slice.node, device).size() == 1 ? mask | bit : mask & ~bit;
    });
    single_[pool.value] += std::popcount(mask) - std::popcount(before);
    if ((before == 0) == (mask == 0)) continue;
    if (mask != 0) {
      nodes_[pool.value].insert(slice.node);
    } else {
      nodes_[pool.value].erase(slice.node);
    }
  }
}

}  // namespace berth
