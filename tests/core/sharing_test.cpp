// Devices shared by several jobs, fractions of a device, and jobs that are rated again when their
// neighbourhood changes.
#include <gtest/gtest.h>

#include <bit>

#include "core/engine.h"
#include "support/run.h"

namespace berth::test::sharing_tests {
namespace {

constexpr Shape kOne{.gpus = 1,
                     .gpu_milli = 1000,
                     .cpus_milli_per_gpu = 0,
                     .memory_mib_per_gpu = 0,
                     .locality = Locality::Relaxed,
                     .pools = {}};

Slice device(std::uint32_t node, int index) {
  return {
      .node = NodeId{node}, .gpus = 1, .devices = std::uint64_t{1} << static_cast<unsigned>(index)};
}

TEST(Sharing, ADeviceIsFreeAgainWhenItsLastJobLeaves) {
  const Cluster cluster = *parse_cluster_short("2x4");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  state.track_devices();
  const std::vector<Slice> slices{device(1, 2)};
  state.take(slices, kOne, JobId{7}, {.memory_mib = 100});
  state.take(slices, kOne, JobId{9}, {.memory_mib = 50});
  EXPECT_EQ(state.free_gpus(), 7);
  EXPECT_EQ(state.jobs_on(NodeId{1}, 2).size(), 2U);
  EXPECT_EQ(state.free_memory_mib(NodeId{1}, 2), cluster.pools[0].memory_mib - 150);
  state.give(slices, kOne, JobId{7}, {.memory_mib = 100});
  EXPECT_EQ(state.free_gpus(), 7);
  state.give(slices, kOne, JobId{9}, {.memory_mib = 50});
  EXPECT_EQ(state.free_gpus(), 8);
  EXPECT_EQ(state.free_milli(PoolId{0}), 8000);
}

TEST(Sharing, FractionsAddUpToOneDevice) {
  const Cluster cluster = *parse_cluster_short("1x2");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  state.track_devices();
  Shape part = kOne;
  part.gpu_milli = 600;
  part.pools = {PoolId{0}};
  const std::vector<Slice> first{device(0, 0)};
  state.take(first, part, JobId{1}, {.memory_mib = 0, .milli = 600});
  EXPECT_EQ(state.free_milli(NodeId{0}, 0), 400);
  EXPECT_EQ(state.free_milli(PoolId{0}), 1400);
  EXPECT_FALSE(state.can_join(first, part, {.memory_mib = 0, .milli = 600}, 8));
  EXPECT_TRUE(state.can_join(first, part, {.memory_mib = 0, .milli = 400}, 8));
  const std::vector<Slice> second{device(0, 1)};
  state.take(second, kOne, JobId{2});
  EXPECT_EQ(state.free_milli(PoolId{0}), 400) << "a whole job leaves no thousandths";
}

TEST(Sharing, MemoryAndTheLimitAreRespected) {
  const Cluster cluster = *parse_cluster_short("1x1:v100");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  state.track_devices();
  const std::vector<Slice> slices{device(0, 0)};
  const auto all = static_cast<std::int32_t>(cluster.pools[0].memory_mib);
  state.take(slices, kOne, JobId{1}, {.memory_mib = all - 1000});
  EXPECT_TRUE(state.can_join(slices, kOne, {.memory_mib = 1000}, 2));
  EXPECT_FALSE(state.can_join(slices, kOne, {.memory_mib = 1001}, 2));
  EXPECT_FALSE(state.can_join(slices, kOne, {.memory_mib = 10}, 1));
}

TEST(Levels, AreTheKindOfTheLowestCommonAncestor) {
  Cluster cluster = *parse_cluster_short("4x8");
  cluster.racks = {"r0", "r1"};
  for (Node& node : cluster.nodes) node.shape = {.sockets = 2, .switches = 2, .nvlink_island = 2};
  cluster.nodes[2].rack = cluster.nodes[3].rack = RackId{1};
  const auto on = [&](std::vector<Slice> slices) {
    return ServerBuilds(cluster).level_of(std::span<const Slice>(slices));
  };
  EXPECT_EQ(on({{NodeId{0}, 1, 0b1}}), Level::Device);
  EXPECT_EQ(on({{NodeId{0}, 2, 0b11}}), Level::Nvlink);
  EXPECT_EQ(on({{NodeId{0}, 2, 0b110}}), Level::Pcie);
  EXPECT_EQ(on({{NodeId{0}, 2, 0b11000}}), Level::Server);
  EXPECT_EQ(on({{NodeId{0}, 1, 1}, {NodeId{1}, 1, 1}}), Level::Rack);
  EXPECT_EQ(on({{NodeId{0}, 1, 1}, {NodeId{2}, 1, 1}}), Level::CrossRack);
}

// The square 0-1-3-2: neighbours have a link, 0 and 3 do not, and three have no ring.
TEST(Levels, OfAMeshAreThoseOfItsRings) {
  const Cluster cluster = *parse_cluster_yaml(
      "groups: [{count: 2, gpus: 4, nvlink: [[0,25,50,0],[25,0,0,50],[50,0,0,25],[0,50,25,0]]}]",
      "c.yaml");
  const RateModel rates(ProfileSet{}, cluster, {.locality = true});
  const auto on = [&](std::uint64_t devices) {
    const std::vector<Slice> slices{{NodeId{1}, std::popcount(devices), devices}};
    return rates.servers().level_of(std::span<const Slice>(slices));
  };
  EXPECT_EQ(on(0b0101), Level::Nvlink);
  EXPECT_EQ(on(0b1001), Level::Server);
  EXPECT_EQ(on(0b0111), Level::Server);
  EXPECT_EQ(on(0b1111), Level::Nvlink);
  EXPECT_EQ(rates.best_level(PoolId{0}, 2), Level::Nvlink);
  EXPECT_EQ(rates.best_level(PoolId{0}, 3), Level::Server);
  EXPECT_EQ(rates.best_level(PoolId{0}, 4), Level::Nvlink);
  EXPECT_EQ(rates.best_level(PoolId{0}, 5), Level::Rack);
  const auto rate = [&](std::uint64_t devices) {
    return rates.alone({.profile = {}, .pool = {}, .gpus = 2, .wanted = 2, .level = on(devices)});
  };
  EXPECT_EQ(rate(0b0101), 1);
  EXPECT_LT(rate(0b1001), 1) << "the pair without a link talks over the bus";
}

/// Starts each job on the devices of a script, at its arrival.
class Scripted final : public Policy {
 public:
  explicit Scripted(std::vector<std::vector<Slice>> where) : where_(std::move(where)) {}
  std::string_view name() const noexcept override { return "scripted"; }
  PolicyTraits traits() const noexcept override { return {.shares_devices = true}; }
  void on_arrival(const View&, JobId job) override { arrived_.push_back(job); }
  void decide(const View&, Plan& plan, Rng&) override {
    for (const JobId job : arrived_)
      EXPECT_TRUE(plan.try_share_on(job, PoolId{0}, where_[job.value], 2));
    arrived_.clear();
  }

