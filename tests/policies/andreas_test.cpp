// ANDREAS in the engine: the worked example with its nodes and watts, power, seats on nodes that
// boot, gangs, and who gives way to whom.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/run.h"

namespace berth::test {
namespace {

/// When nodes were switched, in seconds.
class PowerLog final : public Observer {
 public:
  void append(Time now, const Action& action) override {
    if (action.kind == ActionKind::PowerOff) off.push_back({to_seconds(now), node_of(action)});
    if (action.kind == ActionKind::PowerOn) on.push_back({to_seconds(now), node_of(action)});
  }
  std::vector<std::pair<double, std::uint32_t>> off, on;

 private:
  static std::uint32_t node_of(const Action& action) { return action.slices.front().node.value; }
};

/// Measured so that the fast type has twice the speed and two GPUs give 1.8 times that of one.
ProfileSet example_profiles() {
  ProfileSet profiles;
  Profile& profile = profiles.edit(ProfileSet::fallback());
  for (const Level level : {Level::Device, Level::Nvlink, Level::Pcie, Level::Server}) {
    for (const auto& [device, speed] : {std::pair{"fast", 2.0}, std::pair{"slow", 1.0}}) {
      profile.measured.push_back({device, 1, level, profile.batch, 1 / speed});
      profile.measured.push_back({device, 2, level, profile.batch, 2 / 1.8 / speed});
    }
  }
  return profiles;
}

constexpr double kHour = 3600;

/// 1 EUR per kWh, so that 200 W are 0.2 EUR/h.
Scenario worked_example() {
  Scenario scenario;
  scenario.policy = "andreas";
  scenario.cluster = "1x2:fast,1x2:slow";
  scenario.placement = "best-fit";
  scenario.settings = {
      {"price", "1"}, {"pue", "1"}, {"boot", "0"}, {"restart", "0"}, {"max_gpus", "2"}};
  scenario.sim.boot = Duration::zero();
  scenario.profiles = example_profiles();
  scenario.edit_cluster = [](Cluster& cluster) {
    for (std::size_t i = 0; i < 2; ++i) {
      cluster.nodes[i].idle_watts = i == 0 ? 200 : 100;
      cluster.nodes[i].busy_watts = cluster.nodes[i].idle_watts;
      cluster.pools[i].idle_watts = 0;
      cluster.pools[i].busy_watts = i == 0 ? 300 : 100;
    }
  };
  const std::string slow_first = "slow|fast";  // durations are those of a slow GPU
  scenario.jobs = {{.duration = 4 * kHour, .type = slow_first, .deadline = 2.5 * kHour},
                   {.duration = 2 * kHour, .type = slow_first, .deadline = 1 * kHour},
                   {.duration = 1 * kHour, .type = slow_first, .deadline = 10 * kHour}};
  return scenario;
}

TEST(Andreas, RunsTheWorkedExample) {
  PowerLog log;
  const Outcome outcome = run(worked_example(), &log);
  EXPECT_NEAR(outcome.finish[1], 5.0 / 9 * kHour, 0.01) << "both fast GPUs";
  EXPECT_NEAR(outcome.finish[0], 20.0 / 9 * kHour, 0.01) << "both slow ones, left alone at 5/9 h";
  EXPECT_NEAR(outcome.start[2], 5.0 / 9 * kHour, 0.01) << "postponed, then started because it fits";
  EXPECT_NEAR(outcome.finish[2], (5.0 / 9 + 5.0 / 18) * kHour, 0.01);
  EXPECT_EQ(outcome.total_preemptions, 0);
  ASSERT_EQ(log.off.size(), 2U);
  EXPECT_NEAR(log.off[0].first, 5.0 / 6 * kHour, 0.01) << "the fast node, with nobody left for it";
}

TEST(Andreas, LetsTheLaxJobWaitForTheCheaperNodeIfAsked) {
  Scenario scenario = worked_example();
  scenario.settings.push_back({"wait_cheaper", "on"});
  PowerLog log;
  const Outcome outcome = run(scenario, &log);
  ASSERT_GE(log.off.size(), 1U);
  EXPECT_NEAR(log.off[0].first, 5.0 / 9 * kHour, 0.01);
  EXPECT_EQ(log.off[0].second, 0U);
  EXPECT_NEAR(outcome.finish[2], (20.0 / 9 + 5.0 / 9) * kHour, 0.01) << "slow, after the first";
}

/// One-GPU jobs that are not resized.
Scenario rigid(std::string cluster, std::vector<JobSpec> jobs) {
  Scenario scenario;
  scenario.policy = "andreas";
  scenario.cluster = std::move(cluster);
  scenario.placement = "best-fit";
  scenario.settings = {{"elastic", "declared"}};
  scenario.jobs = std::move(jobs);
  return scenario;
}

TEST(Andreas, SwitchesNodesOffThatNobodyNeedsAndBootsOneForTheNextJob) {
  PowerLog log;
  const Outcome outcome =
      run(rigid("4x2", {{.submit = 0, .duration = 100}, {.submit = 1000, .duration = 100}}), &log);
  EXPECT_EQ(outcome.finish[0], 100);
  EXPECT_EQ(outcome.finish[1], 1000 + 120 + 100) << "it waits for the boot";
  ASSERT_EQ(log.off.size(), 5U);
  EXPECT_EQ(log.off[2].first, 0);
  EXPECT_EQ(log.off[3].first, 100);
  EXPECT_EQ(log.off[4].first, 1220);
  ASSERT_EQ(log.on.size(), 1U);
  EXPECT_EQ(log.on[0].first, 1000);
}

/// A node that is on has a job: jobs run on such nodes only, so it is on if and only if it has one.
class OnIffUsed final : public Observer {
 public:
  void append(Time, const Action&) override {}
  void instant_done(Time now) override {
    const ClusterState& state = engine->cluster();
    const auto& nodes = state.cluster().nodes;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      if (state.power(NodeId{i}) != PowerState::On) continue;
      EXPECT_LT(state.free_on(NodeId{i}), nodes[i].gpus)
          << "node " << i << " at " << to_seconds(now);
      ++looks;
    }
  }
  int looks = 0;
};

TEST(Andreas, ANodeIsOnIfAndOnlyIfItHasAJob) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng{seed};
    std::vector<JobSpec> jobs;
    for (int i = 0; i < 15; ++i) {
      jobs.push_back({.submit = static_cast<double>(rng.below(2000)),
                      .gpus = 1 + static_cast<int>(rng.below(3)),
                      .duration = 50 + static_cast<double>(rng.below(600))});
      if (rng.below(2) == 0) jobs.back().deadline = jobs.back().submit + 900;
    }
    std::ranges::sort(jobs, {}, &JobSpec::submit);
    Scenario scenario = rigid("3x4", jobs);
    scenario.settings = {{"boot", "0"}, {"effort", "300"}, {"p_best", seed % 2 == 0 ? "0.5" : "0"}};
    scenario.sim.boot = Duration::zero();
    OnIffUsed watch;
    const Outcome outcome = run(scenario, &watch);
    for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
    EXPECT_GT(watch.looks, 20);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(Andreas, KeepsIdleNodesOnForAsLongAsItIsTold) {
  Scenario scenario =
      rigid("1x2", {{.submit = 0, .duration = 100}, {.submit = 250, .duration = 100}});
  scenario.settings.push_back({"idle_off", "200"});
  PowerLog log;
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(outcome.finish[1], 350);
  ASSERT_EQ(log.off.size(), 1U);
  EXPECT_EQ(log.off[0].first, 550);
  EXPECT_TRUE(log.on.empty());
}

TEST(Andreas, TakesAnotherNodeWhenOneFailsWhileItBoots) {
  Scenario scenario =
      rigid("2x2", {{.submit = 0, .duration = 100}, {.submit = 1000, .duration = 100}});
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(1060), seconds_to_time(9000)},
                          {NodeId{1}, seconds_to_time(1050), seconds_to_time(1055)}};
  PowerLog log;
  const Outcome outcome = run(scenario, &log);
  ASSERT_EQ(log.on.size(), 2U);
  EXPECT_EQ(log.on[0], std::pair(1000.0, 0U));
  EXPECT_EQ(log.on[1], std::pair(1060.0, 1U));
  EXPECT_EQ(outcome.finish[1], 1060 + 120 + 100);
}

