// What finishing a job is worth, by how many slots after its arrival it is done: value / (1 +
// exp(steepness (delay - target))). Flat with steepness 0, a soft preference below 1, a deadline
// above 4. What is left below a thousandth of the value counts as nothing, so that "worth nothing"
// is reached in a finite number of slots and the ratio of dearest to cheapest price stays finite.
#pragma once

#include "base/portable_math.h"

namespace berth::oasis {

struct Utility {
  double value = 1;
  double steepness = 0;  // per slot
  double target = 0;     // slots: half of the value is left there

  /// Never negative, never rising; 0 slots is done within the slot of arrival.
  [[nodiscard]] double at(double delay_slots) const noexcept {
    constexpr double kLeastShare = 1e-3;
    constexpr double kLargestExponent = 50;  // its exponential is far beyond any share that counts
    const double exponent = steepness * (delay_slots - target);
    if (exponent > kLargestExponent) return 0;
    const double share = exponent < -kLargestExponent ? 1 : 1 / (1 + portable_exp(exponent));
    return share < kLeastShare ? 0 : value * share;
  }
};

}  // namespace berth::oasis
