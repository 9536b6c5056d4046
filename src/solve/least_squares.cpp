// Linear least squares by Householder reflections, non-negative ones by Lawson and Hanson's active
// sets, curves by Levenberg and Marquardt. Problems here are small (tens of columns), so that
// clarity wins over blocking and pivoting.

#include "solve/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace berth {

namespace {

constexpr double kTiny = 1e-12;  // of a column's length: below it the column depends on the others

/// Householder's triangulation of a work copy, column by column. A dependent column is left out.
class Triangle {
 public:
  Triangle(Matrix a, std::span<const double> b) : a_(std::move(a)), b_(b.begin(), b.end()) {
    for (std::size_t column = 0; column < a_.columns() && kept_.size() < a_.rows(); ++column)
      reflect(column);
  }

  // Back substitution over the kept columns; the others stay zero.
  [[nodiscard]] std::vector<double> solution() const {
    std::vector<double> x(a_.columns(), 0.0);
    for (std::size_t i = kept_.size(); i-- > 0;) {
      double rest = b_[i];
      for (std::size_t j = i + 1; j < kept_.size(); ++j) rest -= a_(i, kept_[j]) * x[kept_[j]];
      x[kept_[i]] = rest / a_(i, kept_[i]);
    }
    return x;
  }

 private:
  [[nodiscard]] double length(std::size_t column, std::size_t from) const {
    double sum = 0;
    for (std::size_t row = from; row < a_.rows(); ++row) sum += a_(row, column) * a_(row, column);
    return std::sqrt(sum);
  }

  void reflect(std::size_t column) {
    const std::size_t pivot = kept_.size();
    const double rest = length(column, pivot);
    if (rest <= kTiny * length(column, 0)) return;  // also an all-zero column
    std::vector<double> normal(a_.rows() - pivot);
    for (std::size_t i = 0; i < normal.size(); ++i) normal[i] = a_(pivot + i, column);
    // Away from zero: the difference of two close numbers would lose all digits.
    normal[0] += normal[0] < 0 ? -rest : rest;
    double squared = 0;
    for (const double v : normal) squared += v * v;
    for (std::size_t other = column; other < a_.columns(); ++other) {
      double dot = 0;
      for (std::size_t i = 0; i < normal.size(); ++i) dot += normal[i] * a_(pivot + i, other);
      for (std::size_t i = 0; i < normal.size(); ++i)
        a_(pivot + i, other) -= 2 * dot / squared * normal[i];
    }
    double dot = 0;
    for (std::size_t i = 0; i < normal.size(); ++i) dot += normal[i] * b_[pivot + i];
    for (std::size_t i = 0; i < normal.size(); ++i) b_[pivot + i] -= 2 * dot / squared * normal[i];
    kept_.push_back(column);
  }

