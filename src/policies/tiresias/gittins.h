// The Gittins index of a job that has attained service a, against the service of past jobs:
//   G(a, D) = P(S - a <= D | S > a) / E[min(S - a, D) | S > a]
// the chance to finish within the next D of service per unit of service spent on trying. Samples
// are kept in a sliding window, sorted, with prefix sums: a query is two binary searches.
#pragma once

#include <cstddef>
#include <vector>

namespace berth {

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

}  // namespace berth
