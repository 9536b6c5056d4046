// Which core counts to profile so that few measurements tell most about a CPU curve, and in which
// order. A known sweet point leaves (P0, P1) to find: the D-optimal design. An unknown one is
// averaged over 2..Cmax: the Bayesian design. Both by exhaustive search where that is quick (up to
// two million designs), by exchanging one point at a time beyond.
//
// Profiling is in place, on the job's own GPUs: 5 mini-batches to warm up, then 20 measured, or
// 30 s; the most cores first, so that the job is never starved for long.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "perf/cpu_fit.h"

namespace berth {

inline constexpr std::int32_t kWarmUpBatches = 5;
inline constexpr std::int32_t kMeasuredBatches = 20;
inline constexpr Duration kLongestMeasurement = std::chrono::seconds{30};
/// A curve in the table is used without profiling while it is this young and this good.
inline constexpr Duration kCurveIsFresh = std::chrono::hours{24 * 7};
inline constexpr double kCurveIsGood = 0.1;

[[nodiscard]] constexpr bool is_worth_profiling(Duration age, double relative_error) noexcept {
  return age >= kCurveIsFresh || relative_error >= kCurveIsGood;
}

struct Design {
  std::vector<std::int32_t> cores;  // ascending, distinct
  double value = 0;
};

/// The determinant of the information that points below theta give about (P0, P1).
[[nodiscard]] double d_criterion(std::span<const std::int32_t> cores) noexcept;
/// Mean over theta uniform on 2..max_cores of log det(information below theta + eps I)
/// + log(points from theta on + eps), eps = 1e-3. `cores` ascending.
[[nodiscard]] double bayesian_criterion(std::span<const std::int32_t> cores,
                                        std::int32_t max_cores) noexcept;

/// Maximal criterion among `points` distinct counts in 1..max_cores; of equals the one that comes
/// first in lexicographic order. Needs 2 <= points <= max_cores and points <= 5.
[[nodiscard]] Result<Design> d_optimal_design(std::int32_t points, std::int32_t max_cores);
[[nodiscard]] Result<Design> bayesian_design(std::int32_t points, std::int32_t max_cores);

/// Bayesian designs, each computed once.
class DesignTable {
 public:
  [[nodiscard]] Result<std::span<const std::int32_t>> design(std::int32_t points,
                                                             std::int32_t max_cores);

 private:
  std::map<std::pair<std::int32_t, std::int32_t>, Design> designs_;
};

/// One profiling of one job: asks for core counts, takes speeds, gives the fit. After the design it
/// asks for the sweet point itself while the gap it lies in is wider than two cores, twice at most.
class CpuProfiler {
 public:
  explicit CpuProfiler(std::span<const std::int32_t> design, const CpuFitOptions& options = {});

  /// The next core count to measure; nothing once the curve is settled.
  [[nodiscard]] std::optional<std::int32_t> next() const;
  /// The speed at next(); must be positive.
  [[nodiscard]] Result<void> measured(double speed);
  [[nodiscard]] Result<CpuFit> fit() const { return fit_cpu_curve(points_, options_); }

 private:
  void ask_for_the_sweet_point();

  CpuFitOptions options_;
  std::vector<std::int32_t> to_measure_;  // the last one is next
  std::vector<CpuPoint> points_;
  int extensions_left_ = 2;
};

}  // namespace berth
