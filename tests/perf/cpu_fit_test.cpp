#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "perf/cpu_design.h"
#include "perf/cpu_fit.h"

namespace berth {
namespace {

using Points = std::vector<CpuPoint>;
const Points kMeasured{{1, 5}, {2, 38}, {4, 75}, {8, 123}, {16, 160}, {20, 158}};

TEST(CpuCurve, BelowOneCoreIsALineFromZero) {
  const CpuCurve curve{.log_gain = 10, .linear_gain = 4, .plateau = 50, .theta = 9};
  EXPECT_DOUBLE_EQ(curve.feed(0), 0);
  EXPECT_DOUBLE_EQ(curve.feed(0.25), 1);
  EXPECT_DOUBLE_EQ(curve.feed(1), 4);
  EXPECT_NEAR(curve.feed(2), 10 * std::log(2.0) + 8, 1e-12);
}

TEST(CpuCurve, FeedIsCarriedOnPastThetaAndSpeedIsNot) {
  const CpuCurve curve{.log_gain = 10, .linear_gain = 4, .plateau = 50, .theta = 9};
  EXPECT_NEAR(curve.feed(16), 10 * std::log(16.0) + 64, 1e-12);
  EXPECT_DOUBLE_EQ(curve.speed(9), 50);
  EXPECT_DOUBLE_EQ(curve.speed(16), 50);
  EXPECT_DOUBLE_EQ(curve.speed(8.5), 50);  // the branch is above the plateau there: 55.4
}

// Because a rate that falls or vanishes with more cores would starve a job for ever.
TEST(CpuCurve, NeverFallsAndNeverVanishesWhateverTheGains) {
  for (const CpuCurve& curve :
       {CpuCurve{10, 4, 50, 9}, CpuCurve{10, 0, 50, 9}, CpuCurve{10, -1, 12, 9},
        CpuCurve{-3, 4, 50, 15}, CpuCurve{0, 4, 50, 13}}) {
    double before = 0;
    for (double cores = 0.05; cores < 64; cores += 0.05) {
      EXPECT_GT(curve.feed(cores), 0) << cores;
      EXPECT_GE(curve.feed(cores), before) << cores;
      before = curve.feed(cores);
    }
  }
  EXPECT_DOUBLE_EQ((CpuCurve{-1, -1, 5, 3}).feed(4), 0);
}

TEST(CpuFit, FindsGapGainsAndSweetPointOfTheWorkedExample) {
  const auto fit = fit_cpu_curve(kMeasured);
  ASSERT_TRUE(fit.has_value());
  const std::vector<double> sse{11378.8, 4754.0, 866.2, 2.2059, 52.2029};
  ASSERT_EQ(fit->gaps.size(), sse.size());
  for (std::size_t i = 0; i < sse.size(); ++i)
    EXPECT_NEAR(fit->gaps[i].sse, sse[i], i < 3 ? 0.05 : 5e-5) << "gap " << i;
  EXPECT_NEAR(fit->curve.log_gain, 39.6741, 5e-5);
  EXPECT_NEAR(fit->curve.linear_gain, 5.0588, 5e-5);
  EXPECT_DOUBLE_EQ(fit->curve.plateau, 159.0);
  EXPECT_EQ(fit->curve.theta, 12);
  EXPECT_NEAR(fit->curve.feed(11), 150.781, 5e-4);
  EXPECT_NEAR(fit->curve.feed(12), 159.292, 5e-4);
  EXPECT_DOUBLE_EQ(fit->gap.low, 8);
  EXPECT_DOUBLE_EQ(fit->gap.high, 16);
}

TEST(CpuFit, RepeatedPointsAreAveragedAndOrderDoesNotMatter) {
  const Points twice{{16, 161}, {20, 158}, {1, 4}, {8, 123}, {2, 38}, {16, 159}, {4, 75}, {1, 6}};
  const auto once = fit_cpu_curve(kMeasured);
  const auto fit = fit_cpu_curve(twice);
  ASSERT_TRUE(fit.has_value());
  EXPECT_DOUBLE_EQ(fit->sse, once->sse);
  EXPECT_EQ(fit->curve, once->curve);
}

TEST(CpuFit, APlateauFromTheFirstCoreHasThetaOne) {
  const auto fit = fit_cpu_curve(Points{{1, 50}, {4, 50}, {24, 50}});
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->curve.theta, 1);
  EXPECT_DOUBLE_EQ(fit->curve.speed(1), 50);
}

TEST(CpuFit, ACurveThatStillRisesAtTheLastPointHasItsSweetPointThere) {
  const auto fit = fit_cpu_curve(Points{{1, 1}, {4, 6}, {12, 15}, {24, 40}});
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->curve.theta, 24);
}

