// The devices of a server as bits, lowest number first: `for (int device :
// DeviceMask{slice.devices})`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace berth {

class DeviceMask {
 public:
  explicit constexpr DeviceMask(std::uint64_t bits) noexcept : bits_(bits) {}

  class Iterator {
   public:
    using value_type = std::int32_t;
    using difference_type = std::ptrdiff_t;
    constexpr Iterator() = default;
    explicit constexpr Iterator(std::uint64_t rest) noexcept : rest_(rest) {}
    [[nodiscard]] constexpr std::int32_t operator*() const noexcept {
      return std::countr_zero(rest_);
    }
    constexpr Iterator& operator++() noexcept {
      rest_ &= rest_ - 1;
      return *this;
    }
    constexpr Iterator operator++(int) noexcept {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend constexpr bool operator==(Iterator a, Iterator b) noexcept = default;

   private:
    std::uint64_t rest_ = 0;
  };
  [[nodiscard]] constexpr Iterator begin() const noexcept { return Iterator{bits_}; }
  [[nodiscard]] constexpr Iterator end() const noexcept { return Iterator{0}; }

  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
  [[nodiscard]] constexpr std::int32_t size() const noexcept { return std::popcount(bits_); }
  [[nodiscard]] constexpr std::int32_t front() const noexcept { return std::countr_zero(bits_); }
  /// The `count` lowest; all if there are fewer.
  [[nodiscard]] constexpr std::uint64_t lowest(std::int32_t count) const noexcept {
    std::uint64_t taken = 0;
    for (const std::int32_t device : *this) {
      if (count-- <= 0) break;
      taken |= std::uint64_t{1} << static_cast<unsigned>(device);
    }
    return taken;
  }

 private:
  std::uint64_t bits_;
};

}  // namespace berth
