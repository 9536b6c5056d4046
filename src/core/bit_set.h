// An ordered set of ids or small numbers as a bitmap with summary levels: insert, erase, the next
// member upwards and the next downwards touch one word per level (three levels hold 262,144 keys,
// four 16 million). The lowest comes first, so a choice from a set is deterministic without any
// sorting. A set of pairs, "smallest count that still fits, then lowest id", has keys count * n +
// id.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/id.h"

namespace berth {

template <class Key>
class BitSet {
 public:
  BitSet() = default;
  explicit BitSet(std::size_t keys) {
    do {
      keys = (keys + 63) / 64;
      levels_.emplace_back(keys == 0 ? 1 : keys);
    } while (keys > 1);
  }

  void insert(Key key) noexcept {
    std::size_t at = position(key);
    if (has(at)) return;
    ++size_;
    for (auto& level : levels_) {
      std::uint64_t& word = level[at / 64];
      const bool was_known = word != 0;
      word |= std::uint64_t{1} << (at % 64);
      if (was_known) return;  // the levels above know of this word
      at /= 64;
    }
  }
  void erase(Key key) noexcept {
    std::size_t at = position(key);
    if (!has(at)) return;
    --size_;
    for (auto& level : levels_) {
      std::uint64_t& word = level[at / 64];
      word &= ~(std::uint64_t{1} << (at % 64));
      if (word != 0) return;  // others keep the summary bit
      at /= 64;
    }
  }
  [[nodiscard]] bool contains(Key key) const noexcept { return has(position(key)); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  [[nodiscard]] std::optional<Key> first() const noexcept { return next(key_at(0)); }
  /// The lowest member that is `from` or above.
  [[nodiscard]] std::optional<Key> next(Key from) const noexcept {
    std::size_t at = position(from);
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      const auto& level = levels_[depth];
      if (at / 64 >= level.size()) return std::nullopt;
      if (const std::uint64_t rest = level[at / 64] >> (at % 64); rest != 0) {
        at += static_cast<std::size_t>(std::countr_zero(rest));
        while (depth-- > 0)  // descend along the lowest bits
          at = at * 64 + static_cast<std::size_t>(std::countr_zero(levels_[depth][at]));
        return key_at(at);
      }
      at = at / 64 + 1;
    }
    return std::nullopt;
  }
  /// The highest member below `end`.
  [[nodiscard]] std::optional<Key> previous(Key end_key) const noexcept {
    std::size_t end = std::min(position(end_key), levels_.front().size() * 64);
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      if (end == 0) return std::nullopt;
      const std::size_t last = end - 1;
      const std::uint64_t below = levels_[depth][last / 64] << (63 - last % 64);
      if (below != 0) {
        std::size_t at = last - static_cast<std::size_t>(std::countl_zero(below));
        while (depth-- > 0)
          at = at * 64 + 63 - static_cast<std::size_t>(std::countl_zero(levels_[depth][at]));
        return key_at(at);
      }
      end = last / 64;
    }
    return std::nullopt;
  }
  /// The member number `rank` in ascending order; rank < size().
  [[nodiscard]] Key nth(std::size_t rank) const noexcept {
    const auto& words = levels_.front();
    for (std::size_t i = 0;; ++i) {
      const auto here = static_cast<std::size_t>(std::popcount(words[i]));
      if (rank < here) {
        std::uint64_t word = words[i];
        for (; rank > 0; --rank) word &= word - 1;
        return key_at(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
      rank -= here;
    }
  }

  /// Ascending; members that are inserted behind it while it walks are seen.
  class Iterator {
   public:
    using value_type = Key;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const BitSet& set, std::optional<Key> at) : set_(&set), at_(at) {}
    [[nodiscard]] Key operator*() const noexcept { return *at_; }
    Iterator& operator++() noexcept {
      at_ = set_->next(key_at(position(*at_) + 1));
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.at_ == b.at_; }

   private:
    const BitSet* set_ = nullptr;
    std::optional<Key> at_;
  };
  [[nodiscard]] Iterator begin() const noexcept { return {*this, first()}; }
  [[nodiscard]] Iterator end() const noexcept { return {*this, std::nullopt}; }

 private:
  [[nodiscard]] static std::size_t position(Key key) noexcept {
    if constexpr (std::is_integral_v<Key>) {
      return key;
    } else {
      return key.value;
    }
  }
  [[nodiscard]] static Key key_at(std::size_t at) noexcept {
    if constexpr (std::is_integral_v<Key>) {
      return at;
    } else {
      return Key{static_cast<std::uint32_t>(at)};
    }
  }
  [[nodiscard]] bool has(std::size_t at) const noexcept {
    return ((levels_.front()[at / 64] >> (at % 64)) & 1U) != 0;
  }

  std::vector<std::vector<std::uint64_t>> levels_;  // levels_[0] are the members
  std::size_t size_ = 0;
};

using NodeSet = BitSet<NodeId>;
using BitIndex = BitSet<std::size_t>;

}  // namespace berth
