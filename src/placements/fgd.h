// Fragmentation gradient descent (FGD, ATC 2023): each task goes where the capacity that the
// typical workload cannot use grows least. The pure part, over a table of nodes.
//
// Choice: least growth; then the node with less left on its devices (between nodes of one size:
// with more taken), so that a task which needs cores alone goes where no device can be stranded;
// then the device with less room; then the lower ids. For every distinct demand the index keeps the
// growth on each node in a tournament and looks again only at nodes that changed since that demand
// was last placed: a placement costs O(changed nodes x (devices + distinct demands) + log nodes),
// not O(nodes).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "placements/node_rooms.h"
#include "placements/target_workload.h"

namespace berth {

class FragmentationIndex {
 public:
  /// Looks at `rooms` as it is at each call; it must outlive the index. Nodes may not be added.
  FragmentationIndex(const NodeRooms& rooms, TargetWorkload target);
  void set_target(TargetWorkload target);

  /// Weighted thousandths; divide by the target's total weight.
  [[nodiscard]] std::int64_t fragment_of(NodeId node) const;
  /// In devices, over all nodes.
  [[nodiscard]] double fragmentation() const;
  /// What a placement adds to its node's fragment; it must be possible.
  [[nodiscard]] std::int64_t growth(const NodeChoice& choice, const NodeDemand& demand) const;

  /// The best node and devices on it, or nothing if no node holds the task.
  [[nodiscard]] std::optional<NodeChoice> choose(const NodeDemand& demand);

 private:
  static constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint8_t kNoDevice = 0xff;
  struct Score {
    std::int64_t growth = kImpossible;
    std::uint32_t version = 0;        // of the node when it was scored
    std::uint8_t device = kNoDevice;  // of a fraction
  };
  /// The scores of one demand on all nodes, and the winners of the tournament among them.
  struct Board {
    Column<NodeId, Score> score;
    std::vector<NodeId> winner;  // heap-shaped; leaves are implied
    std::uint64_t seen = 0;      // position in the log of changes
    std::uint64_t used = 0;      // when it was last asked for
    bool is_made = false;
  };
  [[nodiscard]] Score score_of(NodeId node, const NodeDemand& demand) const;
  [[nodiscard]] Score fraction_score(NodeId node, const NodeDemand& demand) const;
  [[nodiscard]] std::uint16_t room_of(const Board& board, NodeId node) const noexcept;
  [[nodiscard]] bool is_before(const Board& board, NodeId a, NodeId b) const noexcept;
  [[nodiscard]] NodeId entrant(const Board& board, std::size_t slot) const noexcept;
  void play(Board& board, std::size_t slot) const noexcept;
  void refresh(Board& board, const NodeDemand& demand) const;
  void rescore_all(Board& board, const NodeDemand& demand) const;
  [[nodiscard]] Board& board_of(const NodeDemand& demand);

  const NodeRooms* rooms_;
  TargetWorkload target_;
  std::size_t width_;  // leaves of a tournament, a power of two
  std::map<NodeDemand, Board> boards_;
  std::uint64_t asked_ = 0;
};

}  // namespace berth
