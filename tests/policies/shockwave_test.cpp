// Shockwave: windows of rounds on examples worked by hand and against enumeration, and the policy
// around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "policies/shockwave/window.h"
#include "policies/stress.h"
#include "support/run.h"

namespace berth::shockwave {
namespace {

using testing::ElementsAre;

// A is at 1/2 + 1/2 * 2/4 after two rounds, B where it was; B's 6 rounds are 3 windows of 2.
TEST(ShockwaveWindow, ItsValueIsWelfareLessTheMakespanThatRemains) {
  const std::vector<WindowJob> jobs{{.progress = .5, .left_rounds = 4},
                                    {.progress = .25, .left_rounds = 6}};
  const std::vector<std::int32_t> rounds{2, 0};
  EXPECT_NEAR(value_of(jobs, rounds, {.rounds = 2, .makespan_weight = 5}),
              (std::log(.75) + std::log(.25)) / 4 - 5 * 3, 1e-12);
  EXPECT_EQ((WindowJob{.progress = 0, .left_rounds = 5}).progress_after(0), kLeastProgress);
  EXPECT_EQ((WindowJob{.progress = .2, .left_rounds = 1.5}).progress_after(2), 1);
}

// One GPU. The n-th round brings B ln((.1 + .09 n) / (.1 + .09 (n - 1))): .104 for the ninth, .094
// for the tenth; A's first brings ln(.55 / .5) = .095.
TEST(ShockwaveWindow, RoundsGoWhereTheyRaiseWelfareMost) {
  const std::vector<WindowJob> jobs{{.progress = .5, .left_rounds = 10},
                                    {.progress = .1, .left_rounds = 10}};
  const Window window = plan_window(jobs, 1, {.rounds = 10, .makespan_weight = 0});
  EXPECT_THAT(window.counts, ElementsAre(1, 9));
  for (const auto& round : window.rounds) EXPECT_EQ(round.size(), 1U);
}

// The same with A so far behind that its rounds count 1.5^5 times: its fifth, ln(.75 / .7) * 7.6 =
// .52, is worth more than B's second, ln(.28 / .19) = .39.
TEST(ShockwaveWindow, WhoIsTreatedUnfairlyWeighsMore) {
  std::vector<WindowJob> jobs{{.progress = .5, .left_rounds = 10},
                              {.progress = .1, .left_rounds = 10}};
  jobs[0].weight = std::pow(predicted_rho(500, 100, 300), 5);
  EXPECT_NEAR(jobs[0].weight, 7.59375, 1e-9);
  const Window window = plan_window(jobs, 1, {.rounds = 6, .makespan_weight = 0});
  EXPECT_THAT(window.counts, ElementsAre(5, 1));
}

// Long: 20 rounds left, each round of it is worth 5 / 2 by the makespan; Short: ln(500) / 4 = 1.55
// for its first and ln(2) / 4 = .17 for its second.
TEST(ShockwaveWindow, TheLongestJobComesFirstIfTheMakespanCounts) {
  const std::vector<WindowJob> jobs{{.progress = .9, .left_rounds = 20},
                                    {.progress = 0, .left_rounds = 2}};
  EXPECT_THAT(plan_window(jobs, 1, {.rounds = 2, .makespan_weight = 0}).counts, ElementsAre(0, 2));
  EXPECT_THAT(plan_window(jobs, 1, {.rounds = 2, .makespan_weight = 1}).counts, ElementsAre(1, 1));
  EXPECT_THAT(plan_window(jobs, 1, {.rounds = 2, .makespan_weight = 5}).counts, ElementsAre(2, 0));
}

// By welfare per GPU the small one comes first, ln(.19 / .1) = .642 against 1.135 / 4, and leaves
// no room for the gang, which gains more: ln(.1556 / .05) = 1.135.
TEST(ShockwaveWindow, SmallJobsMakeRoomForAGangThatGainsMore) {
  const std::vector<WindowJob> jobs{{.gpus = 1, .progress = .1, .left_rounds = 10},
                                    {.gpus = 4, .progress = .05, .left_rounds = 9}};
  EXPECT_THAT(plan_window(jobs, 4, {.rounds = 1, .makespan_weight = 0}).counts, ElementsAre(0, 1));
  EXPECT_THAT(plan_window(jobs, 4, {.rounds = 1, .makespan_weight = 0, .swap_jobs = 0}).counts,
              ElementsAre(1, 0));
}

// Shortening the makespan pays only when both long jobs run in every round: a few targets in vain
// are no reason to stop. A and C need 3 rounds each for 1.946, and B gets nothing.
TEST(ShockwaveWindow, AMakespanThatPaysIsFoundBehindOnesThatDoNot) {
  const std::vector<WindowJob> jobs{
      {.gpus = 1, .progress = .627, .left_rounds = 4.946, .weight = 3.305},
      {.gpus = 2, .progress = .317, .left_rounds = 1.078, .weight = .483},
      {.gpus = 2, .progress = .743, .left_rounds = 4.694, .weight = 7.347}};
  EXPECT_THAT(plan_window(jobs, 4, {.rounds = 3, .makespan_weight = 5}).counts,
              ElementsAre(3, 0, 3));
}

TEST(ShockwaveWindow, FairnessIsPredictedFromAnEqualPart) {
  EXPECT_EQ(predicted_rho(0, 100, 0), 1) << "just come";
  EXPECT_EQ(predicted_rho(300, 100, 100), 2) << "400 s instead of 200";
  EXPECT_EQ(predicted_rho(0, 0, 0), 1);
}

double best_by_enumeration(const std::vector<WindowJob>& jobs, std::int64_t gpus,
                           const WindowRule& rule) {
  std::vector<std::int32_t> counts(jobs.size());
  double best = -1e300;
  const std::function<void(std::int32_t)> look = [&](std::int32_t round) {
    if (round == rule.rounds) {
      best = std::max(best, value_of(jobs, counts, rule));
      return;
    }
    for (std::uint32_t subset = 0; subset < (1U << jobs.size()); ++subset) {
      std::int64_t used = 0;
      for (std::size_t i = 0; i < jobs.size(); ++i)
        if ((subset >> i & 1U) != 0) used += jobs[i].gpus;
      if (used > gpus) continue;
      for (std::size_t i = 0; i < jobs.size(); ++i)
        counts[i] += static_cast<std::int32_t>(subset >> i & 1U);
      look(round + 1);
      for (std::size_t i = 0; i < jobs.size(); ++i)
        counts[i] -= static_cast<std::int32_t>(subset >> i & 1U);
    }
  };
  look(0);
  return best;
}

TEST(ShockwaveWindow, ComesCloseToEnumerationAndNeverExceedsTheGpus) {
  Rng rng{2};
  int optimal = 0;
  double gaps = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<WindowJob> jobs;
    for (std::uint64_t i = 0; i < 2 + rng.below(3); ++i) {
      jobs.push_back({.gpus = static_cast<std::int32_t>(1 + rng.below(3)),
                      .progress = 0.9 * rng.uniform(),
                      .left_rounds = 0.5 + 8 * rng.uniform(),
                      .weight = std::pow(0.8 + rng.uniform(), 5)});
    }
    const WindowRule rule{.rounds = static_cast<std::int32_t>(1 + rng.below(3)),
                          .makespan_weight = trial % 2 == 0 ? 0.0 : 5.0};
    const auto gpus = static_cast<std::int64_t>(3 + rng.below(2));
    const Window window = plan_window(jobs, gpus, rule);
    std::vector<std::int32_t> counts(jobs.size());
    for (const auto& round : window.rounds) {
      std::int64_t used = 0;
      for (const std::uint32_t job : round) {
        used += jobs[job].gpus;
        ++counts[job];
      }
      ASSERT_LE(used, gpus);
    }
    ASSERT_EQ(counts, window.counts);
    ASSERT_NEAR(window.value, value_of(jobs, counts, rule), 1e-12);
    const double best = best_by_enumeration(jobs, gpus, rule);
    ASSERT_LE(window.value, best + 1e-12);
    ASSERT_LE(best - window.value, 0.05 * std::abs(best) + 1e-12) << "trial " << trial;
    if (window.value >= best - 1e-9) {
      ++optimal;
    } else {
      gaps += (best - window.value) / std::abs(best);
    }
  }
  EXPECT_GE(optimal, 198);
  EXPECT_LT(gaps / 200, 0.001) << "on average within 0.1 %";
}

}  // namespace
}  // namespace berth::shockwave