/// The second comes beside the first, the third needs a node of its own until the second is done.
Scenario three_lax_jobs() {
  return rigid("2x2", {{.submit = 0, .duration = 1000, .deadline = 90000},
                       {.submit = 100, .duration = 300, .deadline = 90000},
                       {.submit = 200, .duration = 300, .deadline = 90000}});
}

TEST(Andreas, LeavesRunningJobsAloneUnlessMovingOneSavesANode) {
  PowerLog log;
  const Outcome outcome = run(three_lax_jobs(), &log);
  EXPECT_EQ(outcome.finish[0], 1000);
  EXPECT_EQ(outcome.finish[1], 400) << "beside the first: no second node for it";
  EXPECT_EQ(outcome.finish[2], 200 + 120 + 300) << "a second node boots";
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_EQ(outcome.migrations[0] + outcome.migrations[2], 1) << "one joins the other at 400 s";
  ASSERT_EQ(log.off.size(), 3U);
  EXPECT_EQ(log.off[1].first, 400) << "one node is enough from then on";
}

TEST(Andreas, MovesNobodyWhenARestartCostsMoreThanItSaves) {
  Scenario scenario = three_lax_jobs();
  scenario.settings.push_back({"restart", "10m"});
  EXPECT_EQ(run(scenario).migrations, (std::vector<int>{0, 0, 0}));
}

