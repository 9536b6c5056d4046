#include "core/locality.h"

#include <algorithm>
#include <bit>

namespace berth {

namespace {

/// All devices of the mask in one of the equal groups of `size` consecutive devices?
bool in_one_group(std::uint64_t devices, std::int32_t size) noexcept {
  return std::countr_zero(devices) / size == (63 - std::countl_zero(devices)) / size;
}

Level level_in_server(const Node& node, std::uint64_t devices) noexcept {
  if (std::popcount(devices) <= 1) return Level::Device;
  if (node.shape.nvlink_island > 1 && in_one_group(devices, node.shape.nvlink_island))
    return Level::Nvlink;
  if (node.shape.switches > 0 &&
      in_one_group(devices, std::max(1, node.gpus / node.shape.switches)))
    return Level::Pcie;
  return Level::Server;
}

}  // namespace

Level level_of(const Cluster& cluster, std::span<const Slice> slices) noexcept {
  if (slices.empty()) return Level::Device;
  const Node& first = cluster.nodes[slices.front().node.value];
  if (slices.size() == 1) return level_in_server(first, slices.front().devices);
  const bool one_rack = std::ranges::all_of(slices, [&](const Slice& slice) {
    return cluster.nodes[slice.node.value].rack == first.rack;
  });
  return one_rack ? Level::Rack : Level::CrossRack;
}

}  // namespace berth
