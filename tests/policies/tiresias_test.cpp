// The worked examples of Tiresias: the Gittins index, both orders, promotion, restart costs,
// placement.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "perf/rate.h"
#include "placements/placements.h"
#include "policies/tiresias/gittins.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

using namespace tiresias;

GittinsTable table_of(std::initializer_list<double> samples) {
  GittinsTable table{5000};
  for (const double sample : samples) table.add(sample);
  table.refresh();
  return table;
}

TEST(Gittins, IndexOfFourSamples) {
  const GittinsTable table = table_of({2, 4, 8, 8});
  EXPECT_DOUBLE_EQ(table.best_index(0), 2.0 / 11);  // D = 8
  EXPECT_DOUBLE_EQ(table.best_index(1), 1.0 / 4);   // D = 1
  EXPECT_DOUBLE_EQ(table.best_index(2), 3.0 / 14);  // D = 6
  EXPECT_DOUBLE_EQ(table.best_index(4), 1.0 / 4);   // D = 4
  EXPECT_DOUBLE_EQ(table.best_index(8), 0);         // no job was longer
  EXPECT_DOUBLE_EQ(table.index(0, 4), 1.0 / 7);
  EXPECT_DOUBLE_EQ(table.index(1, 4), 1.0 / 6);
  EXPECT_DOUBLE_EQ(table.index(2, 4), 1.0 / 10);
  EXPECT_DOUBLE_EQ(table.index(4, 4), 1.0 / 4);
  EXPECT_DOUBLE_EQ(table.index(8, 4), 0);
  EXPECT_DOUBLE_EQ(table.index(0, 2), 1.0 / 8);
  EXPECT_DOUBLE_EQ(table.index(0, 8), 2.0 / 11);
}

TEST(Gittins, IndexOfOtherSamples) {
  const GittinsTable many_short = table_of({1, 1, 1, 1, 1, 1, 1, 1, 10, 10});
  EXPECT_DOUBLE_EQ(many_short.best_index(0), 4.0 / 5);
  EXPECT_DOUBLE_EQ(many_short.best_index(1), 1.0 / 9);
  EXPECT_DOUBLE_EQ(many_short.index(0, 4), 1.0 / 2);
  EXPECT_DOUBLE_EQ(many_short.index(1, 4), 0);
  const GittinsTable one_long = table_of({3, 6, 6, 100});
  EXPECT_DOUBLE_EQ(one_long.best_index(0), 1.0 / 7);
  EXPECT_DOUBLE_EQ(one_long.best_index(1), 3.0 / 17);
  EXPECT_DOUBLE_EQ(one_long.best_index(3), 2.0 / 9);
  EXPECT_DOUBLE_EQ(one_long.best_index(6), 1.0 / 94);
}

TEST(Gittins, KeepsOnlyTheLastSamples) {
  GittinsTable table{3};
  for (const double sample : {100.0, 2.0, 4.0, 8.0}) table.add(sample);  // 100 falls out
  table.refresh();
  EXPECT_EQ(table.samples(), 3U);
  EXPECT_DOUBLE_EQ(table.best_index(8), 0);
}

const std::vector<JobSpec> kThree{{0, 1, 10}, {1, 2, 3}, {3, 1, 2}};

TEST(TiresiasL, ProtectsRunnersOfTheSameQueue) {
  const Outcome outcome = run({.policy = "tiresias-l",
                               .settings = {{"thresholds", "4"}},
                               .cluster = "1x2",
                               .jobs = kThree});
  EXPECT_EQ(outcome.finish, (std::vector<double>{12, 13, 5}));
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{1, 1, 0}));
  EXPECT_EQ(outcome.sum_jct, 26);
}

TEST(TiresiasL, PaysARestartOnEveryResume) {
  SimOptions sim;
  sim.costs.resume = std::chrono::seconds{1};
  const Outcome outcome = run({.policy = "tiresias-l",
                               .settings = {{"thresholds", "4"}},
                               .cluster = "1x2",
                               .jobs = kThree,
                               .sim = sim});
  EXPECT_EQ(outcome.finish, (std::vector<double>{13, 15, 5}));
  const Outcome six =
      run({.policy = "tiresias-l", .settings = {{"thresholds", "12"}}, .jobs = t6(), .sim = sim});
  EXPECT_EQ(six.finish, (std::vector<double>{25, 8, 30, 15, 15, 12}));
  EXPECT_EQ(six.sum_jct, 90);
}