 private:
  std::vector<std::vector<Slice>> where_;
  std::vector<JobId> arrived_;
};

ProfileSet two_classes() {
  ProfileSet set;
  const ProfileId heavy = set.add({.name = "H", .aliases = {}, .speeds = {}});
  const ProfileId light = set.add({.name = "L", .aliases = {}, .speeds = {}});
  set.set_slowdown(heavy, light, 1.25);
  set.set_slowdown(light, heavy, 2);
  return set;
}

TEST(ReRating, PartnersSlowEachOtherDownForAsLongAsBothAreThere) {
  Scenario scenario;
  scenario.cluster = "1x2";
  scenario.placement = "best-fit";
  scenario.profiles = two_classes();
  scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 100, .model = "H"},
                   {.submit = 10, .gpus = 1, .duration = 20, .model = "L"},
                   {.submit = 10, .gpus = 1, .duration = 30, .model = "L"}};
  Scripted policy{{{device(0, 0)}, {device(0, 0)}, {device(0, 1)}}};
  const Outcome outcome = run_with(scenario, policy);
  // L runs at 1/2 from 10 to 50; H did 10 + 40/1.25 = 42 by then and 58 alone. The third is alone.
  EXPECT_NEAR(outcome.finish[1], 50, 1e-5);
  EXPECT_NEAR(outcome.finish[0], 108, 1e-5);
  EXPECT_NEAR(outcome.finish[2], 40, 1e-9);
}

