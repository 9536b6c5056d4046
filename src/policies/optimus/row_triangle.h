// Least squares whose rows come one by one: each is turned into the triangular factor of the normal
// matrix (Givens' rotations), so a row costs O(columns^2), nothing of it is kept, and no digits are
// lost by squaring. The answer has no negative entry.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace berth::optimus {

class RowTriangle {
 public:
  static constexpr std::size_t kMaxColumns = 5;
  using Values = std::array<double, kMaxColumns>;

  explicit RowTriangle(std::size_t columns) : columns_(columns) {}
  /// One more equation row * x = value; it counts `weight` times.
  void add(std::span<const double> row, double value, double weight = 1) noexcept;
  /// The x >= 0 of least squared error; entries beyond the columns are zero.
  [[nodiscard]] Values nonnegative_solution() const;

 private:
  /// Answers false if a column depends on others or an entry is negative.
  [[nodiscard]] bool solve_freely(Values& x) const noexcept;

  std::size_t columns_;
  std::array<Values, kMaxColumns> factor_{};  // upper triangle
  Values right_{};
};

}  // namespace berth::optimus
