// The Gittins index of a job that has attained service a, against the service of past jobs:
//   G(a, D) = P(S - a <= D | S > a) / E[min(S - a, D) | S > a]
// the chance to finish within the next D of service per unit of service spent on trying. Samples
// are kept in a sliding window, sorted, with prefix sums: a query is two binary searches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace berth::tiresias {

class GittinsTable {
 public:
  /// Keeps the last `window` samples.
  explicit GittinsTable(std::size_t window) : window_(window) {}

  void add(double service);
  /// Takes new samples into account; cheap if fewer than 1 % are new. True if the table changed.
  bool refresh();
  [[nodiscard]] std::size_t samples() const noexcept { return ring_.size(); }
  /// Index for quantum D; 0 when no past job was longer than a.
  [[nodiscard]] double index(double attained, double quantum) const;
  /// The undiscretized index: best over all quanta.
  [[nodiscard]] double best_index(double attained) const;

 private:
  [[nodiscard]] std::size_t first_above(double value) const;

  std::size_t window_;
  std::vector<double> ring_;  // in order of arrival, oldest overwritten
  std::size_t next_ = 0;
  std::size_t new_samples_ = 0;
  std::vector<double> sorted_;
  std::vector<double> prefix_;  // prefix_[i] = sum of the first i
};

inline void GittinsTable::add(double service) {
  if (ring_.size() < window_) {
    ring_.push_back(service);
  } else {
    ring_[next_] = service;
    next_ = (next_ + 1) % window_;
  }
  ++new_samples_;
}

inline bool GittinsTable::refresh() {
  if (new_samples_ == 0 || new_samples_ * 100 < sorted_.size()) return false;
  new_samples_ = 0;
  sorted_ = ring_;
  std::ranges::sort(sorted_);
  prefix_.assign(1, 0.0);
  for (const double sample : sorted_) prefix_.push_back(prefix_.back() + sample);
  return true;
}

inline std::size_t GittinsTable::first_above(double value) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(sorted_, value) - sorted_.begin());
}

inline double GittinsTable::index(double attained, double quantum) const {
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

inline double GittinsTable::best_index(double attained) const {
  double best = 0.0;
  for (std::size_t i = first_above(attained); i < sorted_.size(); ++i) {
    best = std::max(best, index(attained, sorted_[i] - attained));
  }
  return best;
}

}  // namespace berth::tiresias
