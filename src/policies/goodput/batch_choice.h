// The batch that makes a job learn fastest on a given gang: goodput = samples per second times
// what a sample is worth in a batch of that size. Pure arithmetic; what an iteration takes is the
// caller's business.
//
//   M = K m (s + 1)         K GPUs, sub-batches of m samples, s of them before the last
//   eff(M) = (phi + M0) / (phi + M)
//
// Fifty total batches in geometric progression are tried: at most 0.4 % below the best of all on
// the table of the tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/portable_math.h"

namespace berth::goodput {

struct BatchRange {
  std::int32_t first = 1;           // M0: the smallest valid total batch
  std::int32_t most_total = 1;      // Mmax
  std::int32_t least_per_step = 1;  // of one sub-batch, per GPU
  std::int32_t most_per_step = 1;
  bool accumulates = true;  // may take several sub-batches per iteration
  bool two_on_one = true;   // one GPU beyond M0 takes two: the noise estimate needs them
  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

struct BatchChoice {
  std::int32_t per_step = 0;     // m
  std::int32_t extra_steps = 0;  // s
  double goodput = 0;            // useful samples per second; 0: no batch is valid

  [[nodiscard]] bool is_valid() const noexcept { return goodput > 0; }
  [[nodiscard]] std::int32_t per_gpu() const noexcept { return per_step * (extra_steps + 1); }
};

/// A noise scale that is not a number counts as none: then only M0 samples of a batch count.
[[nodiscard]] inline double statistical_efficiency(double phi, double first,
                                                   double total) noexcept {
  const double scale = phi > 0 ? phi : 0;
  return (scale + first) / (scale + total);
}

/// `seconds(m, s)` is the time of one iteration.
template <class Seconds>
[[nodiscard]] double goodput_of(const BatchRange& range, std::int32_t gpus, double phi,
                                std::int32_t per_step, std::int32_t extra_steps,
                                const Seconds& seconds) {
  const double total = 1.0 * gpus * per_step * (extra_steps + 1);
  return total / seconds(per_step, extra_steps) * statistical_efficiency(phi, range.first, total);
}

/// The best of fifty batches; an invalid choice if none of them is allowed on so many GPUs.
template <class Seconds>
[[nodiscard]] BatchChoice best_batch(const BatchRange& range, std::int32_t gpus, double phi,
                                     const Seconds& seconds) {
  constexpr int kPoints = 50;
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  BatchChoice best;
  const double low = std::max<double>(range.first, 1.0 * range.least_per_step * gpus);
  if (low > range.most_total) return best;
  const double ratio = portable_pow(range.most_total / low, 1.0 / (kPoints - 1));
  std::int64_t last_m = 0;
  std::int64_t last_s = -1;
  double point = low;
  for (int i = 0; i < kPoints; ++i, point *= ratio) {
    const auto wanted = std::min<std::int64_t>(std::llround(point), range.most_total);
    std::int64_t s = ceil_div(ceil_div(wanted, gpus), range.most_per_step) - 1;
    if (range.two_on_one && gpus == 1 && wanted > range.first) s = std::max<std::int64_t>(s, 1);
    if (!range.accumulates) s = 0;
    const std::int64_t m = std::clamp<std::int64_t>(ceil_div(ceil_div(wanted, gpus), s + 1),
                                                    range.least_per_step, range.most_per_step);
    const std::int64_t total = gpus * m * (s + 1);
    if (total < range.first || total > range.most_total) continue;
    if (m == last_m && s == last_s) continue;
    last_m = m;
    last_s = s;
    const auto per_step = static_cast<std::int32_t>(m);
    const auto extra = static_cast<std::int32_t>(s);
    const double goodput = goodput_of(range, gpus, phi, per_step, extra, seconds);
    if (goodput > best.goodput) best = {per_step, extra, goodput};
  }
  return best;
}

}  // namespace berth::goodput
