#include "policies/tiresias/gittins.h"

#include <algorithm>

namespace berth {

void GittinsTable::add(double service) {
  if (ring_.size() < window_) {
    ring_.push_back(service);
  } else {
    ring_[next_] = service;
    next_ = (next_ + 1) % window_;
  }
  ++new_samples_;
}

bool GittinsTable::refresh() {
  if (new_samples_ == 0 || new_samples_ * 100 < sorted_.size()) return false;
  new_samples_ = 0;
  sorted_ = ring_;
  std::ranges::sort(sorted_);
  prefix_.assign(1, 0.0);
  for (const double sample : sorted_) prefix_.push_back(prefix_.back() + sample);
  return true;
}

std::size_t GittinsTable::first_above(double value) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(sorted_, value) - sorted_.begin());
}

double GittinsTable::index(double attained, double quantum) const {
  const std::size_t n = sorted_.size();
  const std::size_t i = first_above(attained);
  if (i == n) return 0.0;
  const std::size_t k = first_above(attained + quantum);
  const auto finished = static_cast<double>(k - i);
  // Both probability and expectation are over the n - i longer jobs; the denominators cancel.
  const double spent =
      prefix_[k] - prefix_[i] - finished * attained + static_cast<double>(n - k) * quantum;
  return finished / spent;
}

double GittinsTable::best_index(double attained) const {
  double best = 0.0;
  for (std::size_t i = first_above(attained); i < sorted_.size(); ++i) {
    best = std::max(best, index(attained, sorted_[i] - attained));
  }
  return best;
}

}  // namespace berth