TEST(Andreas, AnUrgentJobTakesTheGpuOfALaxOne) {
  const Outcome outcome = run(rigid("1x1", {{.submit = 0, .duration = 7200, .deadline = 90000},
                                            {.submit = 100, .duration = 600, .deadline = 800}}));
  EXPECT_EQ(outcome.finish[1], 700) << "in time";
  EXPECT_EQ(outcome.preemptions[0], 1);
  EXPECT_EQ(outcome.finish[0], 7800);
}

TEST(Andreas, AJobWithoutDeadlineDoesNotWaitForEver) {
  std::vector<JobSpec> jobs{{.submit = 0, .duration = 100, .deadline = 7200}};
  jobs.push_back({.submit = 50, .duration = 100});
  for (int i = 1; i <= 30; ++i) {  // always another one with a deadline, though far away
    jobs.push_back({.submit = 100.0 * i, .duration = 100, .deadline = 100.0 * i + 7200});
  }
  EXPECT_LT(run(rigid("1x1", jobs)).finish[1], 1000);
}

TEST(Andreas, AGangLargerThanANodeTakesWholeNodes) {
  const Outcome outcome = run(rigid("3x4", {{.submit = 0, .gpus = 10, .duration = 100},
                                            {.submit = 0, .gpus = 2, .duration = 100},
                                            {.submit = 0, .gpus = 4, .duration = 50}}));
  EXPECT_EQ(outcome.finish[0], 100);
  EXPECT_EQ(outcome.finish[1], 100) << "beside the gang on its last node";
  EXPECT_GE(outcome.start[2], 100) << "needs a node of its own";
}

TEST(Andreas, GivesAJobMoreGpusWhereThatSavesItsDeadline) {
  Scenario scenario = rigid("1x4", {{.submit = 0, .duration = 1000, .deadline = 400}});
  scenario.settings = {};
  scenario.profiles.edit(ProfileSet::fallback()).iteration = {
      .alpha = 0, .beta = 0.01, .gradient_bytes = 0, .overlap = 2};  // scales perfectly
  EXPECT_LE(run(scenario).finish[0], 400);
}

TEST(Andreas, ASmallWindowEndsEveryJobTooAndSeedsGiveTheSameAgain) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 40; ++i)
    jobs.push_back({.submit = i * 7.0, .gpus = 1 + i % 3, .duration = 50.0 + 13 * (i % 5)});
  Scenario scenario = rigid("2x4", jobs);
  scenario.settings = {{"window", "2"}, {"effort", "200"}};
  const Outcome outcome = run(scenario);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
  EXPECT_EQ(run(scenario).digest, outcome.digest);
}

TEST(Andreas, BootsANodeForAJobThatWantsCoresAlone) {
  Scenario scenario = rigid("2x2", {{.submit = 0, .duration = 100},
                                    {.submit = 1000, .duration = 50, .cpus = 2, .gpu_milli = 0}});
  scenario.node_cpus = 8;
  scenario.placement = "fgd";
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.state[1], JobState::Completed);
  EXPECT_EQ(outcome.finish[1], 1000 + 120 + 50);
}

TEST(Andreas, RefusesSettingsThatMakeNoSense) {
  EXPECT_FALSE(make_policy("andreas", {{"period", "0"}}));
  EXPECT_FALSE(make_policy("andreas", {{"pue", "0.5"}}));
  EXPECT_FALSE(make_policy("andreas", {{"max_it", "0"}}));
  EXPECT_FALSE(make_policy("andreas", {{"p_best", "1.5"}}));
  EXPECT_FALSE(make_policy("andreas", {{"elastic", "some"}}));
}

}  // namespace
}  // namespace berth::test
