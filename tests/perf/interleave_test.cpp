// The group iteration time of Muri: worked pairs, triples and the quadruple; its bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "perf/interleave.h"

namespace berth {
namespace {

// storage, cpu, gpu, net
constexpr StageTimes A{4, 2, 1, 1}, B{1, 1, 4, 2}, C{1, 4, 2, 1}, D{1, 1, 1, 5};

struct Worked {
  std::vector<StageTimes> jobs;
  double seconds;
  double efficiency;
};

TEST(Interleave, WorkedGroups) {
  const std::vector<Worked> rows{{{A, B}, 11, 4.0 / 11},     {{A, C}, 8, .5},
                                 {{A, D}, 9, 4.0 / 9},       {{B, C}, 8, .5},
                                 {{B, D}, 9, 4.0 / 9},       {{C, D}, 11, 4.0 / 11},
                                 {{A, B, C}, 8, .75},        {{A, B, D}, 9, 2.0 / 3},
                                 {{A, C, D}, 9, 2.0 / 3},    {{B, C, D}, 9, 2.0 / 3},
                                 {{A, B, C, D}, 9, 8.0 / 9}, {{A}, 8, .25}};
  for (const Worked& row : rows) {
    const Interleaving found = best_interleaving(row.jobs);
    EXPECT_EQ(found.seconds, row.seconds);
    EXPECT_NEAR(found.efficiency, row.efficiency, 1e-12);
    EXPECT_EQ(found.jobs, row.jobs.size());
  }
}

TEST(Interleave, MembersOfAPairRunAtTheirShareOfTheRound) {
  const std::vector<StageTimes> pair{A, B};
  const double seconds = best_interleaving(pair).seconds;
  EXPECT_NEAR(iteration_of(A) / seconds, 8.0 / 11, 1e-12);
  EXPECT_NEAR(total_speed(pair, seconds), 16.0 / 11, 1e-12);
}

TEST(Interleave, NoEmptyPositionBetweenTwoJobs) {
  // A in position 0 and B in position 2 would need 8, C and D 9; consecutive positions need 11.
  EXPECT_EQ(best_interleaving(std::vector<StageTimes>{A, B}).seconds, 11);
  EXPECT_EQ(best_interleaving(std::vector<StageTimes>{C, D}).seconds, 11);
}

TEST(Interleave, TheOrderFoundGivesTheTimeFound) {
  Rng rng{11};
  for (int round = 0; round < 500; ++round) {
    std::vector<StageTimes> jobs(1 + rng.below(4));
    for (StageTimes& stages : jobs)
      for (double& stage : stages) stage = static_cast<double>(rng.below(10));
    const Interleaving found = best_interleaving(jobs);
    std::vector<StageTimes> ordered;
    for (std::size_t i = 0; i < jobs.size(); ++i) ordered.push_back(jobs[found.order[i]]);
    EXPECT_EQ(interleaved_time(ordered), found.seconds);
    std::vector<std::size_t> index(jobs.size());
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = i;
    do {  // no ordering at all is better
      std::vector<StageTimes> other;
      for (const std::size_t i : index) other.push_back(jobs[i]);
      EXPECT_GE(interleaved_time(other), found.seconds);
    } while (std::ranges::next_permutation(index).found);
    double sum = 0;
    for (const StageTimes& stages : jobs) {
      EXPECT_LE(iteration_of(stages), found.seconds + 1e-9);
      sum += iteration_of(stages);
    }
    EXPECT_LE(found.seconds, sum + 1e-9);
    EXPECT_LE(found.efficiency, 1 + 1e-12);
  }
}

TEST(Interleave, JobsThatWantTheSameResourceGainNothing) {
  const StageTimes gpu_only{0, 0, 6, 0};
  const std::vector<StageTimes> pair{gpu_only, gpu_only};
  const Interleaving found = best_interleaving(pair);
  EXPECT_EQ(found.seconds, 12);
  EXPECT_FALSE(loses_throughput(pair, found.seconds));  // 2 per 12 s is what one makes alone
  EXPECT_TRUE(loses_throughput(pair, found.seconds * kMeasuredOverhead.of(2)));
  EXPECT_LT(total_speed(pair, found.seconds * kMeasuredOverhead.of(2)), 1);
}

TEST(Interleave, AQuickJobIsNotHeldUpByASlowOne) {
  // alone the quick one makes an iteration in 4; together two iterations take at least 40
  const std::vector<StageTimes> pair{{1, 1, 1, 1}, {10, 10, 10, 10}};
  EXPECT_TRUE(loses_throughput(pair, best_interleaving(pair).seconds));
}

}  // namespace
}  // namespace berth