TEST(TiresiasL, OnT6) {
  const Outcome twelve =
      run({.policy = "tiresias-l", .settings = {{"thresholds", "12"}}, .jobs = t6()});
  EXPECT_EQ(twelve.finish, (std::vector<double>{24, 8, 28, 15, 15, 12}));
  EXPECT_EQ(twelve.sum_jct, 87);
  EXPECT_EQ(twelve.preemptions, (std::vector<int>{1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(twelve.start, (std::vector<double>{0, 4, 15, 3, 4, 8}));
  const Outcome sixes =
      run({.policy = "tiresias-l", .settings = {{"thresholds", "6"}}, .jobs = t6()});
  EXPECT_EQ(sixes.finish, (std::vector<double>{18.5, 19.5, 28, 17.5, 22.5, 9}));
  EXPECT_EQ(sixes.sum_jct, 100);
  EXPECT_EQ(sixes.total_preemptions, 6);
  const Outcome three =
      run({.policy = "tiresias-l", .settings = {{"thresholds", "6,12"}}, .jobs = t6()});
  EXPECT_EQ(three.finish, (std::vector<double>{25, 13.5, 29, 17.5, 17.5, 9}));
  EXPECT_EQ(three.sum_jct, 96.5);
  EXPECT_EQ(three.total_preemptions, 8);
}

const std::vector<JobSpec> kFive{{0, 2, 6}, {2, 2, 2}, {4, 2, 2}, {6, 2, 2}, {8, 2, 2}};

TEST(TiresiasL, PromotesAJobThatWaitedTooLong) {
  const auto with_knob = [&](const std::string& knob) {
    return run({.policy = "tiresias-l",
                .settings = {{"thresholds", "4"}, {"promote_knob", knob}},
                .cluster = "1x2",
                .jobs = kFive});
  };
  EXPECT_EQ(with_knob("off").finish, (std::vector<double>{14, 4, 6, 8, 10}));
  EXPECT_EQ(with_knob("off").sum_jct, 22);
  const Outcome two = with_knob("2");
  EXPECT_EQ(two.finish, (std::vector<double>{14, 4, 6, 8, 12}));
  EXPECT_EQ(two.sum_jct, 24);
  EXPECT_EQ(two.preemptions[0], 2);
  const Outcome one = with_knob("1");
  EXPECT_EQ(one.finish, (std::vector<double>{14, 4, 6, 10, 12}));
  EXPECT_EQ(one.sum_jct, 26);
  EXPECT_EQ(one.preemptions[0], 2);
}

// Two GPUs for 2 s are the 4 GPU-seconds of the threshold: the end comes first, nobody is demoted.
TEST(TiresiasL, AJobThatEndsAtItsThresholdIsDone) {
  const Outcome outcome = run({.policy = "tiresias-l",
                               .settings = {{"thresholds", "4"}},
                               .cluster = "1x2",
                               .jobs = {{0, 2, 2}, {1, 2, 1}}});
  EXPECT_EQ(outcome.finish, (std::vector<double>{2, 3}));
  EXPECT_EQ(outcome.total_preemptions, 0);
}

// The node is down from 3 to 5. A comes back to the tail of the first queue, before B who comes at
// 4, with 3 of its 4 GPU-seconds used: it falls at 6, B runs 6-8, A 8-14. With its service
// forgotten it would run 5-9.
TEST(TiresiasL, AfterALostRunServiceCountsAndThePlaceIsAtTheTail) {
  Scenario scenario{.policy = "tiresias-l",
                    .settings = {{"thresholds", "4"}},
                    .cluster = "1x1",
                    .jobs = {{0, 1, 10}, {4, 1, 2}}};
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(3), seconds_to_time(5)}};
  EXPECT_EQ(run(scenario).finish, (std::vector<double>{14, 8}));
  scenario.jobs[1].submit = 2;  // it was there before A came back
  EXPECT_EQ(run(scenario).finish, (std::vector<double>{14, 7}));
}

// Passes at 0, 10, 20, 30: A crosses both thresholds between two of them and falls to the third
// queue at once; B runs from 10, the third job from 20, and A goes on at 30 with 20 s left.
TEST(TiresiasL, BetweenDistantPassesAJobMayFallThroughSeveralQueues) {
  Scenario scenario{.policy = "tiresias-l",
                    .settings = {{"thresholds", "2,4"}},
                    .cluster = "1x1",
                    .jobs = {{0, 1, 30}, {1, 1, 3}, {11, 1, 3}}};
  EXPECT_EQ(run(scenario).start[1], 2);
  scenario.settings.push_back({"min_interval", "10"});
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start[1], 10);
  EXPECT_EQ(outcome.start[2], 20);
  EXPECT_EQ(outcome.finish[0], 50);
}

