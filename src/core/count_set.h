// Positions ordered by a count each, then by position: "the one with the smallest count of at least
// k" is one look-up in a bitmap. A position with count zero is not in the set. Counts are bounded
// when the set is made; its memory is positions x (bound + 1) bits.
#pragma once

#include <cstdint>
#include <optional>

#include "core/bit_set.h"

namespace berth {

class CountSet {
 public:
  struct Member {
    std::size_t position = 0;
    std::int32_t count = 0;
  };

  CountSet() = default;
  CountSet(std::size_t positions, std::int64_t most)
      : positions_(positions), set_(positions * (static_cast<std::size_t>(most) + 1)) {}

  [[nodiscard]] bool is_made() const noexcept { return positions_ > 0; }
  void move(std::size_t position, std::int32_t from, std::int32_t to) noexcept {
    if (from > 0) set_.erase(key(from, position));
    if (to > 0) set_.insert(key(to, position));
  }
  /// The lowest of those with the smallest count that is `count` or more.
  [[nodiscard]] std::optional<Member> first_from(std::int32_t count) const noexcept {
    return member(set_.next(key(count, 0)));
  }
  [[nodiscard]] std::optional<Member> after(const Member& before) const noexcept {
    return member(set_.next(key(before.count, before.position) + 1));
  }
  /// The last of those with the largest count below `count`.
  [[nodiscard]] std::optional<Member> last_below(std::int32_t count) const noexcept {
    return member(set_.previous(key(count, 0)));
  }

 private:
  [[nodiscard]] std::size_t key(std::int32_t count, std::size_t position) const noexcept {
    return static_cast<std::size_t>(count) * positions_ + position;
  }
  [[nodiscard]] std::optional<Member> member(std::optional<std::size_t> found) const noexcept {
    if (!found) return std::nullopt;
    return Member{*found % positions_, static_cast<std::int32_t>(*found / positions_)};
  }

  std::size_t positions_ = 0;
  BitIndex set_;
};

}  // namespace berth
