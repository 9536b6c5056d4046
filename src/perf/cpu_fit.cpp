// Two branches, ln C + C below a sweet point and a constant above it. The sweet point lies between
// two measured counts, so each such gap is fitted by linear least squares and the best one wins: no
// iteration, no starting values.

#include "perf/cpu_fit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/portable_math.h"

namespace berth {
namespace {

constexpr double kEuler = 2.718281828459045;
constexpr std::int32_t kMostCores = 1 << 20;

/// Repeated measurements of one core count, averaged.
struct Sample {
  double cores = 0;
  double log_cores = 0;  // 0 below one core, where the curve is a line from zero
  double speed = 0;
  double weight = 1;
};

struct Gains {
  double log_gain = 0;
  double linear_gain = 0;
  [[nodiscard]] double at(const Sample& sample) const noexcept {
    return log_gain * sample.log_cores + linear_gain * sample.cores;
  }
};

struct Split {
  Gains gains;
  double plateau = 0;
  double sse = 0;
};

Result<void> check_points(std::span<const CpuPoint> points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [cores, speed] = points[i];
    if (!std::isfinite(cores) || cores <= 0 || cores > kMostCores) {
      return fail(
          fmt::format("CPU point {}: cores must be a positive number, got {}", i + 1, cores));
    }
    if (!std::isfinite(speed) || speed <= 0) {
      return fail(fmt::format("CPU point {}: speed at {} cores must be a positive number, got {}",
                              i + 1, cores, speed));
    }
  }
  return {};
}

std::vector<Sample> averaged(std::span<const CpuPoint> points, FitWeights weights) {
  std::vector<CpuPoint> sorted(points.begin(), points.end());
  std::ranges::stable_sort(sorted, {}, &CpuPoint::cores);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < sorted.size();) {
    const double cores = sorted[i].cores;
    double sum = 0;
    double count = 0;
    for (; i < sorted.size() && sorted[i].cores == cores; ++i, ++count) sum += sorted[i].speed;
    const double speed = sum / count;
    samples.push_back({.cores = cores,
                       .log_cores = cores > 1 ? portable_log(cores) : 0,
                       .speed = speed,
                       .weight = weights == FitWeights::Relative ? 1 / (speed * speed) : 1});
  }
  return samples;
}

struct Moments {
  double log_log = 0;
  double log_cores = 0;
  double cores_cores = 0;
  double speed_log = 0;
  double speed_cores = 0;
};

Moments moments_of(std::span<const Sample> samples) noexcept {
  Moments sum;
  for (const Sample& s : samples) {
    sum.log_log += s.weight * s.log_cores * s.log_cores;
    sum.log_cores += s.weight * s.log_cores * s.cores;
    sum.cores_cores += s.weight * s.cores * s.cores;
    sum.speed_log += s.weight * s.speed * s.log_cores;
    sum.speed_cores += s.weight * s.speed * s.cores;
  }
  return sum;
}

// Normal equations of two unknowns; the cases that would make the curve fall are fitted with one.
Gains fit_below(std::span<const Sample> below) noexcept {
  const Moments m = moments_of(below);
  const Gains linear{0, m.speed_cores / m.cores_cores};
  const double determinant = m.log_log * m.cores_cores - m.log_cores * m.log_cores;
  // ln 2 / 2 = ln 4 / 4: two points may not tell the terms apart, like one point never does.
  if (below.size() == 1 || determinant <= 1e-12 * m.log_log * m.cores_cores) return linear;
  const Gains both{
      .log_gain = (m.speed_log * m.cores_cores - m.log_cores * m.speed_cores) / determinant,
      .linear_gain = (m.log_log * m.speed_cores - m.log_cores * m.speed_log) / determinant};
  if (both.log_gain < 0) return linear;
  // From e on is where a falling curve could still be positive at all (see CpuCurve::feed).
  const double last = std::max(below.back().cores, kEuler);
  if (both.linear_gain < 0 && both.log_gain / last + both.linear_gain < 0)
    return {m.speed_log / m.log_log, 0};
  return both;
}

// `below` samples follow the rising branch, the others the plateau, which is their mean.
Split fit_split(std::span<const Sample> samples, std::size_t below) noexcept {
  Split split;
  split.gains = fit_below(samples.first(below));
  double weight = 0;
  for (const Sample& s : samples.subspan(below)) {
    split.plateau += s.weight * s.speed;
    weight += s.weight;
  }
  split.plateau /= weight;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double predicted = i < below ? split.gains.at(samples[i]) : split.plateau;
    const double error = samples[i].speed - predicted;
    split.sse += samples[i].weight * error * error;
  }
  return split;
}

/// The smallest whole number of cores in [low, high] that reaches the plateau; `high` if none does.
std::int32_t refined_theta(const CpuCurve& curve, double low, double high) noexcept {
  const auto first = static_cast<std::int32_t>(std::ceil(std::max(low, 1.0)));
  const auto last = static_cast<std::int32_t>(std::ceil(std::max(high, 1.0)));
  for (std::int32_t cores = first; cores < last; ++cores) {
    if (curve.feed(cores) >= curve.plateau) return cores;
  }
  return last;
}

}  // namespace

Result<CpuFit> fit_cpu_curve(std::span<const CpuPoint> points, const CpuFitOptions& options) {
  BERTH_TRY_VOID(check_points(points));
  const auto samples = averaged(points, options.weights);
  if (samples.size() < 2) {
    return fail(fmt::format(
        "a CPU curve needs speeds at two different core counts, got {} (profile one more)",
        samples.size()));
  }
  CpuFit fit;
  Split best;
  for (std::size_t below = 1; below < samples.size(); ++below) {
    const Split split = fit_split(samples, below);
    fit.gaps.push_back({samples[below - 1].cores, samples[below].cores, split.sse});
    // Of equal fits the smaller sweet point: it needs fewer cores.
    if (below > 1 && split.sse >= best.sse) continue;
    best = split;
    fit.gap = fit.gaps.back();
  }
  fit.sse = best.sse;
  fit.curve = {.log_gain = best.gains.log_gain,
               .linear_gain = best.gains.linear_gain,
               .plateau = best.plateau,
               .theta = 1};
  fit.curve.theta = refined_theta(fit.curve, fit.gap.low, fit.gap.high);
  return fit;
}

}  // namespace berth
