// Shared by the fits of perf/: errors that grow like their square only while they are small.
#pragma once

#include <cmath>

namespace berth {

/// The square of it is Huber's smooth loss: r^2 for small r, about 2 * scale * |r| for large ones.
[[nodiscard]] inline double tamed(double r, double scale = 0.1) noexcept {
  const double ratio = r / scale;
  const double loss = 2 * (std::sqrt(1 + ratio * ratio) - 1);
  return std::copysign(scale * std::sqrt(loss), r);
}

}  // namespace berth