// ln 2 / 2 = ln 4 / 4: the two terms cannot be told apart from these points.
TEST(CpuFit, PointsThatCannotTellTheTermsApartGiveALine) {
  const auto fit = fit_cpu_curve(Points{{2, 20}, {4, 40}, {16, 100}});
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->curve.linear_gain, 10, 1e-9);
  EXPECT_EQ(fit->curve.log_gain, 0);
  EXPECT_EQ(fit->curve.theta, 10);
}

TEST(CpuFit, AConvexStartIsRefittedAsALine) {
  const auto fit = fit_cpu_curve(Points{{1, 10}, {4, 30}, {8, 160}, {16, 160}});
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->curve.log_gain, 0);
  // P0 would be (30 - 4 * 10) / ln 4 < 0; e/c over C < 8 is (10 + 120) / 17
  EXPECT_NEAR(fit->curve.linear_gain, 130.0 / 17, 1e-9);
}

TEST(CpuFit, AFallingBranchIsRefittedAsALogarithm) {
  // Below 24: falls from 8 to 12 cores, so that P1 < 0 with the peak inside.
  const auto fit = fit_cpu_curve(Points{{2, 30}, {8, 60}, {12, 52}, {24, 90}});
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->curve.theta, 24);
  EXPECT_EQ(fit->curve.linear_gain, 0);
  const double l2 = std::log(2.0), l8 = std::log(8.0), l12 = std::log(12.0);
  EXPECT_NEAR(fit->curve.log_gain, (30 * l2 + 60 * l8 + 52 * l12) / (l2 * l2 + l8 * l8 + l12 * l12),
              1e-9);
}

TEST(CpuFit, RelativeWeightsFollowTheSlowPoints) {
  // One bad fast point: with weights 1/S^2 it pulls the low branch less than with equal weights.
  const Points points{{1, 5}, {2, 17}, {4, 34}, {8, 75}, {16, 80}, {20, 80}};
  const auto equal = fit_cpu_curve(points);
  const auto relative = fit_cpu_curve(points, {.weights = FitWeights::Relative});
  ASSERT_TRUE(equal.has_value());
  ASSERT_TRUE(relative.has_value());
  EXPECT_LT(std::abs(relative->curve.feed(1) - 5), std::abs(equal->curve.feed(1) - 5));
}

TEST(CpuFit, RefusesWhatIsNoMeasurement) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const std::vector<Points> bad{{},
                                {{4, 10}},
                                {{4, 10}, {4, 11}},
                                {{0, 10}, {4, 11}},
                                {{-1, 10}, {4, 11}},
                                {{1, -3}, {4, 11}},
                                {{1, 0}, {4, 11}},
                                {{nan, 10}, {4, 11}},
                                {{1, nan}, {4, 11}},
                                {{infinite, 10}, {4, 11}},
                                {{1, 10}, {4, infinite}}};
  for (const Points& points : bad) {
    const auto fit = fit_cpu_curve(points);
    ASSERT_FALSE(fit.has_value());
    EXPECT_FALSE(fit.error().text().empty());
  }
  EXPECT_NE(fit_cpu_curve(bad[5]).error().text().find("CPU point 1"), std::string::npos);
}

TEST(CpuFit, AdmissibleForRandomMeasurements) {
  Rng rng{7};
  for (int round = 0; round < 2000; ++round) {
    Points points;
    const auto count = 2 + rng.below(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      points.push_back({static_cast<double>(1 + rng.below(24)), 1 + 200 * rng.uniform()});
    }
    const auto fit = fit_cpu_curve(points);
    if (!fit) continue;  // all on one core count
    double before = 0;
    for (int cores = 1; cores <= 32; ++cores) {
      const double speed = fit->curve.speed(cores);
      ASSERT_TRUE(std::isfinite(speed) && speed > 0 && speed <= fit->curve.plateau);
      ASSERT_GE(speed, before);
      before = speed;
    }
    for (const ThetaGap& gap : fit->gaps) ASSERT_LE(fit->sse, gap.sse);
  }
}

TEST(CpuDesign, DOptimalDesignsOfTheWorkedExample) {
  const auto pair20 = d_optimal_design(2, 20);
  ASSERT_TRUE(pair20.has_value());
  EXPECT_EQ(pair20->cores, (std::vector<std::int32_t>{7, 20}));
  EXPECT_NEAR(pair20->value, 322.1335, 5e-5);
  EXPECT_NEAR(d_criterion(std::vector<std::int32_t>{6, 20}), 319.008, 5e-4);
  const auto pair11 = d_optimal_design(2, 11);
  EXPECT_EQ(pair11->cores, (std::vector<std::int32_t>{5, 11}));
  EXPECT_NEAR(pair11->value, 32.6537, 5e-5);
  const auto triple11 = d_optimal_design(3, 11);
  EXPECT_EQ(triple11->cores, (std::vector<std::int32_t>{4, 5, 11}));
  EXPECT_NEAR(triple11->value, 64.9065, 5e-5);
}

