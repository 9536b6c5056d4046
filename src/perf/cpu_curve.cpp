#include "perf/cpu_curve.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace berth {
namespace {

constexpr double kEuler = 2.718281828459045;

double lower_branch(const CpuCurve& curve, double cores) noexcept {
  return curve.log_gain * portable_log(cores) + curve.linear_gain * cores;
}

// P1 <= 0: taken literally the first core would do nothing and a worker on one core would never
// end. The line through zero that touches P0 ln C + P1 C does so at C = e whatever the gains are;
// we follow it up to there, and hold the peak at C = -P0/P1 from there on.
double logarithmic_feed(const CpuCurve& curve, double cores) noexcept {
  const double peak = curve.linear_gain < 0 ? -curve.log_gain / curve.linear_gain : cores;
  const double used = std::min(cores, peak);
  if (used > kEuler) return lower_branch(curve, used);
  return used * (curve.log_gain / kEuler + curve.linear_gain);
}

}  // namespace

double CpuCurve::feed(double cores) const noexcept {
  if (!(cores > 0)) return 0;
  if (linear_gain <= 0) return log_gain > 0 ? std::max(0.0, logarithmic_feed(*this, cores)) : 0.0;
  if (cores <= 1) return cores * linear_gain;
  // P0 < 0 makes the branch dip before it rises: more cores never feed less.
  return std::max(lower_branch(*this, cores), linear_gain);
}

// Never above the plateau: that is what the GPU can take.
double CpuCurve::speed(double cores) const noexcept {
  return cores >= theta ? plateau : std::min(feed(cores), plateau);
}

}  // namespace berth