  Matrix a_;
  std::vector<double> b_;
  std::vector<std::size_t> kept_;  // columns in order; the i-th one ends at row i
};

/// Solves for the chosen columns alone; the others are zero.
std::vector<double> solve_columns(const Matrix& a, std::span<const double> b,
                                  const std::vector<bool>& chosen) {
  std::vector<std::size_t> columns;
  for (std::size_t column = 0; column < a.columns(); ++column) {
    if (chosen[column]) columns.push_back(column);
  }
  Matrix part(a.rows(), columns.size());
  for (std::size_t row = 0; row < a.rows(); ++row) {
    for (std::size_t i = 0; i < columns.size(); ++i) part(row, i) = a(row, columns[i]);
  }
  const std::vector<double> some = linear_least_squares(part, b);
  std::vector<double> x(a.columns(), 0.0);
  for (std::size_t i = 0; i < columns.size(); ++i) x[columns[i]] = some[i];
  return x;
}

/// The column whose growth from zero would lower the residual most steeply; columns() if none.
/// Slopes are relative to the length of a column, so that units do not matter.
std::size_t steepest(const Matrix& a, std::span<const double> b, std::span<const double> x,
                     const std::vector<bool>& taken) {
  std::vector<double> residual(b.begin(), b.end());
  double scale = 0;
  for (std::size_t row = 0; row < a.rows(); ++row) {
    for (std::size_t column = 0; column < a.columns(); ++column)
      residual[row] -= a(row, column) * x[column];
    scale += b[row] * b[row];
  }
  std::size_t best = a.columns();
  double best_slope = 1e-10 * std::sqrt(scale);
  for (std::size_t column = 0; column < a.columns(); ++column) {
    if (taken[column]) continue;
    double slope = 0;
    double length = 0;
    for (std::size_t row = 0; row < a.rows(); ++row) {
      slope += a(row, column) * residual[row];
      length += a(row, column) * a(row, column);
    }
    if (length > 0 && slope / std::sqrt(length) > best_slope) {
      best = column;
      best_slope = slope / std::sqrt(length);
    }
  }
  return best;
}

/// Moves x towards `goal` as far as nothing turns negative; what hits zero leaves the active set.
void approach(std::vector<double>& x, const std::vector<double>& goal, std::vector<bool>& active) {
  const auto reach = [&](std::size_t i) { return x[i] / (x[i] - goal[i]); };
  double part = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (active[i] && goal[i] <= 0) part = std::min(part, reach(i));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!active[i]) continue;
    const bool leaves = goal[i] <= 0 && reach(i) <= part;
    x[i] = leaves ? 0 : x[i] + part * (goal[i] - x[i]);
    active[i] = !leaves;
  }
}

class Marquardt {
 public:
  explicit Marquardt(const CurveProblem& problem)
      : problem_(problem), now_(problem.points), trial_(problem.points) {}

  CurveFit run() {
    CurveFit fit;
    fit.parameters = problem_.start;
    for (std::size_t i = 0; i < fit.parameters.size(); ++i) clamp(fit.parameters[i], i);
    fit.sum_of_squares = evaluate(fit.parameters, now_);
    while (!fit.converged && fit.steps < problem_.max_steps) {
      ++fit.steps;
      fit.converged = !step(fit);
    }
    return fit;
  }

 private:
  void clamp(double& value, std::size_t parameter) const {
    value = std::clamp(value, problem_.bounds[parameter].low, problem_.bounds[parameter].high);
  }

  double evaluate(std::span<const double> parameters, std::vector<double>& residuals) const {
    problem_.residuals(parameters, residuals);
    double sum = 0;
    for (const double r : residuals) sum += r * r;
    // Outside its range a model may give NaN; infinity is simply a step that is not taken.
    return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
  }

  /// Central differences where the bounds leave room, else one-sided.
  [[nodiscard]] Matrix slopes(const std::vector<double>& at) const {
    Matrix jacobian(problem_.points, at.size());
    std::vector<double> up(problem_.points);
    std::vector<double> down(problem_.points);
    for (std::size_t p = 0; p < at.size(); ++p) {
      const double h = 1e-6 * std::max(std::abs(at[p]), 1e-3);
      std::vector<double> high = at;
      std::vector<double> low = at;
      clamp(high[p] += h, p);
      clamp(low[p] -= h, p);
      const double width = high[p] - low[p];
      if (width <= 0) continue;  // fixed by its bounds
      problem_.residuals(high, up);
      problem_.residuals(low, down);
      for (std::size_t i = 0; i < problem_.points; ++i) jacobian(i, p) = (up[i] - down[i]) / width;
    }
    return jacobian;
  }

  /// Parameters that may move: not those pressed against a bound.
  [[nodiscard]] std::vector<std::size_t> free_ones(const std::vector<double>& at,
                                                   const Matrix& jacobian) const {
    std::vector<std::size_t> free;
    for (std::size_t p = 0; p < at.size(); ++p) {
      double gradient = 0;
      for (std::size_t i = 0; i < problem_.points; ++i) gradient += jacobian(i, p) * now_[i];
      const bool stuck_low = at[p] <= problem_.bounds[p].low && gradient > 0;
      const bool stuck_high = at[p] >= problem_.bounds[p].high && gradient < 0;
      if (!stuck_low && !stuck_high) free.push_back(p);
    }
    return free;
  }

