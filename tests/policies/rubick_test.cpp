// Execution plans, GPUs by promised speed, and the policy around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/rng.h"
#include "policies/common/restart_factor.h"
#include "policies/rubick/rubick.h"
#include "policies/stress.h"
#include "support/parallel_plan.h"
#include "support/run.h"

namespace berth::rubick {
namespace {

using testing::ElementsAre;

TEST(ParallelPlan, WorkedExample) {
  const ParallelPlan plan{.data = 2, .tensor = 4, .pipeline = 4, .micro_batches = 8};
  EXPECT_EQ(plan.gpus(), 32);
  EXPECT_DOUBLE_EQ(iteration_seconds(plan, {.stage = .1, .handover = .005, .synchronise = .2}),
                   1.255);  // 11 x 0.105 + 0.5 x 0.2
  EXPECT_DOUBLE_EQ(plan.bubbles(), 3.0 / 11);
}

TEST(PlanTable, TheBestPlanForExactlySoManyGpusThatFits) {
  PlanTable table;
  table.add({.gpus = 8, .level = Level::Nvlink, .throughput = 5, .memory_mib = 30000});
  table.add({.gpus = 8, .level = Level::Nvlink, .throughput = 7, .memory_mib = 70000});
  table.add({.gpus = 8, .level = Level::Rack, .throughput = 4, .memory_mib = 30000});
  EXPECT_EQ(table.best(8, Level::Nvlink, 80000), 7);
  EXPECT_EQ(table.best(8, Level::Nvlink, 40000), 5) << "memory must fit";
  EXPECT_EQ(table.best(8, Level::Rack, 80000), 4) << "what was measured closer together is faster";
  EXPECT_EQ(table.best(6, Level::Nvlink, 80000), std::nullopt) << "no product of degrees is 6";
}

const SpeedCurve kA{.gpus = {1, 2, 4, 8}, .speed = {10, 19, 34, 52}};
const SpeedCurve kB{.gpus = {8, 16}, .speed = {15, 26}};

std::vector<std::int32_t> held(const std::vector<Demand>& jobs) {
  std::vector<std::int32_t> gpus;
  for (const Demand& job : jobs) gpus.push_back(job.held());
  return gpus;
}

TEST(Guarantee, IsTheFewestGpusForTheSpeedAskedFor) {
  EXPECT_EQ(kA.gpus[kA.first_reaching(30)], 4);
  EXPECT_EQ(kB.gpus[kB.first_reaching(14)], 8);
  EXPECT_EQ(kA.gpus[kA.first_reaching(99)], 8) << "the fastest if none reaches it";
}

// 16 GPUs: 4 and 8 guaranteed, 4 left: A grows to 8 (slope 0.15), B's next step needs 8.
TEST(Allocate, WorkedExample) {
  std::vector<Demand> jobs{{.curve = &kA, .wanted = 30}, {.curve = &kB, .wanted = 14}};
  EXPECT_EQ(allocate(jobs, 16, Waiting::Strict), 0);
  EXPECT_THAT(held(jobs), ElementsAre(8, 8));
  EXPECT_NEAR(jobs[0].slope(2), 0.15, 1e-12);
}

// A holds 8 and needs 4: B is guaranteed by shrinking it. With 11 GPUs that is not enough, and
// nothing changes.
TEST(Allocate, ShrinksJobsAboveTheirGuaranteeForOneThatWaits) {
  std::vector<Demand> jobs{{.curve = &kA, .wanted = 30, .size = 3}, {.curve = &kB, .wanted = 14}};
  EXPECT_EQ(allocate(jobs, 4, Waiting::Strict), 0);
  EXPECT_THAT(held(jobs), ElementsAre(4, 8));
  jobs[0].size = 3;
  jobs[1].size = kNoSize;
  EXPECT_EQ(allocate(jobs, 3, Waiting::Strict), 3);
  EXPECT_THAT(held(jobs), ElementsAre(8, 0));
}

TEST(Allocate, ShrinksWhoLosesLeastAndNobodyForAJobBeyondItsQuota) {
  const SpeedCurve flat{.gpus = {1, 2}, .speed = {10, 11}};
  const SpeedCurve steep{.gpus = {1, 2}, .speed = {10, 19}};
  const SpeedCurve one{.gpus = {1}, .speed = {1}};
  std::vector<Demand> jobs{{.curve = &steep, .wanted = 10, .size = 1},
                           {.curve = &flat, .wanted = 10, .size = 1},
                           {.curve = &one, .wanted = 1}};
  static_cast<void>(allocate(jobs, 0, Waiting::Strict));
  EXPECT_THAT(held(jobs), ElementsAre(2, 1, 1));
  jobs[1].size = 1;
  jobs[2] = {.curve = &one, .wanted = 1, .within_quota = false};
  static_cast<void>(allocate(jobs, 0, Waiting::Strict));
  EXPECT_THAT(held(jobs), ElementsAre(2, 2, 0));
}

TEST(Allocate, MovesGpusOnlyForClearlyMore) {
  const SpeedCurve loser{.gpus = {1, 2}, .speed = {10, 11}};  // 0.1 a GPU
  const auto gainer = [](double gain) {
    return SpeedCurve{.gpus = {1, 2}, .speed = {10, 10 + 10 * gain}};
  };
  const SpeedCurve little = gainer(0.109), much = gainer(0.12);
  std::vector<Demand> jobs{{.curve = &loser, .wanted = 10, .size = 1},
                           {.curve = &little, .wanted = 10, .size = 0}};
  static_cast<void>(allocate(jobs, 0, Waiting::Strict));
  EXPECT_THAT(held(jobs), ElementsAre(2, 1)) << "less than 1.1 times as much";
  jobs[1].curve = &much;
  static_cast<void>(allocate(jobs, 0, Waiting::Strict));
  EXPECT_THAT(held(jobs), ElementsAre(1, 2));
  jobs[0].size = 1;
  jobs[1].size = 0;
  jobs[1].restart = 0.9;  // what is left of 1.12 after a restart is 1.008, and 0.108 of the slope
  static_cast<void>(allocate(jobs, 0, Waiting::Strict));
  EXPECT_THAT(held(jobs), ElementsAre(2, 1)) << "not after the restart";
}

TEST(Allocate, NobodyIsBelowItsGuaranteeAndNothingComesFromNothing) {
  Rng rng{11};
  for (int round = 0; round < 500; ++round) {
    std::vector<SpeedCurve> curves(1 + rng.below(8));
    std::vector<Demand> jobs;
    std::int64_t total = static_cast<std::int64_t>(4 + rng.below(60)), free = total;
    for (SpeedCurve& curve : curves) {
      double speed = 1;
      for (std::int32_t gpus = 1; gpus <= 16; gpus *= 2) {
        curve.gpus.push_back(gpus);
        curve.speed.push_back(speed);
        speed *= 1 + 0.95 * rng.uniform();
      }
      Demand job{.curve = &curve, .wanted = curve.speed[rng.below(5)], .restart = rng.uniform()};
      const std::size_t size = rng.below(5);
      if (rng.below(2) == 0 && size >= job.guarantee() && curve.gpus[size] <= free) {
        job.size = size;
        free -= curve.gpus[size];
      } else {
        job.restart = 1;
      }
      jobs.push_back(job);
    }
    const std::int64_t left = allocate(jobs, free, Waiting::Skip);
    std::int64_t sum = left;
    for (const Demand& job : jobs) {
      sum += job.held();
      if (job.size != kNoSize) {
        ASSERT_GE(job.size, job.guarantee());
      }
    }
    ASSERT_EQ(sum, total);
    ASSERT_GE(left, 0);
  }
}

TEST(RestartFactor, IsWhatIsLeftOfAGain) {
  EXPECT_DOUBLE_EQ(restart_factor(820, 0, 180), 0.82);
  EXPECT_DOUBLE_EQ(restart_factor(820, 2, 180), 0.46);
  EXPECT_EQ(restart_factor(100, 1, 180), 0);
  EXPECT_EQ(restart_factor(0, 0, 0), 1) << "a restart that costs nothing takes nothing";
}

}  // namespace
}  // namespace berth::rubick