namespace berth::test {
namespace {

JobSpec job(double duration, int gpus = 1, double submit = 0) {
  return {.submit = submit, .gpus = gpus, .duration = duration};
}

Scenario shockwave(std::string cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  return {.policy = "shockwave",
          .settings = std::move(settings),
          .cluster = std::move(cluster),
          .placement = "best-fit",
          .jobs = std::move(jobs)};
}

// 4800 GPU-seconds on two GPUs: 2400 s, if the long job runs all the time. The shortest first would
// take 3600 s.
TEST(Shockwave, PlansForTheMakespan) {
  std::vector<JobSpec> jobs{job(2400)};
  for (int i = 0; i < 6; ++i) jobs.push_back(job(400));
  EXPECT_LE(run(shockwave("1x2", jobs)).makespan, 2400 + 120);
  Scenario shortest = shockwave("1x2", jobs);
  shortest.policy = "srtf";
  EXPECT_EQ(run(shortest).makespan, 3600);
}

TEST(Shockwave, NobodyEndsMuchLaterThanOnItsEqualPart) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(job(1200, 1 + i % 2));
  const Outcome outcome = run(shockwave("1x2", jobs));
  EXPECT_LE(outcome.makespan, (3 * 1200 + 3 * 2400) / 2 + 1200)
      << "GPU-seconds over GPUs, and slack";
  // Equal part of two GPUs among six: a third of a GPU, so 3600 s for one and 7200 s for two.
  for (std::size_t i = 0; i < jobs.size(); ++i)
    EXPECT_LE(outcome.finish[i], 1.1 * 3600 * (1 + static_cast<double>(i % 2)));
}

TEST(Shockwave, TurnsAreWholeRoundsAndWhoStaysPaysNothing) {
  Scenario two = shockwave("1x2", {job(1000), job(700)});
  two.sim.costs.resume = std::chrono::seconds{50};
  const Outcome outcome = run(two);
  EXPECT_EQ(outcome.total_preemptions, 0) << "there is room for both";
  EXPECT_EQ(outcome.finish, (std::vector<double>{1000, 700}));
}

TEST(Shockwave, FreeGpusDoNotWaitForTheNextRound) {
  EXPECT_EQ(run(shockwave("1x1", {job(50), job(30, 1, 10)})).finish[1], 80);
}

TEST(Shockwave, AStartLongerThanARoundStillLeadsToWork) {
  Scenario slow = shockwave("1x1", {job(700), job(700)});
  slow.sim.costs.resume = std::chrono::seconds{300};
  for (const JobState state : run(slow).state) EXPECT_EQ(state, JobState::Completed);
}

TEST(Shockwave, SurvivesRandomWorlds) {
  survive({.policy = "shockwave", .settings = {{"round", "4"}, {"window", "5"}}, .rounds = 20});
  survive({.policy = "shockwave",
           .settings = {{"round", "3"}, {"power", "10"}, {"lambda", "0"}, {"swap_jobs", "0"}},
           .estimator = "oracle:1",
           .rounds = 10});
}

TEST(Shockwave, RefusesBadSettings) {
  EXPECT_FALSE(make_policy("shockwave", {{"round", "0"}}));
  EXPECT_FALSE(make_policy("shockwave", {{"window", "0"}}));
  EXPECT_FALSE(make_policy("shockwave", {{"lambda", "-1"}}));
}

}  // namespace
}  // namespace berth::test
