// Gavel's policies on simulated clusters: turns in rounds, who gets which type, what is kept.
#include <gtest/gtest.h>

#include "policies/gavel/census.h"
#include "policies/stress.h"
#include "support/run.h"

namespace berth::test {
namespace {

Profile model(const std::string& name, double k80, double p100) {
  Profile profile;
  profile.name = name;
  profile.speeds = {{"v100", 1}, {"p100", p100}, {"k80", k80}};
  profile.gpu_utilisation = 0.4;
  profile.memory = {.fixed_mib = 1000, .per_sample_mib = 0};
  return profile;
}

JobSpec job(const std::string& name, double duration, int gpus = 1) {
  return {.submit = 0, .gpus = gpus, .duration = duration, .model = name};
}

Scenario scenario(const std::string& policy, const std::string& cluster,
                  std::vector<JobSpec> jobs) {
  ProfileSet profiles;
  profiles.add(model("picky", 0.1, 0.25));
  profiles.add(model("easy", 0.8, 0.9));
  Effects effects;
  effects.device = true;
  return {.policy = policy,
          .cluster = cluster,
          .placement = "best-fit",
          .jobs = std::move(jobs),
          .profiles = std::move(profiles),
          .effects = effects};
}

TEST(Gavel, JobsTakeTurnsOfWholeRounds) {
  const Outcome outcome =
      run(scenario("gavel-las", "1x1:v100", {job("easy", 720), job("easy", 720)}));
  EXPECT_DOUBLE_EQ(outcome.finish[0], 1080);  // rounds 0 and 2
  EXPECT_DOUBLE_EQ(outcome.finish[1], 1440);  // rounds 1 and 3
}

TEST(Gavel, WhoIsChosenAgainKeepsItsDevicesAndPaysNothing) {
  Scenario two = scenario("gavel-las", "1x2:v100", {job("easy", 5000), job("picky", 4000)});
  two.sim.costs.resume = std::chrono::seconds{100};
  const Outcome outcome = run(two);
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_DOUBLE_EQ(outcome.finish[0], 5000);
  EXPECT_DOUBLE_EQ(outcome.finish[1], 4000);
}

TEST(Gavel, WhoGainsMostFromTheFastTypeGetsIt) {
  const auto worst = [](const std::string& speeds) {  // over both orders of arrival
    double makespan = 0;
    for (const std::string first : {"easy", "picky"}) {
      const std::string second = first == "easy" ? "picky" : "easy";
      Scenario both =
          scenario("gavel-makespan", "1x1:v100,1x1:k80", {job(first, 7200), job(second, 7200)});
      both.settings = {{"speeds", speeds}};
      makespan = std::max(makespan, run(both).makespan);
    }
    return makespan;
  };
  // 8609 s if time could be cut at will: (1 - a) + 0.1 a = 0.8 (1 - a) + a
  EXPECT_LE(worst("aware"), 8609 + 720);
  EXPECT_GT(worst("agnostic"), 1.2 * worst("aware"));  // it does not know which is which
}

TEST(Gavel, MakespanLetsTheLongestJobRunAllTheTime) {
  const Outcome outcome = run(scenario("gavel-makespan", "1x2:v100",
                                       {job("easy", 720), job("easy", 720), job("easy", 1440)}));
  EXPECT_DOUBLE_EQ(outcome.makespan, 1440);  // 2880 GPU-seconds on two GPUs
}

TEST(Gavel, FinishTimeFairnessGivesEveryoneItsPart) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(job("easy", 7200));
  const Outcome outcome = run(scenario("gavel-ftf", "1x2:v100", jobs));
  // each has half a GPU to itself: nobody ends more than a round or two after 14400 s
  for (const double finish : outcome.finish) EXPECT_LE(finish, 14400 + 720);
}

TEST(Gavel, AHierarchyIsFairToUsersFirst) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(job("easy", 3600));
    jobs.back().user = i == 3 ? "lone" : "many";
  }
  const Outcome users = run(scenario("gavel-hierarchical", "1x2:v100", jobs));
  EXPECT_LE(users.finish[3], 3600 + 360);  // half of the cluster is its own, within a round
  const Outcome equals = run(scenario("gavel-las", "1x2:v100", jobs));
  EXPECT_GT(equals.finish[3], 5000);
}

TEST(Gavel, AWeightOfAnEntityIsHonoured) {
  std::vector<JobSpec> jobs{job("easy", 36000), job("easy", 36000)};
  jobs[0].user = "a";
  jobs[1].user = "b";
  Scenario weighted = scenario("gavel-hierarchical", "1x1:v100", jobs);
  weighted.settings = {{"weights", "b:3"}};
  const Outcome outcome = run(weighted);
  EXPECT_NEAR(outcome.finish[1], 48000, 1500);  // three quarters of the time
  EXPECT_DOUBLE_EQ(outcome.finish[0], 72000);
}