TEST(ReRating, AGangGoesAtThePaceOfItsSlowestWorker) {
  Scenario scenario;
  scenario.cluster = "1x2";
  scenario.placement = "best-fit";
  scenario.profiles = two_classes();
  scenario.jobs = {{.submit = 0, .gpus = 2, .duration = 100, .model = "H"},
                   {.submit = 0, .gpus = 1, .duration = 20, .model = "L"}};
  Scripted policy{{{{NodeId{0}, 2, 0b11}}, {device(0, 1)}}};
  const Outcome outcome = run_with(scenario, policy);
  EXPECT_NEAR(outcome.finish[1], 40, 1e-5);
  EXPECT_NEAR(outcome.finish[0], 40 + 100 - 40 / 1.25, 1e-5);
}

TEST(ReRating, NeighboursOfAServerPressOnItsBus) {
  Scenario scenario;
  scenario.cluster = "1x2";
  scenario.placement = "best-fit";
  scenario.effects.server = true;
  Profile greedy{.name = "greedy", .aliases = {}, .speeds = {}};
  greedy.bus = 0.75;
  scenario.profiles.add(greedy);
  scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 12, .model = "greedy"},
                   {.submit = 0, .gpus = 1, .duration = 120, .model = "greedy"}};
  Scripted policy{{{device(0, 0)}, {device(0, 1)}}};
  const Outcome outcome = run_with(scenario, policy);
  // 1 + 0.4 * (0.75 + 0.75 - 1) = 1.2
  EXPECT_NEAR(outcome.finish[0], 14.4, 1e-5);
  EXPECT_NEAR(outcome.finish[1], 14.4 + 120 - 12, 1e-5);
}

/// Grows the only job to the whole server at 10 s, with a pause of 2 s, and gives it a sub-batch.
class Grower final : public Policy {
 public:
  std::string_view name() const noexcept override { return "grower"; }
  PolicyTraits traits() const noexcept override { return {.shares_devices = true}; }
  void decide(const View& view, Plan& plan, Rng&) override {
    const JobId job{0};
    if (view.jobs.is_waiting(job)) {
      EXPECT_TRUE(plan.try_start_on(job, PoolId{0}, std::vector<Slice>{device(0, 0)}));
    } else if (view.now == seconds_to_time(10)) {
      plan.preempt(job, Reason::Growth);
      EXPECT_TRUE(plan.try_start_on(job, PoolId{0}, std::vector<Slice>{{NodeId{0}, 2, 0b11}},
                                    Reason::Growth));
      plan.set_pause(job, std::chrono::seconds{2});
    }
  }
  std::optional<Time> next_wakeup(const View& view) override {
    if (view.now < seconds_to_time(10)) return seconds_to_time(10);
    return std::nullopt;
  }
};

TEST(ReRating, AGrownJobRunsFasterByTheRateFunction) {
  Scenario scenario;
  scenario.cluster = "1x2";
  scenario.placement = "best-fit";
  Profile profile{.name = "m", .aliases = {}, .speeds = {}};
  profile.iteration = {.alpha = 0, .beta = 0.01, .gradient_bytes = 0, .overlap = 1};
  scenario.profiles.add(profile);
  scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 50, .model = "m"}};
  Grower policy;
  const Outcome outcome = run_with(scenario, policy);
  // 10 s done, 2 s of pause, then twice as fast but for two ring messages of latency.
  const double step = 0.32;
  const double rate = 2 * step / (step + 2 * 1.5e-5);
  EXPECT_NEAR(outcome.finish[0], 12 + 40 / rate, 1e-4);
  EXPECT_NEAR(outcome.overhead[0], 2, 1e-9);
}

}  // namespace
}  // namespace berth::test::sharing_tests
