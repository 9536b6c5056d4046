// The policy `agents` on clusters with several arbiters: who owns what, what they exchange, and
// that nobody waits beside devices of another pod for longer than that takes.
#include <gtest/gtest.h>

#include <map>

#include "policies/agents/pods.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

using agents::PodId;
using agents::Pods;

Pods pods_of(const Cluster& cluster, std::int64_t devices) {
  return Pods(ClusterState(cluster, ClusterState::Mode::Devices), devices);
}

TEST(Pods, AreWholeRacksWhileTheyFit) {
  const Cluster cluster =
      *parse_cluster_yaml("groups: [{count: 6, gpus: 4, nodes_per_rack: 2}]", "c");
  const Pods two_racks = pods_of(cluster, 20);  // 8 + 8 fit, 8 more do not
  ASSERT_EQ(two_racks.size(), 2U);
  EXPECT_EQ(two_racks.nodes(PodId{0}).size(), 4U);
  EXPECT_EQ(two_racks.pod_of(NodeId{4}), PodId{1});
  EXPECT_EQ(two_racks.root(), PodId{2});
  const Pods servers = pods_of(cluster, 4);  // a rack is larger than a pod
  EXPECT_EQ(servers.size(), 6U);
  const Pods one = pods_of(cluster, 24);
  EXPECT_FALSE(one.is_divided());
  EXPECT_EQ(one.root(), PodId{0});
}

TEST(Pods, AJobIsAtHomeWhereItCouldEverFit) {
  const Cluster cluster = *parse_cluster_short("2x4,1x8");
  const Pods pods = pods_of(cluster, 8);  // {4 + 4}, {8}
  ASSERT_EQ(pods.size(), 2U);
  Shape shape;
  shape.pools = {PoolId{0}};
  shape.gpus = 8;
  EXPECT_EQ(pods.home(JobId{3}, shape), PodId{1});
  EXPECT_EQ(pods.home(JobId{4}, shape), PodId{0});
  shape.gpus = 9;
  EXPECT_EQ(pods.home(JobId{3}, shape), pods.root());
  const std::vector<Slice> across{{NodeId{0}, 1, 1}, {NodeId{2}, 1, 1}};
  EXPECT_EQ(pods.pod_of(across), pods.root());
  EXPECT_EQ(pods.pod_of(std::span(across).first(1)), PodId{0});
}

/// Two servers that are a pod each. Jobs are at home in turn, so the first and third are in the
/// same.
Scenario two_pods() {
  return {.policy = "agents",
          .settings = {{"pod_devices", "4"}},
          .cluster = "2x4",
          .placement = "topology",
          .jobs = {{.gpus = 4, .duration = 1000},
                   {.gpus = 4, .duration = 12},
                   {.submit = 1, .gpus = 4, .duration = 50}}};
}

// Exchanges are at 0, 10 and 20: the place that came free at 12 in the other pod is found at 20.
TEST(AgentsPods, AHeadThatWaitsIsTriedElsewhereAtTheNextExchange) {
  Scenario scenario = two_pods();
  EXPECT_EQ(run(scenario).start[2], 20);
  scenario.settings.push_back({"exchange", "0"});
  EXPECT_EQ(run(scenario).start[2], 12);
  scenario.settings.back() = {"exchange", "7"};
  EXPECT_EQ(run(scenario).start[2], 14);
}

TEST(AgentsPods, OneArbiterFindsItAtOnce) {
  Scenario scenario = two_pods();
  scenario.settings = {};
  EXPECT_EQ(run(scenario).start[2], 12);
}

TEST(AgentsPods, TheRootStartsGangsLargerThanAPod) {
  const Outcome outcome = run({.policy = "agents",
                               .settings = {{"pod_devices", "4"}},
                               .cluster = "4x4",
                               .placement = "topology",
                               .jobs = {{.gpus = 12, .duration = 100},
                                        {.gpus = 4, .duration = 30},
                                        {.submit = 1, .gpus = 16, .duration = 10}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 100}));
}

