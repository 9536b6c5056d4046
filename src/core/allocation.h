// Which devices a job holds. Slices of all jobs live in one arena in blocks of 1, 2, 4 … slices
// with free lists, so that starting and stopping jobs allocates nothing once the arena is warm.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/id.h"
#include "core/cluster_state.h"

namespace berth {

/// A handle; empty while the job holds nothing. In Count mode a job holds a pool share, no slices.
struct Allocation {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  PoolId pool;
  std::uint32_t offset = 0;
  std::uint32_t slices = kNone;
  [[nodiscard]] bool holds() const noexcept { return slices != kNone; }
};

class SliceArena {
 public:
  [[nodiscard]] Allocation store(PoolId pool, std::span<const Slice> slices) {
    Allocation result{
        .pool = pool, .offset = 0, .slices = static_cast<std::uint32_t>(slices.size())};
    if (slices.empty()) return result;
    const unsigned block = block_class(slices.size());
    auto& free = free_[block];
    if (free.empty()) {
      result.offset = static_cast<std::uint32_t>(arena_.size());
      arena_.resize(arena_.size() + (std::size_t{1} << block));
    } else {
      result.offset = free.back();
      free.pop_back();
    }
    std::copy(slices.begin(), slices.end(), arena_.begin() + result.offset);
    return result;
  }
  void release(const Allocation& allocation) {
    if (allocation.holds() && allocation.slices > 0)
      free_[block_class(allocation.slices)].push_back(allocation.offset);
  }
  [[nodiscard]] std::span<const Slice> slices(const Allocation& allocation) const noexcept {
    if (!allocation.holds()) return {};
    return {arena_.data() + allocation.offset, allocation.slices};
  }

 private:
  [[nodiscard]] static unsigned block_class(std::size_t count) noexcept {
    return static_cast<unsigned>(std::bit_width(count - 1));
  }
  std::vector<Slice> arena_;
  std::array<std::vector<std::uint32_t>, 32> free_;
};

}  // namespace berth
