#include "policies/oasis/price_range.h"

#include <algorithm>

#include "base/portable_math.h"

namespace berth::oasis {

bool PriceRange::see(const Sample& sample, std::span<const std::int64_t> need) {
  std::int64_t all = 0;
  for (const std::int64_t amount : need) all += amount;
  if (all == 0 || sample.worst <= 0 || capacity_ <= 0) return false;
  bool changed = false;
  const auto widen = [&](double& bound, double value) {
    changed = changed || bound != value;
    bound = value;
  };
  for (std::size_t r = 0; r < high_.size(); ++r) {
    if (need[r] == 0) continue;
    widen(high_[r], std::max(high_[r], sample.best / static_cast<double>(need[r])));
  }
  const double taken = sample.work * static_cast<double>(all);
  widen(least_share_, std::min(least_share_, taken / capacity_));
  widen(least_worth_, std::min(least_worth_, sample.worst / taken));
  return changed;
}

double PriceRange::alpha() const {
  double most = 1;
  for (const double high : high_) {
    if (high > low()) most = std::max(most, portable_log(high / low()));
  }
  return most;
}

}  // namespace berth::oasis
