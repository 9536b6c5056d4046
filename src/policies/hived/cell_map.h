// Cells and the devices they stand for. All nodes of one pool and size form a chain: the largest
// cells are whole nodes, which are halved as long as that goes even, then come single devices
// (8, 4, 2, 1; 6, 3, 1). Which levels a chain has does not depend on anything that changes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/cluster_state.h"
#include "policies/hived/cells.h"

namespace berth::hived {

struct Chain {
  PoolId pool;
  CellLevels levels;
  std::vector<NodeId> nodes;  // by index of the largest cells
};

/// The place of a node.
struct ChainNode {
  std::uint32_t chain = 0;
  std::uint32_t index = 0;
};

class CellMap {
 public:
  explicit CellMap(const Cluster& cluster);

  /// Ordered by pool, then larger nodes first.
  [[nodiscard]] const std::vector<Chain>& chains() const noexcept { return chains_; }
  [[nodiscard]] ChainNode at(NodeId node) const noexcept { return where_[node.value]; }
  /// The first `gpus` devices of a cell.
  [[nodiscard]] Slice slice(std::uint32_t chain, Cell cell, std::int32_t gpus) const noexcept;

 private:
  std::vector<Chain> chains_;
  std::vector<ChainNode> where_;  // by NodeId
};

}  // namespace berth::hived
