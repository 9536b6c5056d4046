// The worked examples of the baseline policies: exact finish times on small traces.
#include <gtest/gtest.h>

#include "support/run.h"

namespace berth::test {
namespace {

struct T6Row {
  std::string policy;
  Settings settings;
  std::vector<double> finish;
  double sum_jct;
  double makespan;
  int preemptions;
};

class OnT6 : public ::testing::TestWithParam<T6Row> {};

TEST_P(OnT6, FinishesEveryJobAtTheWorkedTime) {
  const T6Row& row = GetParam();
  const Outcome outcome =
      run({.policy = row.policy, .settings = row.settings, .cluster = "1x4", .jobs = t6()});
  EXPECT_EQ(outcome.finish, row.finish);
  EXPECT_EQ(outcome.sum_jct, row.sum_jct);
  EXPECT_EQ(outcome.makespan, row.makespan);
  EXPECT_EQ(outcome.total_preemptions, row.preemptions);
}

INSTANTIATE_TEST_SUITE_P(
    Baselines, OnT6,
    ::testing::Values(T6Row{"fifo", {}, {10, 14, 21, 33, 32, 25}, 120, 33, 0},
                      T6Row{"fifo-skip", {}, {10, 14, 28, 15, 21, 18}, 91, 28, 0},
                      T6Row{"fifo", {{"pass", "skip"}}, {10, 14, 28, 15, 21, 18}, 91, 28, 0},
                      T6Row{"easy", {}, {10, 14, 22, 15, 33, 14}, 93, 33, 0},
                      T6Row{"sjf", {{"pass", "strict"}}, {10, 14, 21, 33, 32, 14}, 109, 33, 0},
                      T6Row{"sjf", {}, {10, 14, 32, 15, 25, 14}, 95, 32, 0},
                      T6Row{"smallest", {}, {10, 18, 28, 15, 21, 14}, 91, 28, 0},
                      T6Row{"smallest", {{"pass", "strict"}}, {10, 18, 28, 15, 21, 14}, 91, 28, 0},
                      T6Row{"srtf", {}, {14, 5, 31, 19, 24, 9}, 87, 31, 3},
                      T6Row{"srsf", {}, {24, 5, 31, 15, 15, 9}, 84, 31, 1},
                      T6Row{"las", {{"quantum", "1"}}, {24, 12, 20, 27, 26, 12}, 106, 27, 30},
                      T6Row{"las-2d", {{"quantum", "1"}}, {29, 11, 28, 19, 19, 9}, 100, 29, 24}),
    [](const auto& row) {
      std::string name = row.param.policy;
      for (const auto& [key, value] : row.param.settings) name += "_" + key + "_" + value;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

}  // namespace
}  // namespace berth::test