TEST(CpuDesign, BayesianDesignsFor24Cores) {
  const std::vector<std::vector<std::int32_t>> cores{{1, 4, 24}, {1, 4, 13, 24}, {1, 3, 8, 15, 24}};
  const std::vector<double> values{-0.2330, 1.7984, 2.8051};
  for (std::int32_t k = 3; k <= 5; ++k) {
    const auto design = bayesian_design(k, 24);
    ASSERT_TRUE(design.has_value());
    EXPECT_EQ(design->cores, cores[static_cast<std::size_t>(k - 3)]);
    EXPECT_NEAR(design->value, values[static_cast<std::size_t>(k - 3)], 5e-5);
  }
}

/// The definition, theta by theta.
double literal_criterion(std::span<const std::int32_t> cores, std::int32_t max_cores) {
  double sum = 0;
  for (std::int32_t theta = 2; theta <= max_cores; ++theta) {
    double a = 1e-3, b = 0, c = 1e-3, above = 1e-3;
    for (const double point : cores) {
      if (point >= theta) {
        ++above;
        continue;
      }
      a += std::log(point) * std::log(point);
      b += std::log(point) * point;
      c += point * point;
    }
    sum += std::log(a * c - b * b) + std::log(above);
  }
  return sum / (max_cores - 1);
}

TEST(CpuDesign, TheCriterionIsTheMeanOverTheta) {
  for (const std::vector<std::int32_t>& cores :
       {std::vector<std::int32_t>{1, 4, 24}, {2, 3}, {5, 9, 11, 20}, {3, 8, 17}}) {
    EXPECT_NEAR(bayesian_criterion(cores, 24), literal_criterion(cores, 24), 1e-9);
  }
}

// Because machines have more cores than an exhaustive search over five points can bear.
TEST(CpuDesign, ManyCoresGiveADesignThatNoSingleMoveImproves) {
  const auto design = bayesian_design(5, 128);
  ASSERT_TRUE(design.has_value());
  EXPECT_EQ(design->cores.back(), 128);
  for (std::size_t i = 0; i < design->cores.size(); ++i) {
    auto moved = design->cores;
    const std::int32_t low = i == 0 ? 1 : moved[i - 1] + 1;
    const std::int32_t high = i + 1 == moved.size() ? 128 : moved[i + 1] - 1;
    for (moved[i] = low; moved[i] <= high; ++moved[i])
      EXPECT_LE(bayesian_criterion(moved, 128), design->value + 1e-9);
  }
}

TEST(CpuDesign, RefusesDesignsThatDoNotExist) {
  EXPECT_FALSE(bayesian_design(1, 24).has_value());
  EXPECT_FALSE(bayesian_design(6, 24).has_value());
  EXPECT_FALSE(bayesian_design(4, 3).has_value());
  EXPECT_FALSE(d_optimal_design(2, 100'000).has_value());
}

TEST(CpuProfiler, MeasuresFromTheMostCoresAndThenTheSweetPoint) {
  DesignTable table;
  const auto design = table.design(4, 24);
  ASSERT_TRUE(design.has_value());
  const CpuCurve truth{.log_gain = 40, .linear_gain = 5, .plateau = 141, .theta = 10};
  CpuProfiler profiler{*design};
  std::vector<std::int32_t> asked;
  while (const auto cores = profiler.next()) {
    asked.push_back(*cores);
    ASSERT_TRUE(profiler.measured(truth.speed(*cores)).has_value());
  }
  // The gap (4, 13] is wide, so the sweet point itself is measured once; then it is settled.
  EXPECT_EQ(asked, (std::vector<std::int32_t>{24, 13, 4, 1, 10}));
  const auto fit = profiler.fit();
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->curve.theta, 10);
  EXPECT_NEAR(fit->curve.log_gain, 40, 1e-9);
  EXPECT_FALSE(profiler.measured(1).has_value());
}

TEST(CpuProfiler, AFreshAndGoodCurveIsNotProfiledAgain) {
  EXPECT_FALSE(is_worth_profiling(std::chrono::hours{24}, 0.05));
  EXPECT_TRUE(is_worth_profiling(std::chrono::hours{24 * 8}, 0.05));
  EXPECT_TRUE(is_worth_profiling(std::chrono::hours{24}, 0.2));
}

}  // namespace
}  // namespace berth
