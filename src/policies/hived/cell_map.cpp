#include "policies/hived/cell_map.h"

#include <map>

namespace berth::hived {

namespace {

std::vector<std::int32_t> sizes_of(std::int32_t gpus) {
  std::vector<std::int32_t> sizes{gpus};
  while (sizes.back() > 1) sizes.push_back(sizes.back() % 2 == 0 ? sizes.back() / 2 : 1);
  return {sizes.rbegin(), sizes.rend()};
}

}  // namespace

CellMap::CellMap(const Cluster& cluster) : where_(cluster.nodes.size()) {
  std::map<std::pair<PoolId, std::int32_t>, std::uint32_t> ids;  // by pool and less GPUs last
  for (const Node& node : cluster.nodes) ids.try_emplace({node.pool, -node.gpus}, 0);
  for (auto& [key, id] : ids) {
    id = static_cast<std::uint32_t>(chains_.size());
    chains_.push_back({key.first, {sizes_of(-key.second), 0}, {}});
  }
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    const std::uint32_t id = ids.at({node.pool, -node.gpus});
    where_[i] = {id, chains_[id].levels.tops++};
    chains_[id].nodes.push_back(NodeId{i});
  }
}

Slice CellMap::slice(std::uint32_t chain, Cell cell, std::int32_t gpus) const noexcept {
  const CellLevels& levels = chains_[chain].levels;
  const std::int32_t size = levels.sizes[cell.level];
  const std::int32_t per_node = levels.sizes.back() / size;
  const std::uint32_t node = cell.index / static_cast<std::uint32_t>(per_node);
  const std::int32_t first =
      static_cast<std::int32_t>(cell.index % static_cast<std::uint32_t>(per_node)) * size;
  const std::uint64_t ones = gpus >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << gpus) - 1;
  return {chains_[chain].nodes[node], gpus, ones << first};
}

}  // namespace berth::hived