TEST(TiresiasModels, SkewIsTheLargestTensorOverTheModel) {
  constexpr std::array<std::pair<const char*, double>, 9> kSkews{{{"VGG19", 0.717},
                                                                  {"VGG16", 0.744},
                                                                  {"VGG11", 0.774},
                                                                  {"AlexNet", 0.611},
                                                                  {"ResNet-152", 0.060},
                                                                  {"ResNet-101", 0.075},
                                                                  {"ResNet-50", 0.112},
                                                                  {"Inception4", 0.044},
                                                                  {"Inception3", 0.138}}};
  for (const auto& [model, skew] : kSkews) EXPECT_NEAR(model_skew(model), skew, 5e-4) << model;
  EXPECT_EQ(model_skew("nobody knows it"), 0);
  EXPECT_EQ(kSkewLimit, 0.5);
}

TEST(TiresiasModels, ASpreadGangOfASkewedModelRunsAtThreeFifths) {
  Scenario scenario{.policy = "tiresias-l", .cluster = "2x2", .placement = "spread", .jobs = {}};
  scenario.sim.spread = SpreadCost::ByModel;
  scenario.jobs = {{.submit = 0, .gpus = 2, .duration = 60, .model = "vgg16"}};
  EXPECT_NEAR(run(scenario).finish[0], 100, 1e-3);
  scenario.jobs[0].model = "resnet50";
  EXPECT_NEAR(run(scenario).finish[0], 60 / 0.95, 1e-3);
  scenario.placement = "best-fit";
  EXPECT_EQ(run(scenario).finish[0], 60) << "on the fewest nodes";
}

TEST(TiresiasG, EvictsARunnerWithALowerIndex) {
  const std::vector<JobSpec> jobs{{0, 2, 10}, {2, 2, 1}};
  const Outcome las = run(
      {.policy = "tiresias-l", .settings = {{"thresholds", "8"}}, .cluster = "1x2", .jobs = jobs});
  EXPECT_EQ(las.finish, (std::vector<double>{11, 5}));
  EXPECT_EQ(las.sum_jct, 14);
  const Outcome gittins =
      run({.policy = "tiresias-g",
           .settings = {{"thresholds", "8"}, {"samples", "2,2,2,20"}, {"min_samples", "1"}},
           .cluster = "1x2",
           .jobs = jobs});
  EXPECT_EQ(gittins.finish, (std::vector<double>{11, 3}));
  EXPECT_EQ(gittins.sum_jct, 12);
}

TEST(TiresiasG, BehavesLikeLasWithoutHistory) {
  const Settings settings{{"thresholds", "12"}};
  EXPECT_EQ(run({.policy = "tiresias-g", .settings = settings, .jobs = t6()}).digest,
            run({.policy = "tiresias-l", .settings = settings, .jobs = t6()}).digest);
}

class SkewPlacement : public ::testing::Test {  // node 0 has 2 free GPUs, node 1 has 3
 protected:
  SkewPlacement() {
    const std::vector<Slice> taken{{NodeId{0}, 2, 0b0011}, {NodeId{1}, 1, 0b0001}};
    state_.take(taken, Shape{});
  }
  std::vector<Slice> place(const std::string& model, int gpus) {
    TraceJob job;
    job.gpus = gpus;
    Shape shape{.gpus = gpus, .locality = skew_->locality_of(job, model), .pools = {PoolId{0}}};
    std::vector<Slice> slices;
    Rng rng;
    if (!skew_->place(state_, shape, PoolId{0}, rng, slices)) slices.clear();
    return slices;
  }
  Cluster cluster_ = *parse_cluster_short("2x4");
  ClusterState state_{cluster_, ClusterState::Mode::Devices};
  std::unique_ptr<Placement> skew_ = *make_placement("skew");
};

TEST_F(SkewPlacement, ASkewedModelWaitsForAWholeNode) { EXPECT_TRUE(place("VGG16", 4).empty()); }

TEST_F(SkewPlacement, AnyOtherModelFillsTheFullestNodesFirst) {
  const auto slices = place("ResNet-50", 4);
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].node, NodeId{0});
  EXPECT_EQ(slices[0].gpus, 2);
  EXPECT_EQ(slices[1].node, NodeId{1});
  EXPECT_EQ(slices[1].gpus, 2);
}

