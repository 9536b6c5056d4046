// Muri on simulated clusters: who shares, how fast they then run, when groups change.
#include <gtest/gtest.h>

#include "policies/muri/muri.h"
#include "policies/stress.h"
#include "support/run.h"

namespace berth::test::muri_tests {
namespace {

Profile model(const std::string& name, const StageTimes& stages, double memory_mib = 1000) {
  Profile profile;
  profile.name = name;
  profile.stages = stages;
  profile.memory = {.fixed_mib = memory_mib, .per_sample_mib = 0};
  return profile;
}

/// The four jobs of the worked example: an iteration of each takes 8 s alone.
ProfileSet worked_profiles() {
  ProfileSet profiles;
  profiles.add(model("A", {4, 2, 1, 1}));
  profiles.add(model("B", {1, 1, 4, 2}));
  profiles.add(model("C", {1, 4, 2, 1}));
  profiles.add(model("D", {1, 1, 1, 5}));
  return profiles;
}

JobSpec job(const std::string& name, double submit, double duration, int gpus = 1) {
  return {.submit = submit, .gpus = gpus, .duration = duration, .model = name};
}

Scenario scenario(const std::string& cluster, std::vector<JobSpec> jobs,
                  const std::string& policy = "muri-s") {
  return {.policy = policy,
          .cluster = cluster,
          .placement = "best-fit",
          .jobs = std::move(jobs),
          .profiles = worked_profiles()};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-3) << i + 1;
}

TEST(Muri, APairThatFitsTogetherCostsNothing) {
  // A and C interleave perfectly: a round takes the 8 s that each takes alone
  expect_near(run(scenario("1x1", {job("A", 0, 80), job("C", 0, 80)})).finish, {80, 80});
}

TEST(Muri, APairRunsAtItsShareOfTheRound) {
  // a round of A and B takes 11 s: each runs at 8/11
  expect_near(run(scenario("1x1", {job("A", 0, 80), job("B", 0, 80)})).finish, {110, 110});
}

TEST(Muri, FourOnOneGpu) {
  const std::vector<JobSpec> four{job("A", 0, 80), job("B", 0, 80), job("C", 0, 80),
                                  job("D", 0, 80)};
  expect_near(run(scenario("1x1", four)).finish, {90, 90, 90, 90});  // T = 9 for 8
  // with two GPUs they pair up so that two pairs need 8 and 9
  const Outcome two = run(scenario("1x2", four));
  EXPECT_NEAR(two.makespan, 90, 1e-3);
  EXPECT_NEAR(two.sum_jct, 80 + 80 + 90 + 90, 1e-3);
}

TEST(Muri, NobodySharesWhileAllFit) {
  const Outcome outcome = run(scenario("1x2", {job("A", 0, 80), job("B", 0, 80)}));
  expect_near(outcome.finish, {80, 80});
}

TEST(Muri, ALatecomerWaitsForTheNextInterval) {
  Scenario late = scenario("1x1", {job("A", 0, 80), job("B", 10, 80)});
  late.settings = {{"interval", "60"}};
  // At 60 A has 20 s left and needs 27.5 s for them beside B, which gets 20 s done meanwhile.
  const Outcome outcome = run(late);
  expect_near(outcome.finish, {87.5, 147.5});
  EXPECT_NEAR(outcome.start[1], 60, 1e-6);
  EXPECT_EQ(outcome.total_preemptions, 0) << "a job whose group can be formed where it is stays";
}

TEST(Muri, AFreeGpuIsTakenAtOnce) {
  Scenario late = scenario("1x2", {job("A", 0, 80), job("B", 10, 80)});
  EXPECT_NEAR(run(late).start[1], 10, 1e-6);
}

TEST(Muri, TheSurvivorOfAPairRunsAlone) {
  // A and D share (a round of 9); G, which wants the GPU all the time, has the other GPU for
  // itself.
  Scenario three = scenario("1x2", {job("A", 0, 30), job("D", 0, 90), job("G", 0, 90)});
  three.profiles.add(model("G", {0, 0, 8, 0}));
  expect_near(run(three).finish, {33.75, 93.75, 90});  // D has done 30 at 33.75
}

TEST(Muri, GroupsComeApartWhenThereIsRoomAgain) {
  Scenario three = scenario("1x2", {job("A", 0, 90), job("D", 0, 90), job("G", 0, 30)});
  three.profiles.add(model("G", {0, 0, 8, 0}));
  three.settings = {{"interval", "60"}};
  // A GPU is free from 30 on and noticed at 60, when both have done 53.33: one moves there.
  const Outcome outcome = run(three);
  expect_near(outcome.finish, {96.667, 96.667, 30});
  EXPECT_EQ(outcome.migrations[0] + outcome.migrations[1], 1);
}

TEST(Muri, OnlyEqualSizesShareAndTheFrontOfTheOrderRuns) {
  // 1 x 2 GPUs: the 2-GPU job has more work x GPUs than the two small ones together
  const Outcome outcome =
      run(scenario("1x2", {job("A", 0, 80, 2), job("B", 0, 20), job("C", 0, 20)}));
  expect_near(outcome.finish, {100, 20, 20});
}

TEST(Muri, OverheadKeepsOrTakesApart) {
  Scenario pair = scenario("1x1", {job("A", 0, 80), job("A", 0, 80)});
  // Two A interleave in 11: with the measured 1.3 that is 14.3 for two times 8, still a gain.
  pair.profiles.set_interleave_overhead(kMeasuredOverhead);
  expect_near(run(pair).finish, {143, 143});
  Scenario same = scenario("1x1", {job("G", 0, 80), job("G", 0, 80)});
  same.profiles.add(model("G", {0, 0, 8, 0}));  // both want the GPU alone
  same.profiles.set_interleave_overhead(kMeasuredOverhead);
  expect_near(run(same).finish, {80, 160});
}

TEST(Muri, AGroupThatLosesAMemberMayNotBeWorthItAnyMore) {
  Scenario three = scenario("1x1", {job("C", 0, 40), job("A", 0, 80), job("B", 0, 90)});
  three.profiles.set_interleave_overhead({{1, 1.9, 1.2, 1.1}});
  three.settings = {{"interval", "10000"}};
  // A round of three takes 8 x 1.2 = 9.6, all run at 5/6: C ends at 48, A and B have done 40. These
  // two alone would need 11 x 1.9 = 20.9 for 16: B waits until A is done at 88, then 50 s more.
  const Outcome outcome = run(three);
  expect_near(outcome.finish, {48, 88, 138});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 0, 1}));
}

