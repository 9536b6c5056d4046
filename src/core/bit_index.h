// An ordered set of small numbers as a bitmap with summary levels: insert, erase, the next member
// upwards and the next downwards touch one word per level (four levels hold 16 million keys). The
// set behind "smallest count that still fits, then lowest id": such pairs are keys count * n + id.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace berth {

class BitIndex {
 public:
  BitIndex() = default;
  explicit BitIndex(std::size_t keys) {
    do {
      keys = (keys + 63) / 64;
      levels_.emplace_back(keys == 0 ? 1 : keys);
    } while (keys > 1);
  }

  void insert(std::size_t key) noexcept {
    for (auto& level : levels_) {
      std::uint64_t& word = level[key / 64];
      const bool was_known = word != 0;
      word |= std::uint64_t{1} << (key % 64);
      if (was_known) return;  // the levels above know of this word
      key /= 64;
    }
  }
  void erase(std::size_t key) noexcept {
    for (auto& level : levels_) {
      std::uint64_t& word = level[key / 64];
      word &= ~(std::uint64_t{1} << (key % 64));
      if (word != 0) return;
      key /= 64;
    }
  }
  [[nodiscard]] bool contains(std::size_t key) const noexcept {
    return ((levels_.front()[key / 64] >> (key % 64)) & 1U) != 0;
  }

  /// The lowest member that is `from` or above.
  [[nodiscard]] std::optional<std::size_t> next(std::size_t from) const noexcept {
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      const auto& level = levels_[depth];
      if (from / 64 >= level.size()) return std::nullopt;
      if (const std::uint64_t rest = level[from / 64] >> (from % 64); rest != 0) {
        std::size_t key = from + static_cast<std::size_t>(std::countr_zero(rest));
        while (depth-- > 0)
          key = key * 64 + static_cast<std::size_t>(std::countr_zero(levels_[depth][key]));
        return key;
      }
      from = from / 64 + 1;
    }
    return std::nullopt;
  }
  /// The highest member below `end`.
  [[nodiscard]] std::optional<std::size_t> previous(std::size_t end) const noexcept {
    end = std::min(end, levels_.front().size() * 64);
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      if (end == 0) return std::nullopt;
      const std::size_t last = end - 1;
      const std::uint64_t below = levels_[depth][last / 64] << (63 - last % 64);
      if (below != 0) {
        std::size_t key = last - static_cast<std::size_t>(std::countl_zero(below));
        while (depth-- > 0)
          key = key * 64 + 63 - static_cast<std::size_t>(std::countl_zero(levels_[depth][key]));
        return key;
      }
      end = last / 64;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // levels_[0] are the members
};

}  // namespace berth
