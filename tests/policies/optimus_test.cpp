// Optimus in the engine: intervals, growth and its price, where remaining work comes from.
#include <gtest/gtest.h>

#include <vector>

#include "support/run.h"

namespace berth::test {
namespace {

/// A model that scales perfectly, so that w GPUs train w times as fast.
ProfileSet perfect() {
  ProfileSet profiles;
  profiles.edit(ProfileSet::fallback()).iteration = {
      .alpha = 0, .beta = 0.01, .gradient_bytes = 0, .overlap = 2};
  return profiles;
}

Scenario optimus(std::string cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  Scenario scenario;
  scenario.policy = "optimus";
  scenario.settings = std::move(settings);
  scenario.cluster = std::move(cluster);
  scenario.placement = "best-fit";
  scenario.jobs = std::move(jobs);
  scenario.profiles = perfect();
  scenario.edit_cluster = [](Cluster& cluster_to_edit) {
    auto& links = cluster_to_edit.links;
    links.pcie_latency = links.socket_latency = links.nvlink_latency = 0;
  };
  return scenario;
}

/// The devices of every start and resize.
class Grants final : public Observer {
 public:
  void append(Time now, const Action& action) override {
    if (!begins_stretch(action.kind) && !changes_devices(action.kind)) return;
    Grant grant{to_seconds(now), action.job.value, action.gpus, {}};
    for (const Slice& slice : action.slices) grant.by_server.push_back(slice.gpus);
    seen.push_back(grant);
  }
  struct Grant {
    double at;
    std::uint32_t job;
    int gpus;
    std::vector<int> by_server;
  };
  std::vector<Grant> seen;
};

TEST(Optimus, AtAnIntervalAJobGetsAllThatMakesItFaster) {
  const Outcome outcome = run(optimus("1x4", {{.gpus = 1, .duration = 100}}));
  EXPECT_NEAR(outcome.finish[0], 25, 1e-3);  // 32 samples as 8 on each of 4 GPUs
}

TEST(Optimus, GrowsNoFurtherThanItsLimitOrRange) {
  const std::vector<JobSpec> jobs{{.gpus = 1, .duration = 100}};
  EXPECT_NEAR(run(optimus("1x4", jobs, {{"max_gpus", "2"}})).finish[0], 50, 1e-3);
  EXPECT_NEAR(run(optimus("1x4", jobs, {{"elastic", "declared"}})).finish[0], 100, 1e-3);
}

TEST(Optimus, BetweenIntervalsAJobStartsWithOneWorkerAndGrowsAtTheNext) {
  Grants grants;
  const Outcome outcome =
      run(optimus("1x4", {{.submit = 10, .gpus = 2, .duration = 1000}}), &grants);
  ASSERT_EQ(grants.seen.size(), 2U);
  EXPECT_EQ(grants.seen[0].gpus, 1);
  EXPECT_EQ(grants.seen[1].gpus, 4);
  EXPECT_EQ(grants.seen[1].at, 600);
  // Half speed for 590 s, 30 s of restart, then the 705 s left at twice the speed it asked for.
  EXPECT_NEAR(outcome.finish[0], 600 + 30 + 705.0 / 2, 1e-2);
  EXPECT_NEAR(outcome.overhead[0], 30, 1e-6);
}

TEST(Optimus, OrItWaitsForTheNextInterval) {
  const Outcome outcome =
      run(optimus("1x4", {{.submit = 10, .gpus = 1, .duration = 100}}, {{"start", "interval"}}));
  EXPECT_EQ(outcome.start[0], 600);
  EXPECT_NEAR(outcome.finish[0], 625, 1e-3);
}

TEST(Optimus, GpusGoWhereTheyShortenTheRemainingTimeMost) {
  // 1 -> 2 GPUs saves 50 s of 100 and 5,000 of 10,000; 2 -> 3 of the long one 1,667.
  Grants grants;
  static_cast<void>(run(optimus("1x4", {{.gpus = 1, .duration = 100, .batch = 48},
                                        {.gpus = 1, .duration = 10000, .batch = 48}}),
                        &grants));
  ASSERT_GE(grants.seen.size(), 2U);
  EXPECT_EQ(grants.seen[0].gpus, 1);
  EXPECT_EQ(grants.seen[1].gpus, 3);
}

TEST(Optimus, ASavingBelowTheOverheadIsNotWorthAResize) {
  const std::vector<JobSpec> jobs{{.submit = 10, .gpus = 1, .duration = 600}};  // 10 s left at 600
  const Outcome stays = run(optimus("1x4", jobs, {{"work", "estimate"}}));
  EXPECT_NEAR(stays.finish[0], 610, 1e-3);
  const Outcome grows = run(optimus("1x4", jobs, {{"work", "estimate"}, {"overhead", "1"}}));
  EXPECT_NEAR(grows.finish[0], 600 + 1 + 10.0 / 4, 1e-3);
}

TEST(Optimus, ALaterJobGivesWayToAGangThatCameBeforeIt) {
  const Outcome outcome = run(optimus("1x4",
                                      {{.submit = 10, .gpus = 2, .duration = 200},
                                       {.submit = 20, .gpus = 4, .duration = 100},
                                       {.submit = 30, .gpus = 2, .duration = 1000}},
                                      {{"elastic", "declared"}}));
  EXPECT_EQ(outcome.start[1], 600);
  EXPECT_EQ(outcome.preemptions[2], 1);
  // 570 s, then from 700 on, when the gang is done, 30 s to restart and the 430 s left.
  EXPECT_NEAR(outcome.finish[2], 700 + 30 + 430, 1e-2);
}

// The job that promises to be long has three of four GPUs at first; it keeps them to its end unless
// losses show that both are alike.
TEST(Optimus, LossesCorrectAWrongEstimate) {
  const auto second_grows_at = [](const std::string& work) {
    Scenario scenario = optimus("1x4",
                                {{.gpus = 1, .duration = 20000, .estimate = 10000000, .batch = 48},
                                 {.gpus = 1, .duration = 20000, .estimate = 20000, .batch = 48}},
                                {{"work", work}});
    scenario.estimator = "limit";
    Grants grants;
    static_cast<void>(run(scenario, &grants));
    for (const Grants::Grant& grant : grants.seen) {
      if (grant.job == 1 && grant.gpus > 1) return grant.at;
    }
    return 0.0;
  };
  EXPECT_EQ(second_grows_at("estimate"), 7200);  // the first ends at 20,000 s / 3
  EXPECT_GT(second_grows_at("losses"), 0);
  EXPECT_LT(second_grows_at("losses"), 4000);
}

TEST(Optimus, EvenPlacementPutsAsManyOnEachServer) {
  Grants grants;
  static_cast<void>(run(
      optimus("2x4", {{.gpus = 6, .duration = 100}}, {{"elastic", "declared"}, {"place", "even"}}),
      &grants));
  ASSERT_EQ(grants.seen.size(), 1U);
  EXPECT_EQ(grants.seen[0].by_server, (std::vector<int>{3, 3}));
}

TEST(Optimus, ACurveThroughSampleRunsServesAsWellAsTheProfile) {
  const std::vector<JobSpec> jobs{{.gpus = 1, .duration = 1000, .batch = 48},
                                  {.gpus = 2, .duration = 3000, .batch = 96},
                                  {.submit = 700, .gpus = 4, .duration = 500, .batch = 192}};
  const Outcome profile = run(optimus("2x4", jobs));
  const Outcome fit = run(optimus("2x4", jobs, {{"speed", "fit"}}));
  EXPECT_NEAR(fit.sum_jct / profile.sum_jct, 1, 0.05);
}

TEST(Optimus, JobsOfAnyTypeSpreadOverThePools) {
  Grants grants;
  static_cast<void>(run(optimus("1x4:v100,1x4:a100", {{.gpus = 1, .duration = 900, .batch = 48},
                                                      {.gpus = 1, .duration = 900, .batch = 48}}),
                        &grants));
  ASSERT_GE(grants.seen.size(), 2U);
  EXPECT_EQ(grants.seen[0].gpus, 4);
  EXPECT_EQ(grants.seen[1].gpus, 4);
}

TEST(Optimus, SettlesWhenNothingCanRun) {
  Scenario scenario = optimus("1x1", {{.gpus = 1, .duration = 1000}});
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(100), seconds_to_time(1000000)}};
  EXPECT_NEAR(run(scenario).finish[0], 1000000 + 30 + 1000, 1000)
      << "it waits without a pass per interval";
}

}  // namespace
}  // namespace berth::test