TEST(Gavel, CheapDevicesForWhoLosesLittleThere) {
  // A P100 costs less than half of a V100 and does 0.9 of the work, or 0.25 of it.
  const std::string cluster = "1x1:v100,1x1:p100";
  EXPECT_NEAR(run(scenario("gavel-cost", cluster, {job("easy", 3600)})).finish[0], 4000, 1e-3);
  EXPECT_NEAR(run(scenario("gavel-cost", cluster, {job("picky", 3600)})).finish[0], 3600, 1e-3);
  EXPECT_NEAR(run(scenario("gavel-las", cluster, {job("easy", 3600)})).finish[0], 3600, 1e-3);
  Scenario ratio = scenario("gavel-cost", cluster, {job("easy", 3600), job("easy", 3600)});
  ratio.settings = {{"form", "ratio"}};
  // both on the cheap type, one after the other or in turns
  EXPECT_NEAR(run(ratio).makespan, 8000, 361);
}

TEST(Gavel, DeadlinesComeBeforeCost) {
  std::vector<JobSpec> jobs{job("easy", 7200), job("easy", 720)};
  jobs[1].deadline = 1500;
  EXPECT_LE(run(scenario("gavel-slo", "1x1:v100", jobs)).finish[1], 1500);
  EXPECT_GT(run(scenario("gavel-cost", "1x1:v100", jobs)).finish[1], 7200);
}

TEST(Gavel, FifoAndSjfPreferTheFrontOfTheirOrder) {
  const std::vector<JobSpec> jobs{job("easy", 3600), job("easy", 720)};
  EXPECT_DOUBLE_EQ(run(scenario("gavel-fifo", "1x1:v100", jobs)).finish[0], 3600);
  EXPECT_DOUBLE_EQ(run(scenario("gavel-sjf", "1x1:v100", jobs)).finish[1], 720);
}

TEST(Gavel, ThroughputPutsEachJobWhereTheSumIsLargest) {
  const Outcome outcome = run(
      scenario("gavel-throughput", "1x1:v100,1x1:k80", {job("easy", 3600), job("picky", 3600)}));
  EXPECT_NEAR(outcome.finish[1], 3600, 1e-3);       // 1 + 0.8 instead of 1 + 0.1
  EXPECT_NEAR(outcome.finish[0], 3600 / 0.8, 720);  // until then on the K80
}

TEST(Gavel, TwoThatLeaveMostOfADeviceIdleShareIt) {
  Scenario shared = scenario("gavel-las", "1x1:v100", {job("easy", 3600), job("easy", 3600)});
  EXPECT_DOUBLE_EQ(run(shared).makespan, 7200);
  shared.settings = {{"space_sharing", "on"}};
  EXPECT_NEAR(run(shared).makespan, 3600 / 0.95, 1);  // max(1, 0.4 + 0.4) / 0.95 as long as alone
}

TEST(Gavel, AScatteredClusterIsPackedAnewForAGang) {
  // After the small jobs of servers 1 and 2 ended, two free GPUs lie on different servers.
  Scenario gang =
      scenario("gavel-las", "2x2:v100",
               {job("easy", 300), job("easy", 9000), job("easy", 300), job("easy", 9000)});
  gang.placement = "consolidated";
  gang.jobs.push_back({.submit = 10, .gpus = 2, .duration = 1000, .model = "easy"});
  const Outcome outcome = run(gang);
  EXPECT_EQ(outcome.state[4], JobState::Completed);
  EXPECT_LE(outcome.finish[4], 4000);
}

TEST(Gavel, ARestartLongerThanARoundStillLeadsToWork) {
  Scenario slow = scenario("gavel-las", "1x1:v100", {job("easy", 720), job("easy", 720)});
  slow.sim.costs.resume = std::chrono::seconds{500};
  const Outcome outcome = run(slow);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  EXPECT_EQ(outcome.state[1], JobState::Completed);
}

TEST(Gavel, SurvivesRandomWorlds) {
  survive({.policy = "gavel-las", .settings = {{"round", "4"}}, .rounds = 15});
  survive({.policy = "gavel-ftf", .settings = {{"round", "3"}, {"recompute", "1"}}, .rounds = 10});
  survive({.policy = "gavel-hierarchical",
           .settings = {{"round", "4"}, {"entity", "group"}},
           .rounds = 10});
  survive({.policy = "gavel-las",
           .settings = {{"round", "5"}, {"space_sharing", "on"}, {"pair_jobs", "20"}},
           .rounds = 10,
           .jobs = 30});
  survive({.policy = "gavel-slo", .settings = {{"round", "4"}, {"form", "ratio"}}, .rounds = 8});
}

TEST(GavelCensus, GroupsWhatIsAlikeAndNoFinerThanAsked) {
  std::vector<gavel::JobFacts> jobs;
  for (std::uint32_t i = 0; i < 1000; ++i)
    jobs.push_back({.job = JobId{i}, .kind = KindId{i % 2}, .first = 1.0 + i, .rank = i});
  for (const std::size_t most : {2UL, 10UL, 100UL}) {
    const auto classes = gavel::group_jobs(jobs, most);
    EXPECT_LE(classes.size(), most);
    std::size_t members = 0;
    for (const auto& one : classes) {
      members += one.members.size();
      for (const std::uint32_t at : one.members)
        EXPECT_EQ(jobs[at].kind, jobs[one.members.front()].kind);
      EXPECT_TRUE(std::ranges::is_sorted(one.members));
    }
    EXPECT_EQ(members, jobs.size());
  }
  EXPECT_EQ(gavel::one_by_one(jobs).size(), jobs.size());
}

}  // namespace
}  // namespace berth::test
