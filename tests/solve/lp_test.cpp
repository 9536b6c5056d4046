#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "solve/lp.h"

namespace berth {
namespace {

using Terms = std::vector<LinearTerm>;

// maximise 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: the textbook's 36 at (2, 6).
struct Textbook {
  LinearProgram program{Sense::Maximise};
  ColumnId x = program.add_column(3);
  ColumnId y = program.add_column(5);
  RowId plant1 = program.add_row(Terms{{x, 1}}, Bounds::at_most(4));
  RowId plant2 = program.add_row(Terms{{y, 2}}, Bounds::at_most(12));
  RowId plant3 = program.add_row(Terms{{x, 3}, {y, 2}}, Bounds::at_most(18));
};

TEST(LinearProgram, SolvesTheTextbookExampleWithItsPrices) {
  Textbook book;
  const Solution solution = book.program.solve();
  ASSERT_EQ(solution.status, SolveStatus::Optimal);
  EXPECT_NEAR(solution.objective, 36, 1e-9);
  EXPECT_NEAR(solution[book.x], 2, 1e-9);
  EXPECT_NEAR(solution[book.y], 6, 1e-9);
  // One more hour in plant 2 is worth 1.5, in plant 3 it is worth 1, in plant 1 nothing.
  ASSERT_EQ(solution.prices.size(), 3U);
  EXPECT_NEAR(solution.prices[0], 0, 1e-9);
  EXPECT_NEAR(solution.prices[1], 1.5, 1e-9);
  EXPECT_NEAR(solution.prices[2], 1, 1e-9);
  EXPECT_EQ(solution.gap(), 0);
}

TEST(LinearProgram, GoesOnAfterEveryKindOfChange) {
  Textbook book;
  ASSERT_EQ(book.program.solve().status, SolveStatus::Optimal);
  book.program.set_bounds(book.plant2, Bounds::at_most(10));  // y <= 5: x = 8/3, 8 + 25
  EXPECT_NEAR(book.program.solve().objective, 33, 1e-9);
  book.program.set_cost(book.x, 10);  // x = 4, y = 3: 40 + 15
  EXPECT_NEAR(book.program.solve().objective, 55, 1e-9);
  book.program.set_bounds(book.x, {0, 1});  // x = 1, y = 5
  EXPECT_NEAR(book.program.solve().objective, 35, 1e-9);
  book.program.set_coefficient(book.plant3, book.y, 5);  // 3 + 5y <= 18: y = 3
  EXPECT_NEAR(book.program.solve().objective, 25, 1e-9);
  const ColumnId z = book.program.add_column(7, {0, 2});  // free of charge: 14 more
  EXPECT_NEAR(book.program.solve().objective, 39, 1e-9);
  book.program.add_row(Terms{{book.x, 1}, {z, 1}}, Bounds::at_most(2));  // x = 0, z = 2: y = 3.6
  // x = 1, z = 1: 10 + 7 + 15 = 32; x = 0, z = 2: 14 + 18 = 32
  EXPECT_NEAR(book.program.solve().objective, 32, 1e-9);
  EXPECT_EQ(book.program.columns(), 3);
  EXPECT_EQ(book.program.rows(), 4);
}

TEST(LinearProgram, SaysInfeasibleAndUnbounded) {
  LinearProgram impossible{Sense::Minimise};
  const ColumnId x = impossible.add_column(1);
  impossible.add_row(Terms{{x, 1}}, Bounds::at_most(1));
  const RowId row = impossible.add_row(Terms{{x, 1}}, Bounds::at_least(2));
  EXPECT_EQ(impossible.solve().status, SolveStatus::Infeasible);
  EXPECT_FALSE(impossible.solve().has_values());
  impossible.set_bounds(row, Bounds::at_least(0.5));  // and back to life
  EXPECT_NEAR(impossible.solve().objective, 0.5, 1e-9);

  LinearProgram endless{Sense::Maximise};
  const ColumnId a = endless.add_column(1);
  const ColumnId b = endless.add_column(1);
  endless.add_row(Terms{{a, 1}, {b, -1}}, Bounds::at_most(1));
  EXPECT_EQ(endless.solve().status, SolveStatus::Unbounded);
}

// Nothing to choose: the sum of nothing is zero, which the rows allow or not.
TEST(LinearProgram, WithoutColumnsIsSolvedOrInfeasible) {
  for (const bool integer : {false, true}) {
    const auto solve = [&](LinearProgram& program) {
      return integer ? program.solve_integer() : program.solve();
    };
    LinearProgram program{Sense::Maximise};
    Solution nothing = solve(program);
    EXPECT_EQ(nothing.status, SolveStatus::Optimal);
    EXPECT_TRUE(nothing.has_values());
    EXPECT_EQ(nothing.objective, 0);
    EXPECT_EQ(nothing.gap(), 0);
    program.add_row({}, Bounds::at_most(4));
    const RowId row = program.add_row({}, Bounds::at_least(1));
    EXPECT_EQ(solve(program).status, SolveStatus::Infeasible);
    EXPECT_FALSE(solve(program).has_values());
    program.set_bounds(row, Bounds::exactly(0));
    nothing = solve(program);
    EXPECT_EQ(nothing.status, SolveStatus::Optimal);
    EXPECT_EQ(nothing.prices, (std::vector<double>{0, 0}));
    const ColumnId x = program.add_column(3, {0, 2});  // and there is something after all
    EXPECT_NEAR(solve(program).objective, 6, 1e-9);
    EXPECT_NEAR(solve(program)[x], 2, 1e-9);
  }
}

TEST(LinearProgram, EqualityRangeAndFreeColumns) {
  LinearProgram program{Sense::Minimise};
  const ColumnId x = program.add_column(1, {-kNoBound, kNoBound});
  const ColumnId y = program.add_column(2, {-5, 5});
  program.add_row(Terms{{x, 1}, {y, 1}}, Bounds::exactly(3));
  program.add_row(Terms{{x, 1}, {y, -1}}, {-4, 6});  // a range
  // x = 3 - y and cost 3 + y: y as small as x - y = 3 - 2y <= 6 lets it be, -1.5
  const Solution solution = program.solve();
  ASSERT_EQ(solution.status, SolveStatus::Optimal);
  EXPECT_NEAR(solution[y], -1.5, 1e-9);
  EXPECT_NEAR(solution.objective, 1.5, 1e-9);
}

TEST(IntegerProgram, SolvesAKnapsack) {
  const std::vector<double> value{60, 100, 120, 75, 40};
  const std::vector<double> weight{10, 20, 30, 17, 9};
  LinearProgram program{Sense::Maximise};
  Terms load;
  for (std::size_t i = 0; i < value.size(); ++i)
    load.push_back({program.add_column(value[i], {0, 1}, ColumnKind::Integer), weight[i]});
  program.add_row(load, Bounds::at_most(50));
  const Solution solution = program.solve_integer();
  ASSERT_EQ(solution.status, SolveStatus::Optimal);
  double best = 0;
  for (unsigned set = 0; set < 32; ++set) {
    double v = 0, w = 0;
    for (unsigned i = 0; i < 5; ++i) {
      v += (set >> i & 1U) != 0 ? value[i] : 0;
      w += (set >> i & 1U) != 0 ? weight[i] : 0;
    }
    if (w <= 50) best = std::max(best, v);
  }
  EXPECT_NEAR(solution.objective, best, 1e-9);
  EXPECT_NEAR(solution.bound, best, 1e-6);
  for (const double x : solution.values) EXPECT_TRUE(x == 0 || x == 1);
}

TEST(IntegerProgram, IsTheOptimumOfRandomProgramsByBruteForce) {
  Rng rng{5};
  for (int round = 0; round < 60; ++round) {
    LinearProgram program{Sense::Maximise};
    std::vector<double> cost;
    std::vector<std::vector<double>> rows(2);
    for (int i = 0; i < 7; ++i) {
      cost.push_back(static_cast<double>(rng.below(20)) - 4);
      program.add_column(cost.back(), {0, 2}, ColumnKind::Integer);
      for (auto& row : rows) row.push_back(static_cast<double>(1 + rng.below(9)));
    }
    for (const auto& row : rows) {
      Terms terms;
      for (std::int32_t i = 0; i < 7; ++i)
        terms.push_back({ColumnId{i}, row[static_cast<std::size_t>(i)]});
      program.add_row(terms, Bounds::at_most(20));
    }
    double best = -1e9;
    for (int code = 0; code < 2187; ++code) {
      double value = 0, used[2] = {0, 0};
      int rest = code;
      for (std::size_t i = 0; i < 7; ++i, rest /= 3) {
        value += cost[i] * (rest % 3);
        for (std::size_t r = 0; r < 2; ++r) used[r] += rows[r][i] * (rest % 3);
      }
      if (used[0] <= 20 && used[1] <= 20) best = std::max(best, value);
    }
    const Solution solution = program.solve_integer();
    ASSERT_EQ(solution.status, SolveStatus::Optimal);
    EXPECT_NEAR(solution.objective, best, 1e-6) << "round " << round;
  }
}

TEST(IntegerProgram, MixesKinds) {
  // minimise 5n + y, y >= 2.5 - n, n whole: n = 0 costs 2.5, n = 1 costs 6.5
  LinearProgram program{Sense::Minimise};
  const ColumnId n = program.add_column(5, {0, 10}, ColumnKind::Integer);
  const ColumnId y = program.add_column(1);
  program.add_row(Terms{{n, 1}, {y, 1}}, Bounds::at_least(2.5));
  EXPECT_NEAR(program.solve_integer().objective, 2.5, 1e-9);
  program.set_cost(n, 0.5);  // three of n, nothing of y: 1.5 = two of n, half a y
  EXPECT_NEAR(program.solve_integer().objective, 1.5, 1e-9);
  EXPECT_NEAR(program.solve().objective, 1.25, 1e-9);  // fractions allowed
}

TEST(IntegerProgram, SaysInfeasibleWhereOnlyFractionsWouldDo) {
  LinearProgram program{Sense::Maximise};
  const ColumnId x = program.add_column(1, {0, 10}, ColumnKind::Integer);
  const ColumnId y = program.add_column(1, {0, 10}, ColumnKind::Integer);
  program.add_row(Terms{{x, 2}, {y, 2}}, Bounds::exactly(3));
  EXPECT_EQ(program.solve().status, SolveStatus::Optimal);
  const Solution solution = program.solve_integer();
  EXPECT_EQ(solution.status, SolveStatus::Infeasible);
  EXPECT_FALSE(solution.has_values());
  LinearProgram endless{Sense::Maximise};
  static_cast<void>(endless.add_column(1, {0, kNoBound}, ColumnKind::Integer));
  EXPECT_EQ(endless.solve_integer().status, SolveStatus::Unbounded);
}

/// Market split: hard for branch and bound at any size.
LinearProgram market_split(std::uint64_t seed) {
  Rng rng{seed};
  LinearProgram program{Sense::Minimise};
  Terms rows[4];
  double totals[4] = {};
  for (int i = 0; i < 30; ++i) {
    const ColumnId x = program.add_column(0, {0, 1}, ColumnKind::Integer);
    for (std::size_t r = 0; r < 4; ++r) {
      rows[r].push_back({x, static_cast<double>(rng.below(100))});
      totals[r] += rows[r].back().coefficient;
    }
  }
  for (std::size_t r = 0; r < 4; ++r) {
    rows[r].push_back({program.add_column(1), 1});
    rows[r].push_back({program.add_column(1), -1});
    program.add_row(rows[r], Bounds::exactly(std::floor(totals[r] / 2)));
  }
  return program;
}

TEST(IntegerProgram, StopsAtItsNodeLimitWithTheBestFoundAndABound) {
  auto program = market_split(3);
  const Solution solution = program.solve_integer({.nodes = 200});
  ASSERT_EQ(solution.status, SolveStatus::Stopped);
  ASSERT_TRUE(solution.has_values());
  EXPECT_GT(solution.objective, 0);
  EXPECT_LE(solution.bound, solution.objective);
  EXPECT_GT(solution.gap(), 0);
  // Same program, same limit, same answer.
  auto again = market_split(3);
  EXPECT_EQ(again.solve_integer({.nodes = 200}).values, solution.values);
}

TEST(IntegerProgram, IsNoWorseThanTheSolutionItWasGiven) {
  auto program = market_split(4);
  const Solution good = program.solve_integer({.nodes = 2000});
  ASSERT_TRUE(good.has_values());
  const Solution again = program.solve_integer({.nodes = 1}, good.values);
  ASSERT_TRUE(again.has_values());
  EXPECT_LE(again.objective, good.objective + 1e-9);
}

TEST(IntegerProgram, StopsAtItsTimeLimit) {
  auto program = market_split(5);
  const Solution solution = program.solve_integer({.seconds = 0.2, .nodes = 1'000'000'000});
  EXPECT_EQ(solution.status, SolveStatus::Stopped);
}

}  // namespace
}  // namespace berth
