// Least squares for the small fits of the project (a dozen unknowns, some thousand points): linear,
// linear with non-negative unknowns, and non-linear within bounds. Deterministic: no random starts,
// fixed order of sums, ties to the lower index. Knows nothing of what is fitted.
//
// Cost: linear O(rows * columns^2); the others a few dozen times that.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace berth {

/// A dense table of numbers, row by row.
class Matrix {
 public:
  Matrix(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), cells_(rows * columns) {}
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] double& operator()(std::size_t row, std::size_t column) noexcept {
    return cells_[row * columns_ + column];
  }
  [[nodiscard]] double operator()(std::size_t row, std::size_t column) const noexcept {
    return cells_[row * columns_ + column];
  }

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::vector<double> cells_;
};

/// The x that makes |a x - b| least; `b` has one entry per row. Where columns depend on each other
/// the later ones of them get zero, so there is always one answer.
[[nodiscard]] std::vector<double> linear_least_squares(const Matrix& a, std::span<const double> b);

/// The same with every x >= 0 (Lawson and Hanson's active set).
[[nodiscard]] std::vector<double> nonnegative_least_squares(const Matrix& a,
                                                            std::span<const double> b);

struct ParameterRange {
  double low = 0;
  double high = 0;
};

/// Writes one residual per point for the given parameters. Must be finite within the bounds.
using Residuals = std::function<void(std::span<const double> parameters, std::span<double> out)>;

struct CurveProblem {
  Residuals residuals;
  std::size_t points = 0;
  std::vector<double> start;           // one per parameter; moved into the bounds if outside
  std::vector<ParameterRange> bounds;  // one per parameter
  int max_steps = 500;
};

struct CurveFit {
  std::vector<double> parameters;
  double sum_of_squares = 0;
  int steps = 0;
  bool converged = false;  // no step within the bounds makes it better
};

/// Levenberg and Marquardt's method with differences for derivatives; a parameter at a bound that
/// wants to leave it stays there. Finds the minimum near the start, not the lowest of all.
[[nodiscard]] CurveFit fit_curve(const CurveProblem& problem);

}  // namespace berth
