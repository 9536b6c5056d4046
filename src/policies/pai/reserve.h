// How many high-end devices are kept for the jobs that need them: the 95th percentile, over the
// last seven days, of a moving mean (every ten minutes) of how many such jobs held.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace berth::pai {

class Reserve {
 public:
  static constexpr Duration kEvery = std::chrono::minutes{10};
  static constexpr std::size_t kSamples = 7 * 24 * 6;

  /// So many are held from now on.
  void note(Time now, std::int64_t held) {
    for (; next_ <= now; next_ += kEvery) {
      mean_ = samples_ == 0 ? static_cast<double>(held_)
                            : 0.5 * static_cast<double>(held_) + 0.5 * mean_;
      if (ring_.size() < kSamples) {
        ring_.push_back(mean_);
      } else {
        ring_[samples_ % kSamples] = mean_;
      }
      ++samples_;
      wanted_ = percentile();
    }
    held_ = held;
  }
  [[nodiscard]] double wanted() const noexcept { return wanted_; }

 private:
  [[nodiscard]] double percentile() const {
    std::vector<double> sorted = ring_;
    const std::size_t at = (sorted.size() * 95 + 99) / 100 - 1;
    std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(at));
    return sorted[at];
  }

  Time next_{};
  std::int64_t held_ = 0;
  double mean_ = 0;
  double wanted_ = 0;
  std::vector<double> ring_;
  std::size_t samples_ = 0;
};

/// May a job that does not need them take so many high-end devices?
[[nodiscard]] constexpr bool may_borrow(std::int64_t free, double reserve,
                                        std::int64_t held_by_high, std::int64_t wanted) noexcept {
  const double kept = std::max(0.0, reserve - static_cast<double>(held_by_high));
  return static_cast<double>(free) - kept >= static_cast<double>(wanted);
}

}  // namespace berth::pai
