// The placement `topology` in whole runs.
#include <gtest/gtest.h>

#include <bit>

#include "support/run.h"

namespace berth::test {
namespace {

/// Strict at four GPUs (as VGG16), and one that does not care (as ResNet-50).
ProfileSet two_classes() {
  ProfileSet profiles;
  Profile wide;
  wide.name = "wide";
  wide.iteration = {.alpha = 0.20, .beta = 0, .gradient_bytes = 528e6, .overlap = 2};
  Profile calm;
  calm.name = "calm";
  calm.iteration = {.alpha = 0.18, .beta = 0, .gradient_bytes = 98e6, .overlap = 2};
  profiles.add(wide);
  profiles.add(calm);
  return profiles;
}

/// Where the only job goes on a cluster with some devices taken; "none" if it waits.
std::string placed(const std::string& model, std::int32_t gpus,
                   const std::vector<std::uint64_t>& taken) {
  const Cluster cluster =
      *parse_cluster_yaml("groups: [{count: 4, gpus: 4, switches: 2, nodes_per_rack: 2}]", "c");
  ClusterState state(cluster, ClusterState::Mode::Devices);
  state.track_topology();
  const Shape nothing{};
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    const Slice slice{NodeId{i}, std::popcount(taken[i]), taken[i]};
    if (taken[i] != 0) state.take(std::span(&slice, 1), nothing);
  }
  const auto placement =
      make_placement("topology", {.profiles = std::make_shared<const ProfileSet>(two_classes())});
  JobRequest request;
  request.gpus = gpus;
  Shape shape;
  shape.gpus = gpus;
  shape.locality = (*placement)->locality_of(request, model);
  Rng rng(1);
  std::vector<Slice> slices;
  if (!(*placement)->place(state, shape, PoolId{0}, rng, slices)) return "none";
  std::string text;
  for (const Slice& slice : slices)
    text += (text.empty() ? "" : " ") + std::to_string(slice.node.value) + "/" +
            std::to_string(slice.devices);
  return text;
}

TEST(TopologyPlacement, TakesTheClosestDevicesThereAre) {
  EXPECT_EQ(placed("calm", 2, {}), "0/3");
  EXPECT_EQ(placed("calm", 2, {0b1010, 0b0110, 0b1100, 0}), "2/3");  // a whole switch, tight server
  EXPECT_EQ(placed("calm", 4, {1, 1, 0, 1}), "2/15");
  EXPECT_EQ(placed("calm", 4, {1, 1, 3, 3}), "2/12 3/12");  // rack 1 fits exactly
}

TEST(TopologyPlacement, WhatSpreadingHurtsWaitsForAServer) {
  EXPECT_EQ(placed("wide", 4, {1, 1, 3, 3}), "none");
  EXPECT_EQ(placed("wide", 4, {1, 1, 3, 0}), "3/15");
  EXPECT_EQ(placed("wide", 6, {1, 1, 0, 0}), "0/14 1/14");  // no server could: the tightest rack
  EXPECT_EQ(placed("wide", 6, {0, 3, 0, 0b0111}), "0/15 1/12");
  EXPECT_EQ(placed("wide", 6, {1, 0b0111, 0, 0b0111}), "none");
}

// The index follows every start and end: a run with it ends like the books say.
TEST(TopologyPlacement, RunsToTheEnd) {
  const Outcome outcome = run({.policy = "srtf",
                               .cluster = "4x4",
                               .placement = "topology",
                               .jobs = {{.gpus = 8, .duration = 100},
                                        {.submit = 10, .gpus = 4, .duration = 10},
                                        {.submit = 10, .gpus = 6, .duration = 20},
                                        {.submit = 11, .gpus = 16, .duration = 5},
                                        {.submit = 12, .gpus = 1, .duration = 50}}});
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
}

// Reservations look ahead on a state of their own that has no index.
TEST(TopologyPlacement, WorksOnStatesWithoutAnIndex) {
  for (const std::string policy : {"easy", "conservative"}) {
    const Outcome outcome = run({.policy = policy,
                                 .cluster = "2x4",
                                 .placement = "topology",
                                 .jobs = {{.gpus = 6, .duration = 10},
                                          {.submit = 1, .gpus = 8, .duration = 10},
                                          {.submit = 2, .gpus = 2, .duration = 5}}});
    EXPECT_EQ(outcome.start[2], 2) << policy;
    EXPECT_EQ(outcome.start[1], 10) << policy;
  }
}

// Two halves of eight slots share a device, a third one opens the next; a device that is never
// shared takes one job, however small.
TEST(TopologyPlacement, FractionsFillTheTightestDevice) {
  const std::vector<JobSpec> halves{{.duration = 10, .gpu_milli = 500},
                                    {.duration = 10, .gpu_milli = 400},
                                    {.duration = 10, .gpu_milli = 500},
                                    {.duration = 10}};
  Scenario scenario{
      .policy = "fifo-skip", .cluster = "1x2", .placement = "topology", .jobs = halves};
  EXPECT_EQ(run(scenario).start, (std::vector<double>{0, 0, 0, 10}));
  scenario.cluster = "1x3";
  EXPECT_EQ(run(scenario).start, (std::vector<double>{0, 0, 0, 0}));
  scenario.cluster = "1x2:tpu-v4";
  EXPECT_EQ(run(scenario).start, (std::vector<double>{0, 0, 10, 10}));
  scenario.cluster = "1x2";
  scenario.node_cpus = 4;
  for (JobSpec& job : scenario.jobs) job.cpus = 2;
  EXPECT_EQ(run(scenario).start, (std::vector<double>{0, 0, 10, 10}));
}

}  // namespace
}  // namespace berth::test
