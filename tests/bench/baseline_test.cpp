// ./run bench --check: what counts as slower, and what the file of costs looks like.
#include "baseline.h"

#include <gtest/gtest.h>

#include <deque>

namespace berth::bench {
namespace {

const BaselineRow kRow{.each = {.policy = "fifo", .cluster = "321x2,231x8", .jobs = 1000},
                       .cost = 2};

/// Measures these costs one after the other.
CostOf these(std::deque<double> costs) {
  return [costs](const Case&) mutable -> Result<double> {
    if (costs.empty()) return tl::unexpected(Error{"measured once too often"});
    const double cost = costs.front();
    costs.pop_front();
    return cost;
  };
}

TEST(Baseline, ACaseMayTakeThreeTenthsLonger) {
  EXPECT_FALSE(compare(kRow, these({2.59})).is_too_slow());
  EXPECT_TRUE(compare(kRow, these({2.61, 2.61, 2.61, 2.61})).is_too_slow());
}

TEST(Baseline, ADoctoredFileIsNoticed) {
  BaselineRow doctored = kRow;
  doctored.cost /= 1.5;
  EXPECT_FALSE(compare(kRow, these({2})).is_too_slow());
  EXPECT_TRUE(compare(doctored, these({2, 2, 2, 2})).is_too_slow());
}

// because other work on the machine slows single measurements down, and never up
TEST(Baseline, TheBestOfFourDecides) {
  const Compared compared = compare(kRow, these({5, 4, 3, 2.2}));
  EXPECT_FALSE(compared.is_too_slow());
  EXPECT_DOUBLE_EQ(compared.times(), 1.1);
}

TEST(Baseline, ACaseThatNoLongerRunsFails) {
  const Compared compared =
      compare(kRow, [](const Case&) -> Result<double> { return tl::unexpected(Error{"no"}); });
  EXPECT_TRUE(compared.is_too_slow());
  EXPECT_EQ(compared.error, "no");
}

TEST(Baseline, TheFileIsReadAsItWasWritten) {
  const std::vector<BaselineRow> rows{
      kRow,
      {.each = {.policy = "sjf", .cluster = "32x8", .jobs = 9, .load = 1.3, .placement = "fgd"},
       .cost = 0.25}};
  const auto read = parse_baseline(to_csv(rows), "b.csv");
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].each.cluster, "321x2,231x8");
  EXPECT_EQ((*read)[1].each.placement, "fgd");
  EXPECT_EQ((*read)[1].each.load, 1.3);
  EXPECT_EQ((*read)[1].cost, 0.25);
}

TEST(Baseline, ABrokenFileSaysWhere) {
  const std::string header = "policy,placement,cluster,jobs,load,cost\n";
  EXPECT_EQ(parse_baseline(header + "fifo,best-fit,32x8,10,0.9\n", "b.csv").error().text(),
            "b.csv:2: no row of policy,placement,cluster,jobs,load,cost");
  EXPECT_FALSE(parse_baseline(header + "fifo,best-fit,32x8,10,0.9,0\n", "b.csv"));
  EXPECT_FALSE(parse_baseline(header, "b.csv")) << "no rows";
  EXPECT_FALSE(parse_baseline("jobs\n", "b.csv"));
}

}  // namespace
}  // namespace berth::bench
