// Neighbours on a server: who is kept where, the matcher that goes away from loud ones, and the
// placement `topology:interference` under several policies.
#include <gtest/gtest.h>

#include <bit>

#include "placements/quiet_match.h"
#include "support/run.h"

namespace berth::test {
namespace {

constexpr std::int32_t kLoud = 800;
constexpr std::int32_t kCalm = 100;

Shape shape_of(std::int32_t gpus, std::int32_t bus_milli) {
  Shape shape;
  shape.gpus = gpus;
  shape.bus_milli = bus_milli;
  shape.pools = {PoolId{0}};
  return shape;
}

class Neighbours : public ::testing::Test {
 protected:
  Neighbours()
      : cluster_(*parse_cluster_short("3x4")), state_(cluster_, ClusterState::Mode::Devices) {
    state_.track_topology();
    state_.track_buses();
  }
  void take(JobId job, NodeId node, std::uint64_t devices, std::int32_t bus) {
    const Slice slice{node, std::popcount(devices), devices};
    state_.take(std::span(&slice, 1), shape_of(slice.gpus, bus), job);
  }
  void give(JobId job, NodeId node, std::uint64_t devices, std::int32_t bus) {
    const Slice slice{node, std::popcount(devices), devices};
    state_.give(std::span(&slice, 1), shape_of(slice.gpus, bus), job);
  }
  std::optional<NodeId> server_for(std::int32_t gpus, std::int32_t bus) {
    const auto match = find_quiet(*state_.topology(), state_.buses(), bus,
                                  {.pool = PoolId{0}, .gpus = gpus}, parts_);
    if (!match || match->parts.size() != 1) return std::nullopt;
    return match->parts.front().node;
  }
  Cluster cluster_;
  ClusterState state_;
  std::vector<DeviceSet> parts_;
};

TEST_F(Neighbours, AreKnownFromWhatIsTakenAndGiven) {
  take(JobId{7}, NodeId{0}, 0b0011, kLoud);
  take(JobId{3}, NodeId{0}, 0b0100, kCalm);
  const BusTable& buses = *state_.buses();
  ASSERT_EQ(buses.on(NodeId{0}).size(), 2U);
  EXPECT_EQ(buses.on(NodeId{0})[0].job, JobId{3});
  // 0.8 + 0.8 - 1 = 0.6 beside the loud one, nothing beside the calm one
  EXPECT_NEAR(buses.disturbance(NodeId{0}, kLoud), 0.24, 1e-12);
  EXPECT_NEAR(buses.slowdown(NodeId{0}, {JobId{9}, kLoud}), 1.24, 1e-12);
  EXPECT_EQ(buses.slowdown(NodeId{0}, {JobId{7}, kLoud}), 1);  // itself is no neighbour
  EXPECT_EQ(buses.disturbance(NodeId{0}, kCalm), 0);
  give(JobId{7}, NodeId{0}, 0b0011, kLoud);
  EXPECT_EQ(buses.disturbance(NodeId{0}, kLoud), 0);
}

TEST_F(Neighbours, ALoudGangGoesToAQuietServerOfTheSameLevel) {
  take(JobId{0}, NodeId{0}, 0b0001, kLoud);
  take(JobId{1}, NodeId{1}, 0b0001, kCalm);
  EXPECT_EQ(server_for(1, kCalm), NodeId{0});  // the tightest, lowest
  EXPECT_EQ(server_for(1, kLoud), NodeId{1});  // of the quiet ones the tightest
  EXPECT_EQ(server_for(2, kLoud), NodeId{1});
}

TEST_F(Neighbours, TheLeastLoudServerIsTakenIfNoneIsQuiet) {
  for (std::uint32_t i = 0; i < 3; ++i) take(JobId{i}, NodeId{i}, 0b0001, kLoud);
  take(JobId{3}, NodeId{0}, 0b0010, kLoud);
  take(JobId{4}, NodeId{2}, 0b0010, 500);
  EXPECT_EQ(server_for(1, kLoud), NodeId{1});  // 0.24 against 0.48 and 0.24 + 0.12
}

// Rather two devices of one loud server than one of either quiet one.
TEST_F(Neighbours, ClosenessComesBeforeQuiet) {
  take(JobId{0}, NodeId{0}, 0b0001, kLoud);
  take(JobId{1}, NodeId{1}, 0b0111, kCalm);
  take(JobId{2}, NodeId{2}, 0b0111, kCalm);
  EXPECT_EQ(server_for(2, kLoud), NodeId{0});
}

ProfileSet loud_and_calm() {
  ProfileSet profiles;
  Profile calm;
  calm.name = "calm";
  calm.bus = kCalm / 1000.0;
  Profile loud = calm;
  loud.name = "loud";
  loud.bus = kLoud / 1000.0;
  profiles.add(calm);
  profiles.add(loud);
  return profiles;
}

class InterferencePlacement : public ::testing::TestWithParam<std::string> {};

// Two loud jobs on one server take 1.24 times as long each; on two servers they do not mind.
TEST_P(InterferencePlacement, SeparatesDisturbingJobsUnderEveryPolicy) {
  Scenario scenario{.policy = GetParam(),
                    .cluster = "2x4",
                    .placement = "topology",
                    .jobs = {{.gpus = 1, .duration = 100, .model = "loud"},
                             {.gpus = 2, .duration = 100, .model = "loud"},
                             {.submit = 1, .gpus = 8, .duration = 10, .model = "calm"},
                             {.submit = 2, .gpus = 1, .duration = 20, .model = "calm"}},
                    .profiles = loud_and_calm(),
                    .effects = {.sharing = true, .server = true}};
  scenario.node_cpus = 64;
  for (JobSpec& job : scenario.jobs) job.cpus = job.gpus;
  const Outcome together = run(scenario);
  EXPECT_NEAR(together.finish[0], 124, 1e-3);
  EXPECT_NEAR(together.finish[1], 124, 1e-3);
  scenario.placement = "topology:interference";
  const Outcome apart = run(scenario);
  EXPECT_EQ(apart.finish[0], 100);
  EXPECT_EQ(apart.finish[1], 100);
  EXPECT_EQ(apart.start[2], 100);
}

INSTANTIATE_TEST_SUITE_P(Some, InterferencePlacement,
                         ::testing::Values("fifo", "sjf", "easy", "conservative", "drf"));

TEST(Placements, TakeTheKnobsTheyHave) {
  EXPECT_TRUE(make_placement("topology:interference"));
  EXPECT_TRUE(make_placement("skew:0.7"));
  EXPECT_FALSE(make_placement("topology:0.5"));
  EXPECT_FALSE(make_placement("skew:interference"));
  EXPECT_FALSE(make_placement("best-fit:interference"));
}

}  // namespace
}  // namespace berth::test
