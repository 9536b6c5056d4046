#include "lab/reproduce/replay_error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace berth {

namespace {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(values[i], i); });
  std::vector<double> rank(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    // Equal values share the mean of their ranks, as Spearman's coefficient asks for.
    const double mean = static_cast<double>(first + end - 1) / 2;
    for (; first < end; ++first) rank[order[first]] = mean;
  }
  return rank;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double correlation(std::span<const double> a, std::span<const double> b) {
  const double mean_a = mean_of(a);
  const double mean_b = mean_of(b);
  double both = 0, only_a = 0, only_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    only_a += (a[i] - mean_a) * (a[i] - mean_a);
    only_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  const double scale = std::sqrt(only_a * only_b);
  return scale > 0 ? both / scale : 0;
}

}  // namespace

ReplayError replay_error(std::span<const double> ours, std::span<const double> measured) {
  ReplayError error;
  if (ours.empty()) return error;
  for (std::size_t i = 0; i < ours.size(); ++i)
    error.per_job += std::abs(ours[i] / measured[i] - 1) / static_cast<double>(ours.size());
  error.of_average = mean_of(ours) / mean_of(measured) - 1;
  error.rank = correlation(ranks(ours), ranks(measured));
  return error;
}

std::string as_text(const ReplayError& error) {
  return fmt::format("average {:+.1f} %, per job {:.0f} %, rank {:.3f}", 100 * error.of_average,
                     100 * error.per_job, error.rank);
}

}  // namespace berth
