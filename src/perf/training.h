// What training does beside taking time: how the loss falls with the epochs, and how much a sample
// is worth in a batch of a given size.
//
//   loss after k epochs   l(k) = 1 / (b0 k + b1) + b2
//   statistical efficiency of batch M against M0   (phi + M0) / (phi + M), phi the gradient's noise
//   scale, which grows while the model learns
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace berth {

struct LossCurve {
  double b0 = 0.1;
  double b1 = 0.5;
  double b2 = 0.2;
  double epochs = 17;    // after so many it is trained: where this curve falls by less than 1 %
  double spread = 0.25;  // deviation of the floor b2 between jobs of the same model (log-normal)
  double noise = 0.01;   // deviation of one measured epoch around the curve

  [[nodiscard]] constexpr double at(double epoch) const noexcept {
    return 1 / (b0 * epoch + b1) + b2;
  }
};

/// The noise scale from this share of the whole training on.
struct NoisePoint {
  double progress = 0;
  double scale = 0;
};
[[nodiscard]] constexpr double noise_scale_at(std::span<const NoisePoint> points,
                                              double progress) noexcept {
  double scale = points.empty() ? 0 : points.front().scale;
  for (const NoisePoint& point : points) {
    if (point.progress <= progress) scale = point.scale;
  }
  return scale;
}

/// How much of a sample's worth in batch `first` it has in batch `now`. A noise scale that nobody
/// knows (0) is taken to be as large as the first batch.
[[nodiscard]] constexpr double efficiency(double noise_scale, double first, double now) noexcept {
  const double phi = noise_scale > 0 ? noise_scale : first;
  return (phi + first) / (phi + now);
}

/// Within which a scheduler may choose the batch of a job.
struct BatchLimits {
  std::int32_t least_per_gpu = 1;  // of one sub-batch
  std::int32_t most_per_gpu = 0;   // of one sub-batch; 0 = as device memory allows
  std::int32_t most_total = 0;     // of the gang and iteration; 0 = not known
};

/// What the training code of a job says of itself.
struct TrainingReport {
  double epochs = 0;       // done
  double loss = 0;         // after the last whole epoch; of an untrained model before
  double noise_scale = 0;  // 0 = not measured
};

/// Share of the whole training that is done.
[[nodiscard]] constexpr double share_done(Duration done, Duration whole) noexcept {
  if (whole <= Duration::zero()) return 1;
  return std::clamp(static_cast<double>(done.count()) / static_cast<double>(whole.count()), 0.0,
                    1.0);
}

/// The loss a job with this key measures after `epoch` epochs: the model's curve with the job's own
/// floor, and the noise of measuring.
[[nodiscard]] double measured_loss(const LossCurve& curve, std::uint64_t job_key,
                                   std::int64_t epoch);

}  // namespace berth