TEST(Muri, MemoryIsRespected) {
  Scenario large = scenario("1x1:v100", {job("L", 0, 80), job("M", 0, 80)});
  large.profiles.add(model("L", {4, 2, 1, 1}, 9000));
  large.profiles.add(model("M", {1, 4, 2, 1}, 9000));
  expect_near(run(large).finish, {80, 160});  // 18,000 MiB do not fit into 16,384
}

TEST(Muri, LeastServiceFirstWithoutKnowingDurations) {
  Scenario las = scenario("1x1", {job("G", 0, 100), job("G", 50, 30)}, "muri-l");
  las.profiles.add(model("G", {0, 0, 8, 0}));
  las.profiles.set_interleave_overhead(kMeasuredOverhead);  // never worth sharing
  las.settings = {{"interval", "20"}};
  // At 60 the newcomer has held nothing, the other 60: it runs until it is done.
  const Outcome outcome = run(las);
  expect_near(outcome.finish, {130, 90});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{1, 0}));
}

TEST(Muri, UnknownStagesFollowFromUtilisation) {
  Profile busy = model("busy", {});
  busy.gpu_utilisation = 0.8;
  busy.iteration = {.alpha = 1, .beta = 0};
  const StageTimes stages = stages_of(busy);
  EXPECT_NEAR(stages[2], 0.8, 1e-12);
  EXPECT_NEAR(stages[0], 0.1, 1e-12);
  EXPECT_NEAR(stages[1], 0.1, 1e-12);
  EXPECT_EQ(stages[3], 0);
}

TEST(Muri, SurvivesRandomWorlds) {
  survive({.policy = "muri-s", .settings = {{"interval", "7"}}});
  survive({.policy = "muri-l", .settings = {{"interval", "0"}}, .rounds = 20});
}

}  // namespace
}  // namespace berth::test::muri_tests
