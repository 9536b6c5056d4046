// AntMan's control of opportunistic jobs: the rate steps, where they settle, memory on the host.
#include <gtest/gtest.h>

#include "perf/opportunistic.h"
#include "support/opportunistic_control.h"

namespace berth {
namespace {

TEST(Opportunistic, HalvesWhenTheGuaranteedJobIsSlowAndCreepsUpOtherwise) {
  double rate = 1;
  const std::vector<double> seen{106, 106, 104, 101, 101, 100, 104};  // ms against 100 ms alone
  const std::vector<double> expected{0.5, 0.25, 0.125, 0.225, 0.325, 0.425, 0.2125};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    rate = next_rate(rate, seen[i], 100, {});
    EXPECT_NEAR(rate, expected[i], 1e-12) << "step " << i;
  }
  EXPECT_DOUBLE_EQ(next_rate(0.06, 110, 100, {}), 0.05) << "never below the least rate";
  EXPECT_DOUBLE_EQ(next_rate(0.95, 100, 100, {}), 1);
  EXPECT_DOUBLE_EQ(next_rate(0.5, 102, 100, {}), 0.6) << "2 % is within the tolerance";
}

TEST(Opportunistic, SettlesAtTheLargestStepWithinTolerance) {
  const Interference quiet{.bandwidth_term = 0};
  EXPECT_DOUBLE_EQ(settled_rate(0.7, 0.6, quiet), 0.5);  // 0.7 + r 0.6 <= 1.02
  EXPECT_DOUBLE_EQ(opportunistic_speed(0.5, 0.7, 0.6), 0.25);
  const Interference noisy{.bandwidth_term = 0.1};
  EXPECT_NEAR(settled_rate(0.7, 0.6, noisy), 0.3, 1e-12);
  EXPECT_NEAR(guaranteed_slowdown(0.7, 0.18, noisy), 1.018, 1e-12);
  EXPECT_NEAR(guaranteed_slowdown(0.7, 0.24, noisy), 1.024, 1e-12);
  EXPECT_NEAR(opportunistic_speed(0.3, 0.7, 0.6), 0.15, 1e-12);
}

TEST(Opportunistic, FallsToTheLeastRateAndThenPauses) {
  const Interference model{.bandwidth_term = 0.1};
  EXPECT_DOUBLE_EQ(settled_rate(0.99, 0.5, model), 0.05);  // 0.99 + 0.025 = 1.015, x 1.0025
  EXPECT_DOUBLE_EQ(settled_rate(1, 0.8, model), 0);        // 1.04 at the least rate
  EXPECT_DOUBLE_EQ(settled_rate(0.2, 0.3, {.bandwidth_term = 0.1, .tolerance = 0}), 0);
  EXPECT_DOUBLE_EQ(settled_rate(0.2, 0.3, {.bandwidth_term = 0, .tolerance = 0}), 1);
}

TEST(Opportunistic, SomeKernelsSlipInEvenBesideAFullDevice) {
  EXPECT_DOUBLE_EQ(opportunistic_speed(1, 1, 0.5), 0.02);
  EXPECT_DOUBLE_EQ(opportunistic_speed(1, 0, 0.5), 1);
}

TEST(Opportunistic, WhatDoesNotFitGoesOverTheBus) {
  constexpr double kGb = 1e9;
  const std::vector<double> working_set{7 * kGb};
  const auto factor = [&](double guaranteed_gb) {
    const double limit = memory_limits((16 - guaranteed_gb - 0.5) * kGb, working_set).front();
    return overflow_factor(working_set.front() - limit, 0.5, {});
  };
  EXPECT_NEAR(factor(10), 1.5, 1e-12);          // limit 5.5, overflow 1.5
  EXPECT_NEAR(factor(12), 1 + 7.0 / 6, 1e-12);  // limit 3.5
  EXPECT_NEAR(memory_limits(0.5 * kGb, working_set).front() / working_set.front(), 0.0714, 1e-4);
  EXPECT_DOUBLE_EQ(factor(1), 1) << "everything fits";
}

TEST(Opportunistic, SharesMemoryInProportionToWorkingSets) {
  const std::vector<double> sets{6, 2};
  EXPECT_EQ(memory_limits(4, sets), (std::vector<double>{3, 1}));
  EXPECT_EQ(memory_limits(-1, sets), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace berth