  /// (J'J + damping diag(J'J)) x = -J'r as least squares over J stacked on its damping rows.
  [[nodiscard]] std::vector<double> damped(const Matrix& jacobian,
                                           std::span<const std::size_t> free) const {
    Matrix stacked(problem_.points + free.size(), free.size());
    std::vector<double> target(problem_.points + free.size(), 0.0);
    for (std::size_t i = 0; i < problem_.points; ++i) target[i] = -now_[i];
    for (std::size_t j = 0; j < free.size(); ++j) {
      double length = 0;
      for (std::size_t i = 0; i < problem_.points; ++i) {
        stacked(i, j) = jacobian(i, free[j]);
        length += stacked(i, j) * stacked(i, j);
      }
      stacked(problem_.points + j, j) = std::sqrt(damping_ * std::max(length, 1e-30));
    }
    return linear_least_squares(stacked, target);
  }

  /// One accepted step; false if none is left that is worth it.
  bool step(CurveFit& fit) {
    const Matrix jacobian = slopes(fit.parameters);
    const auto free = free_ones(fit.parameters, jacobian);
    if (free.empty()) return false;
    for (; damping_ < 1e12; damping_ *= 4) {
      const std::vector<double> move = damped(jacobian, free);
      std::vector<double> next = fit.parameters;
      double moved = 0;
      for (std::size_t j = 0; j < free.size(); ++j) {
        double& value = next[free[j]];
        const double before = value;
        clamp(value += move[j], free[j]);
        moved = std::max(moved, std::abs(value - before) / (std::abs(before) + 1e-3));
      }
      if (moved < 1e-12) return false;
      const double sum = evaluate(next, trial_);
      if (!(sum < fit.sum_of_squares)) continue;
      const double gain = (fit.sum_of_squares - sum) / fit.sum_of_squares;
      fit.parameters = std::move(next);
      fit.sum_of_squares = sum;
      now_.swap(trial_);
      // Success means more trust in the linear model; each failure above takes a factor of 4 back.
      damping_ = std::max(damping_ / 8, 1e-12);
      return gain > 1e-13;
    }
    return false;
  }

  const CurveProblem& problem_;
  std::vector<double> now_;
  std::vector<double> trial_;
  double damping_ = 1e-3;
};

}  // namespace

std::vector<double> linear_least_squares(const Matrix& a, std::span<const double> b) {
  BERTH_CHECK(b.size() == a.rows(), "one right-hand side per row");
  return Triangle(a, b).solution();
}

std::vector<double> nonnegative_least_squares(const Matrix& a, std::span<const double> b) {
  BERTH_CHECK(b.size() == a.rows(), "one right-hand side per row");
  std::vector<double> x(a.columns(), 0.0);
  std::vector<bool> active(a.columns(), false);
  // Each round enters one column; the bound only guards against rounding that goes in circles.
  for (std::size_t round = 0; round < 3 * a.columns() + 3; ++round) {
    const std::size_t entering = steepest(a, b, x, active);
    if (entering == a.columns()) break;
    active[entering] = true;
    std::vector<double> goal = solve_columns(a, b, active);
    if (goal[entering] <= 0) break;  // only rounding says that it would help
    const auto negative = [&] {
      for (std::size_t i = 0; i < goal.size(); ++i) {
        if (active[i] && goal[i] <= 0) return true;
      }
      return false;
    };
    while (negative()) {
      approach(x, goal, active);
      goal = solve_columns(a, b, active);
    }
    x = std::move(goal);
  }
  return x;
}

CurveFit fit_curve(const CurveProblem& problem) {
  BERTH_CHECK(problem.bounds.size() == problem.start.size(), "one range per parameter");
  return Marquardt(problem).run();
}

}  // namespace berth