namespace berth::test {
namespace {

class Sizes final : public Observer {
 public:
  void append(Time, const Action& action) override {
    gpus[action.job.value].push_back(action.gpus);
  }
  std::map<std::uint32_t, std::vector<std::int32_t>> gpus;
};

Scenario rubick(std::string cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  return {.policy = "rubick",
          .settings = std::move(settings),
          .cluster = std::move(cluster),
          .placement = "best-fit",
          .jobs = std::move(jobs)};
}

// Alone it has all it can use, and gives half of it back when another job needs it.
TEST(Rubick, GrowsOnIdleGpusAndGivesThemBack) {
  Sizes sizes;
  const Outcome outcome = run(rubick("1x8", {{.submit = 0, .gpus = 4, .duration = 4000},
                                             {.submit = 1000, .gpus = 4, .duration = 100}}),
                              &sizes);
  EXPECT_EQ(sizes.gpus[0].front(), 8);
  EXPECT_EQ(outcome.start[1], 1000);
  EXPECT_EQ(sizes.gpus[0][1], 4);
  EXPECT_LT(outcome.finish[0], 4000) << "faster than promised";
}

TEST(Rubick, KeepsToTheDeclaredRange) {
  Sizes sizes;
  const Outcome outcome =
      run(rubick("1x8", {{.submit = 0, .gpus = 4, .duration = 1000}}, {{"elastic", "declared"}}),
          &sizes);
  EXPECT_THAT(sizes.gpus[0], testing::ElementsAre(4));
  EXPECT_EQ(outcome.finish[0], 1000);
}

TEST(Rubick, AQuotaLimitsWhomOthersShrinkFor) {
  const std::vector<JobSpec> jobs{{.submit = 0, .gpus = 4, .duration = 4000, .queue = "a"},
                                  {.submit = 100, .gpus = 4, .duration = 100, .queue = "b"}};
  EXPECT_EQ(run(rubick("1x8", jobs)).start[1], 100);
  const Outcome limited = run(rubick("1x8", jobs, {{"quotas", "b:0.25"}}));
  EXPECT_GT(limited.start[1], 100) << "beyond its quota it waits for what is left";
}

TEST(Rubick, PartsOfAGpuAreLeftAsTheyAre) {
  Scenario scenario = rubick("1x1", {{.submit = 0, .gpus = 1, .duration = 10, .gpu_milli = 500},
                                     {.submit = 0, .gpus = 1, .duration = 10, .gpu_milli = 500}});
  scenario.placement = "fraction-best-fit";
  EXPECT_EQ(run(scenario).start, (std::vector<double>{0, 0}));
}

TEST(Rubick, SurvivesFailuresAndCancellations) { survive({.policy = "rubick", .rounds = 10}); }

TEST(Rubick, RefusesBadSettings) {
  EXPECT_FALSE(make_policy("rubick", {{"quotas", "a:2"}}));
  EXPECT_FALSE(make_policy("rubick", {{"guarantee", "0"}}));
  EXPECT_FALSE(make_policy("rubick", {{"pass", "maybe"}}));
}

}  // namespace
}  // namespace berth::test
