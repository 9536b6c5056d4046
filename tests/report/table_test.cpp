#include "report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/recorded_run.h"

namespace berth::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<RunData> two_runs() {
  std::vector<RunData> runs;
  for (const char* policy : {"fifo", "srtf"})
    runs.push_back(recorded({.policy = policy, .cluster = "1x4", .jobs = t6()})->analysed());
  return runs;
}

TEST(ComparisonTable, HasARowPerPolicyAndTheRatioToTheBaseline) {
  const std::string table = comparison_table(two_runs(), "fifo");
  EXPECT_THAT(table, HasSubstr("avg JCT (s)"));
  EXPECT_THAT(table, HasSubstr("vs fifo"));
  EXPECT_THAT(table, HasSubstr("1.00x"));
  EXPECT_THAT(table, HasSubstr("14.50"));  // srtf: 87 / 6
  EXPECT_THAT(table, HasSubstr("0.72x"));  // 14.5 / 20 = 0.725, which prints as 0.72
  EXPECT_THAT(table, HasSubstr("70.45"));  // per cent utilisation
}

TEST(ComparisonTable, SeedsBringAPlusMinus) {
  std::vector<RunData> runs = two_runs();
  EXPECT_THAT(comparison_table(runs, std::nullopt), Not(HasSubstr("±")));
  combine_seeds(runs[0], {runs[0].summary, runs[0].summary});
  EXPECT_THAT(comparison_table(runs, std::nullopt), HasSubstr("20 ± 0"));
}

TEST(ComparisonTable, PicksAUnitPeopleRead) {
  std::vector<RunData> runs = two_runs();
  for (RunData& run : runs) run.summary.avg_jct = 36000;
  EXPECT_THAT(comparison_table(runs, std::nullopt), HasSubstr("avg JCT (h)"));
}

TEST(ComparisonCsv, HasEveryMetricAndIntervalsWithSeeds) {
  std::vector<RunData> runs = two_runs();
  const std::string plain = comparison_csv(runs);
  for (const Metric& metric : metrics())
    EXPECT_THAT(plain, HasSubstr("," + std::string(metric.name)));
  EXPECT_THAT(plain, Not(HasSubstr("avg_jct_low")));
  combine_seeds(runs[0], {runs[0].summary, runs[0].summary});
  EXPECT_THAT(comparison_csv(runs), HasSubstr("avg_jct_low,avg_jct_high"));
}

TEST(SummaryTable, NamesTheMainNumbers) {
  const std::string table = summary_table(two_runs()[0].summary);
  EXPECT_THAT(table, HasSubstr("avg_jct"));
  EXPECT_THAT(table, HasSubstr("70.45"));
}

}  // namespace
}  // namespace berth::test
