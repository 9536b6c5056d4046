#include "policies/optimus/row_triangle.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "solve/least_squares.h"

namespace berth::optimus {

void RowTriangle::add(std::span<const double> row, double value, double weight) noexcept {
  BERTH_DCHECK(row.size() == columns_, "a row has one entry per column");
  const double scale = std::sqrt(weight);
  Values rest{};
  for (std::size_t i = 0; i < columns_; ++i) rest[i] = scale * row[i];
  double rest_right = scale * value;
  for (std::size_t i = 0; i < columns_; ++i) {
    if (rest[i] == 0) continue;
    const double length = std::sqrt(factor_[i][i] * factor_[i][i] + rest[i] * rest[i]);
    const double cosine = factor_[i][i] / length;
    const double sine = rest[i] / length;
    const auto rotate = [&](double& kept, double& left) {
      const double before = kept;
      kept = cosine * before + sine * left;
      left = cosine * left - sine * before;
    };
    for (std::size_t j = i; j < columns_; ++j) rotate(factor_[i][j], rest[j]);
    rotate(right_[i], rest_right);
  }
}

bool RowTriangle::solve_freely(Values& x) const noexcept {
  double largest = 0;
  for (std::size_t i = 0; i < columns_; ++i) largest = std::max(largest, factor_[i][i]);
  for (std::size_t i = columns_; i-- > 0;) {
    if (factor_[i][i] <= 1e-12 * largest) return false;
    double rest = right_[i];
    for (std::size_t j = i + 1; j < columns_; ++j) rest -= factor_[i][j] * x[j];
    x[i] = rest / factor_[i][i];
    if (x[i] < 0) return false;
  }
  return true;
}

RowTriangle::Values RowTriangle::nonnegative_solution() const {
  Values x{};
  if (solve_freely(x)) return x;  // the bounds do not bind: most fits end here
  Matrix rows(columns_, columns_);
  for (std::size_t i = 0; i < columns_; ++i) {
    for (std::size_t j = i; j < columns_; ++j) rows(i, j) = factor_[i][j];
  }
  const std::vector<double> bounded =
      nonnegative_least_squares(rows, std::span{right_}.first(columns_));
  x = {};
  std::ranges::copy(bounded, x.begin());
  return x;
}

}  // namespace berth::optimus
