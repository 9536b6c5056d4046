// Lucid on simulated clusters: packing, exclusive runs, quiet periods, the profiler.
#include <gtest/gtest.h>

#include "policies/stress.h"
#include "support/run.h"

namespace berth::test {
namespace {

Profile model(const std::string& name, double gpu, double memory, double mib) {
  Profile profile;
  profile.name = name;
  profile.gpu_utilisation = gpu;
  profile.memory_utilisation = memory;
  profile.memory = {.fixed_mib = mib, .per_sample_mib = 0};
  return profile;
}

/// By the default tree: tiny has sharing score 0, medium 1, jumbo 2.
ProfileSet three_models() {
  ProfileSet profiles;
  profiles.add(model("tiny", 0.2, 0.05, 4000));
  profiles.add(model("medium", 0.5, 0.3, 6000));
  profiles.add(model("jumbo", 0.9, 0.6, 9000));
  for (const char* a : {"tiny", "medium", "jumbo"}) {
    for (const char* b : {"tiny", "medium", "jumbo"}) {
      const bool tiny = std::string(a) == "tiny" || std::string(b) == "tiny";
      profiles.set_slowdown(*profiles.find(a), *profiles.find(b), tiny ? 1.0 : 1.25);
    }
  }
  return profiles;
}

JobSpec job(const std::string& name, double submit, double duration, int gpus = 1) {
  return {.submit = submit, .gpus = gpus, .duration = duration, .model = name};
}

Scenario scenario(const std::string& cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  settings.emplace_back("packing", "on");
  return {.policy = "lucid",
          .settings = std::move(settings),
          .cluster = cluster,
          .placement = "best-fit",
          .jobs = std::move(jobs),
          .profiles = three_models()};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-3) << i + 1;
}

TEST(Lucid, PacksAJobThatNobodyNotices) {
  expect_near(run(scenario("1x1", {job("jumbo", 0, 100), job("tiny", 10, 50)})).finish, {100, 60});
}

TEST(Lucid, PacksOnePairAndTheThirdWaits) {
  // Two medium ones at 1/1.25; the third may not join them and starts when the first pair is over.
  const Outcome outcome =
      run(scenario("1x1", {job("medium", 0, 100), job("medium", 0, 100), job("tiny", 0, 300)}));
  expect_near(outcome.start, {0, 0, 125});
  expect_near(outcome.finish, {125, 125, 425});
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(Lucid, TwoThatSufferDoNotShare) {
  expect_near(run(scenario("1x1", {job("jumbo", 0, 100), job("medium", 0, 100)})).finish,
              {100, 200});  // scores 2 and 1
}

TEST(Lucid, ALongJobIsNotGluedToAShortOne) {
  // 400 s beside 100 s: more than twice as long, so it waits; 150 s beside 100 s is fine
  expect_near(run(scenario("1x1", {job("tiny", 0, 100), job("tiny", 0, 400)})).start, {0, 100});
  expect_near(run(scenario("1x1", {job("tiny", 0, 100), job("tiny", 0, 150)})).start, {0, 0});
}

TEST(Lucid, OnlyEqualSizesSharePacking) {
  const Outcome outcome =
      run(scenario("1x2", {job("tiny", 0, 100, 2), job("tiny", 0, 100), job("tiny", 0, 100, 2)}));
  // By GPUs x time the single one comes first and takes a GPU; the pairs share both after it.
  expect_near(outcome.start, {100, 0, 100});
}

TEST(Lucid, TheSurvivorIsAPartnerAgain) {
  const Outcome outcome =
      run(scenario("1x1", {job("tiny", 0, 300), job("tiny", 1, 100), job("tiny", 50, 200)}));
  // 2 shares with 1 until 101; then 1 has 199 s left, and 3 joins it
  expect_near(outcome.start, {0, 1, 101});
}

TEST(Lucid, MemoryIsRespected) {
  Scenario large = scenario("1x1:v100", {job("large", 0, 100), job("large", 0, 100)});
  large.profiles.add(model("large", 0.2, 0.05, 9000));
  expect_near(run(large).finish, {100, 200});
}

TEST(Lucid, AQuietPeriodRunsJobsAloneAndInOrder) {
  Scenario quiet = scenario("1x1", {job("tiny", 0, 100), job("tiny", 0, 100)});
  quiet.settings = {{"packing", "auto"}};  // two arrivals in the last hour are quiet
  expect_near(run(quiet).finish, {100, 200});
  quiet.settings = {{"packing", "auto"}, {"quiet_arrivals", "1"}};
  expect_near(run(quiet).finish, {100, 100});
  quiet.settings = {{"packing", "off"}};
  expect_near(run(quiet).finish, {100, 200});
}

TEST(Lucid, ANewcomerThatHurtsIsTakenAwayAgain) {
  Scenario pair =
      scenario("1x1", {job("medium", 0, 1000), job("medium", 0, 1000)}, {{"unpack", "on"}});
  // Both at 0.8: after 300 s with 240 s done the newcomer waits for the end of the other at 1060.
  const Outcome outcome = run(pair);
  expect_near(outcome.finish, {1060, 1820});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1}));
}

TEST(Lucid, ShortJobsEndInTheProfiler) {
  // Node 8 of 8 profiles: the long job is moved to the main part after 300 s, the short one ends.
  Scenario profiled = scenario("8x1", {job("jumbo", 0, 1000), job("jumbo", 0, 60)});
  const Outcome outcome = run(profiled);
  expect_near(outcome.start, {0, 300});  // one GPU there, the first in line keeps it
  expect_near(outcome.finish, {1000, 360});
  EXPECT_EQ(outcome.migrations[0], 1);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(Lucid, AJobAsLargeAsTheClusterRunsInSpiteOfTheProfiler) {
  const Outcome outcome = run(scenario("8x1", {job("jumbo", 0, 100), job("jumbo", 0, 100, 8)}));
  EXPECT_EQ(outcome.state[1], JobState::Completed);
}

TEST(Lucid, SurvivesRandomWorlds) {
  survive({.policy = "lucid", .settings = {{"packing", "on"}, {"unpack", "on"}}});
  survive({.policy = "lucid",
           .settings = {{"profiler_nodes", "1"}, {"profile_time", "5"}},
           .estimator = "oracle:0.7"});
}

}  // namespace
}  // namespace berth::test
