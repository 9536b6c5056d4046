// Quantiles, means, indices and confidence intervals. Sums run in the order given, so that equal
// runs give equal bytes.

#include "metrics/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/portable_math.h"

namespace berth {

// Type 7, as in NumPy and R: position q (n - 1), linear in between.
std::optional<double> quantile(std::span<const double> sorted, double share) noexcept {
  if (sorted.empty()) return std::nullopt;
  const double position = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

std::optional<double> mean(std::span<const double> values) noexcept {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> jain_index(std::span<const double> values) noexcept {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  if (squares <= 0) return std::nullopt;
  return sum * sum / (static_cast<double>(values.size()) * squares);
}

namespace {

/// Ranks 0 … n-1 to keep: evenly spaced ones, and in both tails ever smaller steps down to single
/// ranks.
std::vector<std::size_t> kept_ranks(std::size_t n) {
  constexpr std::size_t kEven = 500;
  constexpr std::size_t kPerTail = (kMaxCdfPoints - kEven) / 2;
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < kEven; ++i) ranks.push_back(i * (n - 1) / (kEven - 1));
  const double tail = static_cast<double>(n) / kEven;  // ranks below the first even step
  for (std::size_t i = 0; i < kPerTail; ++i) {
    // Geometric steps into the tail: the extreme ranks, which people look at, are all kept.
    const double depth = portable_pow(tail, static_cast<double>(i) / kPerTail);
    const auto rank = std::min(n - 1, static_cast<std::size_t>(depth));
    ranks.push_back(rank);
    ranks.push_back(n - 1 - rank);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace

Cdf cdf_of(std::span<const double> sorted) {
  Cdf cdf;
  const std::size_t n = sorted.size();
  const auto add = [&](std::size_t rank) {
    cdf.x.push_back(sorted[rank]);
    cdf.p.push_back(static_cast<double>(rank + 1) / static_cast<double>(n));
  };
  if (n <= kMaxCdfPoints) {
    for (std::size_t rank = 0; rank < n; ++rank) add(rank);
  } else {
    for (const std::size_t rank : kept_ranks(n)) add(rank);
  }
  return cdf;
}

double student_t_975(std::size_t degrees) noexcept {
  constexpr std::array kTable{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                              2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                              2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                              2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
  if (degrees <= kTable.size()) return kTable[std::max<std::size_t>(degrees, 1) - 1];
  constexpr double z =
      1.959964;  // of the normal law; the expansion below errs by less than 1e-4 from here on
  const auto n = static_cast<double>(degrees);
  return z + (z * z * z + z) / (4 * n) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

std::optional<MeanInterval> confidence_95(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  const double centre = *mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  const double deviation = std::sqrt(squares / (n - 1));
  return MeanInterval{centre, student_t_975(values.size() - 1) * deviation / std::sqrt(n)};
}

}  // namespace berth
