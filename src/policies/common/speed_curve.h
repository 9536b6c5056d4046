// How fast a job is at each size an elastic policy may give it: only sizes that are faster than
// all smaller ones, so that both columns rise and a larger size is never a loss.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth {

struct SpeedCurve {
  std::vector<std::int32_t> gpus;
  std::vector<double> speed;  // work per second

  [[nodiscard]] std::size_t sizes() const noexcept { return gpus.size(); }
  /// One size more, the largest so far. False: it is no faster than a smaller one and is left out.
  bool add(std::int32_t size, double its_speed) {
    if (!speed.empty() && its_speed <= speed.back()) return false;
    gpus.push_back(size);
    speed.push_back(its_speed);
    return true;
  }
  /// How many sizes need at most so many GPUs.
  [[nodiscard]] std::size_t sizes_within(std::int64_t free) const noexcept {
    return static_cast<std::size_t>(std::ranges::upper_bound(gpus, free) - gpus.begin());
  }
  /// The first size that is as fast; the last one if none is.
  [[nodiscard]] std::size_t first_reaching(double wanted) const noexcept {
    constexpr double kRounding = 1e-9;  // a speed computed in another way is still the same
    for (std::size_t i = 0; i + 1 < sizes(); ++i) {
      if (speed[i] >= wanted * (1 - kRounding)) return i;
    }
    return sizes() - 1;
  }
};

}  // namespace berth
