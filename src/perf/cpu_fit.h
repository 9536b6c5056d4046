// Fits S(C) = P0 ln C + P1 C below theta, P2 from theta on, to a few measured speeds of one worker.
// For a fixed theta this is linear least squares, and every theta between two neighbouring profiled
// core counts splits the points alike, so each such gap is tried once: O(n^2) in the number of
// distinct core counts. Below one core the curve is a line from zero, as in CpuCurve::feed().
//
// Gains that would let the curve fall are refitted without the offending term before gaps are
// compared, so the winner is the best curve that is admissible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "perf/cpu_curve.h"

namespace berth {

/// A measured speed of one worker, samples per second.
struct CpuPoint {
  double cores = 0;
  double speed = 0;
  friend bool operator==(const CpuPoint&, const CpuPoint&) = default;
};

/// Equal: absolute errors count. Relative: weights 1/S^2, for noise in proportion to the speed.
enum class FitWeights : std::uint8_t { Equal, Relative };

struct CpuFitOptions {
  FitWeights weights = FitWeights::Equal;
};

/// One way to split the points: those up to `low` cores lie below theta, those from `high` on
/// above.
struct ThetaGap {
  double low = 0;
  double high = 0;
  double sse = 0;
};

struct CpuFit {
  CpuCurve curve;
  double sse = 0;
  ThetaGap gap;                // where theta lies
  std::vector<ThetaGap> gaps;  // all that were tried, from the lowest theta on
};

/// Needs two distinct core counts; refuses anything that is no measurement (cores or speed not a
/// positive finite number) with a message that names the point.
[[nodiscard]] Result<CpuFit> fit_cpu_curve(std::span<const CpuPoint> points,
                                           const CpuFitOptions& options = {});

}  // namespace berth
