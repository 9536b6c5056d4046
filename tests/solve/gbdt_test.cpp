#include "solve/gbdt.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace berth {
namespace {

struct Table {
  std::vector<double> rows;
  std::vector<double> targets;
};

/// y = 3 for x0 = 1, plus x1, plus noise; x2 says nothing.
Table table(std::uint64_t seed, std::size_t size, double noise) {
  Rng rng{seed};
  Table table;
  for (std::size_t i = 0; i < size; ++i) {
    const double x0 = rng.uniform() > 0.5 ? 1 : 0, x1 = rng.uniform(), x2 = rng.uniform();
    table.rows.insert(table.rows.end(), {x0, x1, x2});
    table.targets.push_back(3 * x0 + x1 + noise * rng.normal());
  }
  return table;
}

double error_on(const Gbdt& model, const Table& test) {
  double squares = 0;
  for (std::size_t i = 0; i < test.targets.size(); ++i) {
    const double miss = model.predict(std::span(test.rows).subspan(3 * i, 3)) - test.targets[i];
    squares += miss * miss;
  }
  return std::sqrt(squares / static_cast<double>(test.targets.size()));
}

TEST(Gbdt, LearnsAStepAndASlopeFromRowsItHasNotSeen) {
  const Table train = table(1, 2000, 0.05);
  const Gbdt model = Gbdt::fit(train.rows, 3, train.targets);
  EXPECT_LT(error_on(model, table(2, 500, 0)), 0.05);  // a constant would be 1.53 off
}

TEST(Gbdt, OneSplitIsExact) {
  // Two groups of values: with a rate of 1 one tree of depth 1 is the two means.
  const std::vector<double> rows{0, 0, 0, 1, 1};
  const std::vector<double> targets{1, 2, 3, 10, 20};
  const Gbdt model =
      Gbdt::fit(rows, 1, targets, {.trees = 1, .depth = 1, .rate = 1, .min_leaf = 1});
  EXPECT_DOUBLE_EQ(model.predict(std::vector<double>{0.0}), 2);
  EXPECT_DOUBLE_EQ(model.predict(std::vector<double>{1.0}), 15);
}

TEST(Gbdt, WithoutAnythingToSplitItIsTheMean) {
  const std::vector<double> rows{7, 7, 7};
  const std::vector<double> targets{1, 2, 6};
  const Gbdt model = Gbdt::fit(rows, 1, targets, {.min_leaf = 1});
  EXPECT_EQ(model.trees(), 0U);
  EXPECT_DOUBLE_EQ(model.predict(std::vector<double>{7.0}), 3);
  EXPECT_DOUBLE_EQ(Gbdt::fit({}, 1, {}).predict(std::vector<double>{1.0}), 0);
}

TEST(Gbdt, NoLeafIsSmallerThanAsked) {
  // Ten rows, one of them far away: with leaves of at least three it cannot stand alone.
  std::vector<double> rows, targets;
  for (int i = 0; i < 10; ++i) {
    rows.push_back(i);
    targets.push_back(i == 9 ? 100 : 0);
  }
  const Gbdt model =
      Gbdt::fit(rows, 1, targets, {.trees = 1, .depth = 3, .rate = 1, .min_leaf = 3});
  EXPECT_NEAR(model.predict(std::vector<double>{9.0}), 100.0 / 3, 1e-9);
}

TEST(Gbdt, StoppingEarlyLearnsLessOfWhatIsOnlyNoise) {
  double early = 0, late = 0;  // squared predictions where the truth is zero
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng{seed};
    std::vector<double> rows, targets;
    for (int i = 0; i < 400; ++i) {
      rows.push_back(rng.uniform());
      targets.push_back(rng.normal());
    }
    const Gbdt stopped = Gbdt::fit(rows, 1, targets, {.held_back = 0.25});
    const Gbdt whole = Gbdt::fit(rows, 1, targets);
    EXPECT_LE(stopped.trees(), whole.trees());
    for (double x = 0; x <= 1; x += 0.05) {
      early += std::pow(stopped.predict(std::vector<double>{x}), 2);
      late += std::pow(whole.predict(std::vector<double>{x}), 2);
    }
  }
  EXPECT_LT(early, late / 3);
}

TEST(Gbdt, TheSameRowsGiveTheSameModel) {
  const Table train = table(5, 300, 0.1);
  const Gbdt a = Gbdt::fit(train.rows, 3, train.targets);
  const Gbdt b = Gbdt::fit(train.rows, 3, train.targets);
  for (double x = 0; x <= 1; x += 0.01) {
    const std::vector<double> row{x, 1 - x, 0.5};
    EXPECT_EQ(a.predict(row), b.predict(row));
  }
}

}  // namespace
}  // namespace berth