// All pods are held for long; the leases that end at 10 are for sale to the root's gang as well.
TEST(AgentsPods, TheRootSellsEndedLeasesOfAllPods) {
  Scenario scenario{.policy = "agents",
                    .settings = {{"pod_devices", "4"}, {"lease", "10"}, {"interval", "2"}},
                    .cluster = "4x4",
                    .placement = "topology",
                    .jobs = {}};
  for (int i = 0; i < 4; ++i) scenario.jobs.push_back({.gpus = 4, .duration = 1000});
  scenario.jobs.push_back({.submit = 1, .gpus = 8, .duration = 5});
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start[4], 10);
  EXPECT_EQ(outcome.total_preemptions, 2);
  EXPECT_EQ(outcome.migrations, std::vector<int>(5, 0));
}

// A gang that needs everything waits with the root all the time. The leases that end meanwhile are
// for sale in their pods all the same.
TEST(AgentsPods, AGangThatWaitsWithTheRootDoesNotKeepLeasesFromThePods) {
  const Outcome outcome =
      run({.policy = "agents",
           .settings = {{"pod_devices", "4"}, {"lease", "30"}, {"interval", "5"}},
           .cluster = "2x4",
           .placement = "topology",
           .jobs = {{.gpus = 4, .duration = 2000},
                    {.gpus = 4, .duration = 10'000},
                    {.submit = 1, .gpus = 8, .duration = 500},
                    {.submit = 31, .gpus = 4, .duration = 5}}});
  EXPECT_LE(outcome.start[3], 61);
}

// One pod has a queue, in the other nobody waits and its job is long: who waits goes over and gets
// the lease that ends there.
TEST(AgentsPods, AHeadGoesOverToAPodWhereNobodyWaits) {
  const Outcome outcome = run({.policy = "agents",
                               .settings = {{"pod_devices", "4"}, {"lease", "30"}},
                               .cluster = "1x4,1x2",
                               .placement = "topology",
                               .jobs = {{.gpus = 4, .duration = 2000},
                                        {.gpus = 2, .duration = 2000},
                                        {.submit = 1, .gpus = 2, .duration = 5},
                                        {.submit = 1, .gpus = 2, .duration = 5},
                                        {.submit = 1, .gpus = 2, .duration = 5}}});
  EXPECT_GE(outcome.preemptions[1], 1);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_LE(outcome.finish[i], 120) << i;
}

/// How long jobs wait although they fit by numbers.
class Watch final : public Observer {
 public:
  void append(Time, const Action&) override {}
  void instant_done(Time now) override {
    const JobTable& jobs = engine->jobs();
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const bool fits =
          jobs.is_waiting(JobId{i}) && trace->jobs[i].gpus <= engine->cluster().free_gpus();
      if (!fits) {
        since_.erase(i);
        continue;
      }
      const Time since = since_.try_emplace(i, now).first->second;
      longest = std::max(longest, to_seconds(now - since));
    }
  }
  double longest = 0;

 private:
  std::map<std::uint32_t, Time> since_;
};

TEST(AgentsPods, NothingThatFitsWaitsPastOneExchange) {
  double longest = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 40, .fractions = seed % 2 == 0});
    Rng rng(seed);
    scenario.cluster = seed % 3 == 0 ? "6x4" : seed % 3 == 1 ? "3x8" : "9x2";
    for (JobSpec& job : scenario.jobs) job.gpus = 1 + static_cast<int>(rng.below(18));
    scenario.policy = "agents";
    scenario.placement = "topology";
    scenario.settings = {
        {"pod_devices", "8"}, {"lease", "9"}, {"interval", "4"}, {"exchange", "3"}};
    if (seed % 4 == 1)
      scenario.sim.outages = {{NodeId{0}, seconds_to_time(6), seconds_to_time(15)}};
    Watch watch;
    const Outcome outcome = run(scenario, &watch);
    for (const JobState state : outcome.state)
      ASSERT_EQ(state, JobState::Completed) << "seed " << seed;
    ASSERT_LE(watch.longest, 3) << "seed " << seed;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    longest = std::max(longest, watch.longest);
  }
  EXPECT_GT(longest, 0) << "the exchange had something to do";
}

}  // namespace
}  // namespace berth::test
