// The two models of Optimus: what is left to train, from losses, and how fast a job goes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "policies/optimus/loss_fit.h"
#include "policies/optimus/row_triangle.h"
#include "policies/optimus/speed_fit.h"

namespace berth::optimus {
namespace {

RowTriangle::Values fit_line(std::array<double, 3> y) {
  RowTriangle rows(2);
  for (int x = 1; x <= 3; ++x)
    rows.add(std::array<double, 2>{1, static_cast<double>(x)}, y[static_cast<std::size_t>(x - 1)]);
  return rows.nonnegative_solution();
}

TEST(RowTriangle, SolvesWithoutNegatives) {
  const auto line = fit_line({3, 5, 7});
  EXPECT_NEAR(line[0], 1, 1e-12);
  EXPECT_NEAR(line[1], 2, 1e-12);
  const auto falling = fit_line({3, 2, 1});  // unconstrained (4, -1)
  EXPECT_NEAR(falling[0], 2, 1e-12);
  EXPECT_EQ(falling[1], 0);
  const auto below = fit_line({1, 3, 5});  // unconstrained (-1, 2)
  EXPECT_EQ(below[0], 0);
  EXPECT_NEAR(below[1], 11.0 / 7, 1e-12);
}

TEST(RowTriangle, AWeightCountsARowSeveralTimes) {
  RowTriangle weighted(2);
  RowTriangle repeated(2);
  const std::array<double, 2> first{1, 1};
  const std::array<double, 2> second{1, 2};
  const std::array<double, 2> third{1, 4};
  weighted.add(first, 2);
  weighted.add(second, 2.5, 3);
  weighted.add(third, 6);
  repeated.add(first, 2);
  for (int i = 0; i < 3; ++i) repeated.add(second, 2.5);
  repeated.add(third, 6);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(weighted.nonnegative_solution()[i], repeated.nonnegative_solution()[i], 1e-12);
}

TEST(RowTriangle, TakesColumnsThatDependOnEachOther) {
  RowTriangle rows(3);
  for (double x = 1; x <= 4; ++x) rows.add(std::array<double, 3>{x, 2 * x, 1}, 3 * x + 1);
  const auto t = rows.nonnegative_solution();
  for (double x = 1; x <= 4; ++x) EXPECT_NEAR(t[0] * x + t[1] * 2 * x + t[2], 3 * x + 1, 1e-9);
}

const LossModel kCurve{.b0 = 0.1, .b1 = 0.5, .b2 = 0.2};
const std::vector<LossPoint> kPoints{{0, 2.2}, {5, 1.2}, {10, 13.0 / 15}, {15, 0.7}, {45, 0.4}};

TEST(LossFit, FindsTheCurveBehindExactPoints) {
  const auto fit = fit_losses(kPoints);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->b0, 0.1, 1e-9);
  EXPECT_NEAR(fit->b1, 0.5, 1e-9);
  EXPECT_NEAR(fit->b2, 0.2, 1e-9);
}

TEST(LossFit, FindsRandomCurvesOfAnyScale) {
  Rng rng{7};
  for (int round = 0; round < 40; ++round) {
    const double scale = std::pow(10, 4 * rng.uniform() - 2);
    const LossModel truth{.b0 = (0.02 + rng.uniform()) / scale,
                          .b1 = (0.2 + rng.uniform()) / scale,
                          .b2 = rng.uniform() * scale};
    std::vector<LossPoint> points;
    for (int k = 0; k < 30; ++k) points.push_back({k * 1.0, truth.at(k)});
    const auto fit = fit_losses(points);
    ASSERT_TRUE(fit.has_value());
    for (const double k : {0.0, 7.5, 60.0})
      ASSERT_NEAR(fit->at(k) / truth.at(k), 1, 1e-6) << "round " << round << " epoch " << k;
  }
}

TEST(LossFit, ConvergesWhereAnEpochLowersTheLossTooLittle) {
  const auto at = [](double delta) { return converged_epoch(kCurve, 0, {.delta = delta}, 1000); };
  EXPECT_EQ(at(0.01), 17);
  EXPECT_EQ(at(0.005), 26);
  EXPECT_EQ(at(0.001), 63);
  EXPECT_EQ(converged_epoch(kCurve, 0, {.delta = 0.01, .patience = 3}, 1000), 19);
  EXPECT_EQ(converged_epoch(kCurve, 0, {.delta = 0.001}, 40), 40) << "no further than asked";
}

TEST(LossFit, ACurveWithoutAStartTakesTheFirstMeasuredLoss) {
  // l(k) = 10/k: falls by 10/(k(k-1)), which is less than 1 % of 10 from k = 11 on (1/110).
  const LossModel model{.b0 = 0.1, .b1 = 0, .b2 = 0};
  EXPECT_EQ(converged_epoch(model, 10, {.delta = 0.01}, 1000), 11);
}

// Errors of the inverted problem shrink as the floor falls: compared by them, the floor would be 0.
TEST(LossFit, KeepsTheFloorUnderNoise) {
  double sum = 0;
  constexpr int kRounds = 20;
  for (std::uint64_t seed = 1; seed <= kRounds; ++seed) {
    Rng rng{seed};
    std::vector<LossPoint> points;
    for (int k = 0; k < 40; ++k)
      points.push_back({k * 1.0, kCurve.at(k) * (1 + 0.03 * rng.normal())});
    const auto fit = fit_losses(points);
    ASSERT_TRUE(fit.has_value());
    sum += fit->b2;
  }
  EXPECT_NEAR(sum / kRounds, 0.2, 0.06);
}

TEST(LossFit, LatePointsWeighMore) {
  // Two curves in one history: what happened last counts, unless told otherwise.
  std::vector<LossPoint> points;
  for (int k = 0; k < 10; ++k) points.push_back({k * 1.0, kCurve.at(k) * 1.15});
  for (int k = 10; k < 30; ++k) points.push_back({k * 1.0, kCurve.at(k)});
  const auto late = fit_losses(points, {.neighbours = 0});
  const auto even = fit_losses(points, {.neighbours = 0, .favour_late = false});
  ASSERT_TRUE(late && even);
  EXPECT_LT(std::abs(late->at(29) - kCurve.at(29)), std::abs(even->at(29) - kCurve.at(29)));
}

TEST(LossFit, OutliersBecomeTheMeanOfTheirNeighbours) {
  std::vector<LossPoint> points;
  for (int k = 0; k < 12; ++k) points.push_back({k * 1.0, kCurve.at(k)});
  points[6].loss = 5;    // above everything before it
  points[9].loss = 0.1;  // below everything after it
  const auto clean = without_outliers(points, 5);
  for (std::size_t k = 0; k < points.size(); ++k) {
    if (k == 6 || k == 9) continue;
    EXPECT_EQ(clean[k].loss, points[k].loss) << k;
  }
  EXPECT_DOUBLE_EQ(clean[6].loss, (points[5].loss + points[7].loss) / 2);
  EXPECT_DOUBLE_EQ(clean[9].loss, (points[8].loss + points[10].loss) / 2);
}

TEST(LossFit, AnOutlierAtTheEndTakesItsOnlyNeighbour) {
  const auto clean = without_outliers(std::vector<LossPoint>{{0, 3}, {1, 2}, {2, 9}}, 5);
  EXPECT_EQ(clean[2].loss, 2);
  EXPECT_EQ(clean[0].loss, 3) << "a side without neighbours is not tested";
}

TEST(LossFit, ManyPointsAreAveragedInOrder) {
  std::vector<LossPoint> points;
  for (int k = 0; k < 7; ++k) points.push_back({k * 1.0, 10.0 * k});
  const auto means = averaged(points, 3);
  ASSERT_EQ(means.size(), 3U);
  EXPECT_EQ(means[0].epoch, 1);
  EXPECT_EQ(means[1].loss, 40);
  EXPECT_EQ(means[2].epoch, 6) << "the last run is short";
  EXPECT_EQ(averaged(points, 7).size(), 7U);
}

TEST(LossFit, DeclinesWhatNoCurveCanBe) {
  EXPECT_FALSE(fit_losses(std::vector<LossPoint>{{0, 2}, {1, 1}}).has_value());
  EXPECT_FALSE(fit_losses(std::vector<LossPoint>{{0, 2}, {1, 1}, {2, -1}}).has_value());
  EXPECT_FALSE(fit_losses(std::vector<LossPoint>{{0, 0}, {1, 0}, {2, 0}}).has_value());
}

TEST(EpochsLeft, FollowTheCurveThenTheUsualThenTwenty) {
  const ConvergenceRule rule{.delta = 0.01};
  EXPECT_DOUBLE_EQ(epochs_left({.model = kCurve, .usual = 90}, 5, rule), 12);
  EXPECT_DOUBLE_EQ(epochs_left({.usual = 90}, 50, rule), 40);
  EXPECT_DOUBLE_EQ(epochs_left({}, 50, rule), 20);
}

TEST(EpochsLeft, AreWithinOneAndAHundredUnlessDeclared) {
  const ConvergenceRule rule{.delta = 0.01};
  EXPECT_DOUBLE_EQ(epochs_left({.model = kCurve}, 16.5, rule), 1);
  EXPECT_DOUBLE_EQ(epochs_left({.usual = 500}, 3, rule), 100);
  EXPECT_DOUBLE_EQ(epochs_left({.model = kCurve}, 3, {.delta = 1e-9}), 100);
  EXPECT_DOUBLE_EQ(epochs_left({.declared = 500, .model = kCurve}, 3, rule), 497);
}

TEST(EpochsLeft, PastThePredictedEndAreAShareOfWhatIsDone) {
  EXPECT_DOUBLE_EQ(epochs_left({.model = kCurve}, 60, {.delta = 0.01}), 3);  // 5 % of 60
  EXPECT_DOUBLE_EQ(epochs_left({.declared = 200}, 240, {.delta = 0.01}), 12);
}

/// 1/f of the worked example.
double sync_seconds(double p, double w) {
  return 64 / w / 32 + 0.5 + 0.25 * w / p + 0.1 * w + 0.05 * p;
}

TEST(SpeedFit, FindsTheSyncCoefficientsAndPredicts) {
  SpeedModel model(SpeedForm::Sync, 64);
  struct Sample {
    TaskCounts tasks;
    double seconds;
  };
  const std::vector<Sample> samples{{{1, 1}, 2.9},  {{2, 2}, 2.05},   {{4, 4}, 1.85},
                                    {{1, 4}, 2.45}, {{4, 1}, 2.8625}, {{2, 4}, 2.0},
                                    {{8, 8}, 2.2}};
  int distinct = 0;
  for (const auto& [tasks, seconds] : samples) {
    EXPECT_NEAR(sync_seconds(tasks.ps, tasks.workers), seconds, 1e-12);
    EXPECT_EQ(model.is_ready(), distinct++ >= 5) << "five unknowns";
    model.add(tasks, 1 / seconds);
  }
  const std::array<double, 5> truth{1.0 / 32, 0.5, 0.25, 0.1, 0.05};
  for (std::size_t i = 0; i < truth.size(); ++i)
    EXPECT_NEAR(model.coefficients()[i], truth[i], 1e-9);
  EXPECT_NEAR(model.speed({3, 5}), 30.0 / 59, 1e-9);
}

TEST(SpeedFit, FindsAsyncAndAllReduceCoefficients) {
  SpeedModel async(SpeedForm::Async);
  for (const TaskCounts tasks : {TaskCounts{1, 1}, {1, 2}, {2, 1}, {2, 3}, {4, 4}, {3, 8}}) {
    const double w = tasks.workers;
    const double p = tasks.ps;
    async.add(tasks, w / (4 + 1 * w / p + 0.3 * w + 0.1 * p));
  }
  EXPECT_NEAR(async.fitted({5, 7}), 7 / (4 + 7.0 / 5 + 2.1 + 0.5), 1e-9);

  SpeedModel all_reduce(SpeedForm::AllReduce, 256);
  for (const std::int32_t w : {1, 2, 8})
    all_reduce.add({.workers = w}, 1 / (256.0 / w / 100 + 0.2 + 0.01 * w));
  ASSERT_TRUE(all_reduce.is_ready());
  EXPECT_NEAR(all_reduce.speed({.workers = 4}), 1 / (0.64 + 0.2 + 0.04), 1e-9);
}

TEST(SpeedFit, CoefficientsAreNeverNegative) {
  Rng rng{3};
  for (int round = 0; round < 200; ++round) {
    SpeedModel model(round % 2 == 0 ? SpeedForm::Sync : SpeedForm::Async, 128);
    for (int i = 0; i < 12; ++i) {
      const TaskCounts tasks{1 + static_cast<std::int32_t>(rng.below(8)),
                             1 + static_cast<std::int32_t>(rng.below(8))};
      model.add(tasks, 0.01 + rng.uniform());
      for (const double t : model.coefficients()) ASSERT_GE(t, 0);
      ASSERT_TRUE(std::isfinite(model.fitted({3, 3})));
    }
  }
}

TEST(SpeedFit, AMeasuredSpeedGoesBeforeTheFitAndIsAveraged) {
  SpeedModel model(SpeedForm::AllReduce, 64);
  EXPECT_EQ(model.speed({.workers = 2}), 0) << "nothing known";
  model.add({.workers = 2}, 1.0);
  model.add({.workers = 2}, 2.0);
  EXPECT_DOUBLE_EQ(model.speed({.workers = 2}), 1.5);
  EXPECT_FALSE(model.measured({.workers = 3}).has_value());
  EXPECT_FALSE(model.is_ready()) << "the same configuration twice is one";
}

}  // namespace
}  // namespace berth::optimus
