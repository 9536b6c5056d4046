#include "metrics/distribution.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Quantile, LiesLinearlyBetweenNeighboursAsNumpyDoes) {
  const std::vector<double> values{10, 13, 19, 20, 28, 30};
  EXPECT_DOUBLE_EQ(*quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(*quantile(values, 0.5), 19.5);   // position 2.5
  EXPECT_DOUBLE_EQ(*quantile(values, 0.95), 29.5);  // position 4.75: 28 + 0.75 x 2
  EXPECT_DOUBLE_EQ(*quantile(values, 0.99), 29.9);  // position 4.95
  EXPECT_DOUBLE_EQ(*quantile(values, 1), 30);
}

TEST(Quantile, OfNothingIsNothingAndOfOneIsThatOne) {
  EXPECT_FALSE(quantile({}, 0.5));
  const std::vector<double> one{7};
  EXPECT_DOUBLE_EQ(*quantile(one, 0.99), 7);
}

TEST(Jain, IsOneForEqualsAndOneOverNForAMonopoly) {
  EXPECT_DOUBLE_EQ(*jain_index(std::vector<double>{2, 2, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(*jain_index(std::vector<double>{5, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(*jain_index(std::vector<double>{1, 3}), 16.0 / 20.0);  // (1+3)^2 / (2 x (1+9))
  EXPECT_FALSE(jain_index({}));
}

TEST(CdfOf, FewValuesAreAllThere) {
  const std::vector<double> values{1, 1, 4, 9};
  const Cdf cdf = cdf_of(values);
  EXPECT_EQ(cdf.x, values);
  EXPECT_EQ(cdf.p, (std::vector<double>{0.25, 0.5, 0.75, 1}));
}

TEST(CdfOf, ManyValuesAreThinnedButTheTailsStay) {
  std::vector<double> values(1'000'000);
  std::iota(values.begin(), values.end(), 1.0);
  const Cdf cdf = cdf_of(values);
  ASSERT_LE(cdf.x.size(), kMaxCdfPoints);
  ASSERT_GE(cdf.x.size(), 500U);
  EXPECT_EQ(cdf.x.front(), 1);  // the smallest and the largest are never lost
  EXPECT_EQ(cdf.x.back(), 1e6);
  EXPECT_EQ(cdf.p.back(), 1);
  EXPECT_EQ(cdf.x[cdf.x.size() - 2], 1e6 - 1);  // single ranks at the very end
  for (std::size_t i = 0; i < cdf.x.size(); ++i) {
    ASSERT_DOUBLE_EQ(cdf.p[i], cdf.x[i] / 1e6);  // each point is exact
    if (i > 0) {
      ASSERT_LT(cdf.p[i] - cdf.p[i - 1], 0.0025);  // and none is far from the next
    }
  }
}

TEST(StudentT, MatchesThePrintedTableAndGoesToTheNormalLaw) {
  EXPECT_NEAR(student_t_975(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t_975(4), 2.776, 1e-3);
  EXPECT_NEAR(student_t_975(30), 2.042, 1e-3);
  EXPECT_NEAR(student_t_975(31), 2.0395, 2e-4);  // the expansion takes over
  EXPECT_NEAR(student_t_975(60), 2.0003, 2e-4);
  EXPECT_NEAR(student_t_975(1'000'000), 1.96, 1e-4);
}

TEST(Confidence, IsMeanPlusMinusTTimesStandardError) {
  // mean 4, deviations -2, 0, 2: s^2 = 8 / 2 = 4, s = 2; t(2) = 4.3027; 4.3027 x 2 / sqrt(3)
  const auto interval = confidence_95(std::vector<double>{2, 4, 6});
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->mean, 4);
  EXPECT_NEAR(interval->half_width, 4.3027 * 2 / std::sqrt(3.0), 1e-9);
  EXPECT_FALSE(
      confidence_95(std::vector<double>{2}));  // because one value says nothing about spread
}

}  // namespace
}  // namespace berth