// Two racks of two nodes with two GPUs. A rack if one holds the gang, else as few as can be.
TEST(SkewRacks, AGangStaysUnderOneSwitchIfItCan) {
  Cluster cluster = *parse_cluster_short("4x2");
  cluster.racks = {"a", "b"};
  cluster.nodes[2].rack = cluster.nodes[3].rack = RackId{1};
  const auto racks_of = [&](std::int32_t gpus, std::span<const Slice> taken) {
    ClusterState state{cluster, ClusterState::Mode::Devices};
    if (!taken.empty()) state.take(taken, Shape{});
    const auto skew = *make_placement("skew");
    Rng rng;
    std::vector<Slice> slices;
    const Shape shape{.gpus = gpus, .locality = Locality::Consolidated, .pools = {PoolId{0}}};
    std::vector<std::uint32_t> racks;
    if (!skew->place(state, shape, PoolId{0}, rng, slices)) return racks;
    for (const Slice& slice : slices) racks.push_back(cluster.nodes[slice.node.value].rack.value);
    std::ranges::sort(racks);
    racks.erase(std::unique(racks.begin(), racks.end()), racks.end());
    return racks;
  };
  const std::array<Slice, 1> first{{{NodeId{0}, 2, 0b11}}};
  EXPECT_EQ(racks_of(4, first), (std::vector<std::uint32_t>{1})) << "the other rack is whole";
  EXPECT_EQ(racks_of(6, {}), (std::vector<std::uint32_t>{0, 1})) << "larger than a rack: both";
}

TEST_F(SkewPlacement, WhatFitsOneNodeGoesBestFit) {
  const auto slices = place("Inception3", 2);
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].node, NodeId{0});
}

/// 2 x 4 GPUs. Jobs 1 and 3 hold two GPUs of one node each, long since in the second queue, when
/// VGG16 comes for four: there are four free, but on no single node.
Scenario fragmented(const std::string& policy, const std::string& evict) {
  Scenario scenario;
  scenario.policy = policy;
  scenario.settings = {{"thresholds", "4"}, {"evict_for_consolidation", evict}};
  scenario.cluster = "2x4";
  scenario.placement = "skew";
  scenario.jobs = {{.submit = 0, .gpus = 2, .duration = 40, .model = "resnet50"},
                   {.submit = 0, .gpus = 2, .duration = 5, .model = "resnet50"},
                   {.submit = 1, .gpus = 2, .duration = 30, .model = "resnet50"},
                   {.submit = 10, .gpus = 4, .duration = 3, .model = "vgg16"}};
  return scenario;
}

TEST(TiresiasConsolidation, AGangWithoutNodesWaitsIfNobodyIsToMakeWay) {
  const Outcome outcome = run(fragmented("tiresias-l", "off"));
  EXPECT_DOUBLE_EQ(outcome.start[3], 31);  // job 3 ends
  EXPECT_EQ(outcome.total_preemptions, 0);
}

// Job 3 has run for 9 s and job 1 for 10: the last granted loses less. It goes on at once on the
// other node.
TEST(TiresiasConsolidation, AGangTakesTheNodeOfALowerQueue) {
  for (const std::string policy : {"tiresias-l", "tiresias-g"}) {
    Scenario scenario = fragmented(policy, "on");
    scenario.settings.pop_back();  // it is the default
    const Outcome outcome = run(scenario);
    EXPECT_DOUBLE_EQ(outcome.start[3], 10) << policy;
    EXPECT_EQ(outcome.migrations, (std::vector<int>{0, 0, 1, 0})) << policy;
    EXPECT_EQ(outcome.total_preemptions, 0) << policy;
    EXPECT_DOUBLE_EQ(outcome.finish[2], 31) << policy;
  }
}

TEST(TiresiasConsolidation, NobodyOfTheSameQueueGivesWay) {
  Scenario scenario = fragmented("tiresias-l", "on");
  scenario.settings = {{"thresholds", "1000"}, {"evict_for_consolidation", "on"}};
  const Outcome outcome = run(scenario);
  EXPECT_DOUBLE_EQ(outcome.start[3], 31);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(TiresiasConsolidation, EverybodyEndsOnRandomWorkloads) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 20, .many_nodes = true});
    scenario.policy = seed % 2 == 0 ? "tiresias-l" : "tiresias-g";
    scenario.placement = seed % 3 == 0 ? "consolidated" : "skew";
    scenario.settings = {{"thresholds", "6,20"},
                         {"promote_knob", seed % 5 == 0 ? "2" : "off"},
                         {"evict_for_consolidation", "on"}};
    if (scenario.policy == "tiresias-g") scenario.settings.push_back({"min_samples", "3"});
    const Outcome outcome = run(scenario);
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
      ASSERT_EQ(outcome.state[i], JobState::Completed) << "seed " << seed;
      ASSERT_NEAR(outcome.held[i], scenario.jobs[i].duration, 1e-9) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace berth::test
