// Least squares against normal equations, brute force and curves whose parameters are known.
#include "solve/least_squares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "base/rng.h"

namespace berth {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

Matrix random_matrix(Rng& rng, std::size_t rows, std::size_t columns) {
  Matrix a(rows, columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) a(i, j) = rng.normal();
  }
  return a;
}

double squares(const Matrix& a, const std::vector<double>& x, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rows(); ++i) {
    double r = -b[i];
    for (std::size_t j = 0; j < a.columns(); ++j) r += a(i, j) * x[j];
    sum += r * r;
  }
  return sum;
}

// a'(a x - b): zero at the minimum of the unbounded problem.
std::vector<double> gradient(const Matrix& a, const std::vector<double>& x,
                             const std::vector<double>& b) {
  std::vector<double> g(a.columns(), 0.0);
  for (std::size_t i = 0; i < a.rows(); ++i) {
    double r = -b[i];
    for (std::size_t j = 0; j < a.columns(); ++j) r += a(i, j) * x[j];
    for (std::size_t j = 0; j < a.columns(); ++j) g[j] += a(i, j) * r;
  }
  return g;
}

TEST(LinearLeastSquares, FindsTheLineThroughPointsOfALine) {
  Matrix a(4, 2);
  std::vector<double> b;
  for (std::size_t i = 0; i < 4; ++i) {
    a(i, 0) = 1;
    a(i, 1) = static_cast<double>(i);
    b.push_back(3 + 2 * static_cast<double>(i));
  }
  EXPECT_THAT(linear_least_squares(a, b), ElementsAre(DoubleNear(3, 1e-12), DoubleNear(2, 1e-12)));
}

TEST(LinearLeastSquares, LeavesNoSlopeAtTheMinimum) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    const Matrix a = random_matrix(rng, 30, 5);
    std::vector<double> b(30);
    for (double& v : b) v = rng.normal();
    for (const double g : gradient(a, linear_least_squares(a, b), b)) EXPECT_NEAR(g, 0, 1e-10);
  }
}

TEST(LinearLeastSquares, GivesDependentColumnsZero) {
  Matrix a(3, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    a(i, 0) = static_cast<double>(i + 1);
    a(i, 1) = 2 * a(i, 0);  // says the same as the first
    a(i, 2) = 0;            // says nothing
  }
  const std::vector<double> b{2, 4, 6};
  EXPECT_THAT(linear_least_squares(a, b),
              ElementsAre(DoubleNear(2, 1e-12), DoubleNear(0, 1e-12), DoubleNear(0, 1e-12)));
}

TEST(LinearLeastSquares, SolvesFewerPointsThanUnknowns) {
  Matrix a(1, 2);
  a(0, 0) = 2;
  a(0, 1) = 5;
  const std::vector<double> b{6};
  EXPECT_THAT(linear_least_squares(a, b), ElementsAre(DoubleNear(3, 1e-12), DoubleNear(0, 1e-12)));
}

TEST(NonnegativeLeastSquares, EqualsTheBestOfAllSubsetsOfColumns) {
  Rng rng(11);
  for (int round = 0; round < 100; ++round) {
    constexpr std::size_t kColumns = 4;
    const Matrix a = random_matrix(rng, 12, kColumns);
    std::vector<double> b(12);
    for (double& v : b) v = rng.normal();
    double best = squares(a, std::vector<double>(kColumns, 0.0), b);
    for (std::uint32_t mask = 1; mask < (1U << kColumns); ++mask) {
      std::vector<std::size_t> columns;
      for (std::size_t j = 0; j < kColumns; ++j) {
        if ((mask >> j & 1U) != 0) columns.push_back(j);
      }
      Matrix part(12, columns.size());
      for (std::size_t i = 0; i < 12; ++i) {
        for (std::size_t j = 0; j < columns.size(); ++j) part(i, j) = a(i, columns[j]);
      }
      const std::vector<double> some = linear_least_squares(part, b);
      if (std::ranges::any_of(some, [](double v) { return v < 0; })) continue;
      best = std::min(best, squares(part, some, b));
    }
    const std::vector<double> x = nonnegative_least_squares(a, b);
    for (const double v : x) EXPECT_GE(v, 0);
    EXPECT_NEAR(squares(a, x, b), best, 1e-9 * best);
  }
}

TEST(NonnegativeLeastSquares, WorksAtTheScaleOfMicroseconds) {
  Matrix a(3, 2);
  const std::vector<double> b{3e-9, 5e-9, 7e-9};
  for (std::size_t i = 0; i < 3; ++i) {
    a(i, 0) = 1;
    a(i, 1) = static_cast<double>(i);
  }
  EXPECT_THAT(nonnegative_least_squares(a, b),
              ElementsAre(DoubleNear(3e-9, 1e-18), DoubleNear(2e-9, 1e-18)));
}

CurveProblem decay_problem(std::vector<double> start, std::vector<ParameterRange> bounds) {
  CurveProblem problem;
  problem.points = 20;
  problem.start = std::move(start);
  problem.bounds = std::move(bounds);
  problem.residuals = [](std::span<const double> p, std::span<double> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double x = 0.1 * static_cast<double>(i);
      out[i] = p[0] * std::exp(-p[1] * x) - 3 * std::exp(-1.5 * x);
    }
  };
  return problem;
}

TEST(CurveFit, RecoversTheParametersOfACurve) {
  const CurveFit fit = fit_curve(decay_problem({1, 0.1}, {{0, 100}, {0, 100}}));
  EXPECT_TRUE(fit.converged);
  EXPECT_THAT(fit.parameters, ElementsAre(DoubleNear(3, 1e-8), DoubleNear(1.5, 1e-8)));
  EXPECT_LT(fit.sum_of_squares, 1e-18);
}

TEST(CurveFit, StaysWithinItsBoundsAndFindsTheBestThere) {
  const CurveFit fit = fit_curve(decay_problem({1, 0.1}, {{0, 2}, {0, 100}}));
  EXPECT_DOUBLE_EQ(fit.parameters[0], 2);  // would like 3
  // With the first held at 2 the second alone must be a minimum.
  const auto at = [](double rate) {
    CurveProblem problem = decay_problem({2, rate}, {{2, 2}, {rate, rate}});
    return fit_curve(problem).sum_of_squares;
  };
  EXPECT_LT(fit.sum_of_squares, at(fit.parameters[1] * 1.01));
  EXPECT_LT(fit.sum_of_squares, at(fit.parameters[1] * 0.99));
}

TEST(CurveFit, CrossesTheCurvedValleyOfRosenbrock) {
  CurveProblem problem;
  problem.points = 2;
  problem.start = {-1.2, 1};
  problem.bounds = {{-10, 10}, {-10, 10}};
  problem.residuals = [](std::span<const double> p, std::span<double> out) {
    out[0] = 1 - p[0];
    out[1] = 10 * (p[1] - p[0] * p[0]);
  };
  EXPECT_THAT(fit_curve(problem).parameters, ElementsAre(DoubleNear(1, 1e-7), DoubleNear(1, 1e-7)));
}

TEST(CurveFit, AnswersTheSameTwice) {
  const CurveProblem problem = decay_problem({10, 9}, {{0, 100}, {0, 100}});
  EXPECT_EQ(fit_curve(problem).parameters, fit_curve(problem).parameters);
}

}  // namespace
}  // namespace berth
