// A set of nodes as a bitmap with summary levels: insert, erase and "lowest member" touch one word
// per level (three levels hold 262,144 nodes, four 16 million). The lowest id comes first, so a
// choice from a set is deterministic without any sorting.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"

namespace berth {

class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(std::size_t nodes) {
    do {
      nodes = (nodes + 63) / 64;
      levels_.emplace_back(nodes == 0 ? 1 : nodes);
    } while (nodes > 1);
  }

  void insert(NodeId node) noexcept {
    ++size_;
    std::size_t position = node.value;
    for (auto& level : levels_) {
      level[position / 64] |= std::uint64_t{1} << (position % 64);
      position /= 64;
    }
  }
  void erase(NodeId node) noexcept {
    --size_;
    std::size_t position = node.value;
    for (auto& level : levels_) {
      std::uint64_t& word = level[position / 64];
      word &= ~(std::uint64_t{1} << (position % 64));
      if (word != 0) return;  // others keep the summary bit
      position /= 64;
    }
  }
  [[nodiscard]] bool contains(NodeId node) const noexcept {
    return ((levels_.front()[node.value / 64] >> (node.value % 64)) & 1U) != 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  [[nodiscard]] std::optional<NodeId> first() const noexcept { return next(NodeId{0}); }
  /// The lowest member that is `from` or above.
  [[nodiscard]] std::optional<NodeId> next(NodeId from) const noexcept {
    std::size_t position = from.value;
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      const auto& level = levels_[depth];
      if (position / 64 >= level.size()) return std::nullopt;
      const std::uint64_t rest = level[position / 64] >> (position % 64);
      if (rest != 0) {
        position += static_cast<std::size_t>(std::countr_zero(rest));
        while (depth-- > 0) {  // descend along the lowest bits
          position =
              position * 64 + static_cast<std::size_t>(std::countr_zero(levels_[depth][position]));
        }
        return NodeId{static_cast<std::uint32_t>(position)};
      }
      position = position / 64 + 1;
    }
    return std::nullopt;
  }
  /// The member number `rank` in ascending order; rank < size().
  [[nodiscard]] NodeId nth(std::size_t rank) const noexcept {
    const auto& words = levels_.front();
    for (std::size_t i = 0;; ++i) {
      const auto here = static_cast<std::size_t>(std::popcount(words[i]));
      if (rank < here) {
        std::uint64_t word = words[i];
        for (; rank > 0; --rank) word &= word - 1;
        return NodeId{
            static_cast<std::uint32_t>(i * 64 + static_cast<std::size_t>(std::countr_zero(word)))};
      }
      rank -= here;
    }
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // levels_[0] are the members
  std::size_t size_ = 0;
};

}  // namespace berth
