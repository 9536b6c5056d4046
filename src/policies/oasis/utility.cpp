#include "policies/oasis/utility.h"

#include "base/portable_math.h"

namespace berth::oasis {

namespace {
constexpr double kLeastShare = 1e-3;
constexpr double kLargestExponent = 50;  // its exponential is far beyond any share that counts
}  // namespace

double Utility::at(double delay_slots) const noexcept {
  const double exponent = steepness * (delay_slots - target);
  if (exponent > kLargestExponent) return 0;
  const double share = exponent < -kLargestExponent ? 1 : 1 / (1 + portable_exp(exponent));
  return share < kLeastShare ? 0 : value * share;
}

}  // namespace berth::oasis
