// The parts a ClusterState is made of, each by its own promises.
#include <gtest/gtest.h>

#include "core/cluster_state.h"

namespace berth {
namespace {

constexpr NodeId kFirst{0};
constexpr NodeId kSecond{1};
constexpr PoolId kPool{0};

TEST(FreeDevices, NodesLieInTheBucketOfTheirFreeDevicesWhileTheyAreInService) {
  const Cluster cluster = *parse_cluster_short("2x4");
  FreeDevices free{cluster};
  EXPECT_EQ(free.usable(), 0) << "nobody is in service yet";
  free.enter_service(kFirst);
  free.enter_service(kSecond);
  free.take(kFirst, 0b0101);
  EXPECT_EQ(free.free_on(kFirst), 2);
  EXPECT_TRUE(free.nodes_with(kPool, 2).contains(kFirst));
  EXPECT_TRUE(free.nodes_with(kPool, 4).contains(kSecond));
  EXPECT_FALSE(free.is_free(kFirst, 0b0001));
  EXPECT_EQ(free.free_in_rack(kPool, cluster.nodes[0].rack), 6);
  free.leave_service(kSecond);
  EXPECT_FALSE(free.nodes_with(kPool, 4).contains(kSecond));
  EXPECT_EQ(free.free(), 2);
  EXPECT_EQ(free.usable(), 4);
  EXPECT_FALSE(free.is_free(kSecond, 0b0001));
  free.give(kFirst, 0b0101);
  EXPECT_EQ(free.free(kPool), 4);
}

TEST(FreeDevicesDeathTest, NoDeviceIsGivenTwiceAndANodeLeavesEmpty) {
  const Cluster cluster = *parse_cluster_short("1x2");
  FreeDevices free{cluster};
  free.enter_service(kFirst);
  free.take(kFirst, 0b01);
  EXPECT_DEATH(free.take(kFirst, 0b11), "no device is given twice");
  EXPECT_DEATH(free.give(kFirst, 0b10), "only a taken device comes back");
  EXPECT_DEATH(free.leave_service(kFirst), "a node leaves service empty");
}

TEST(HostResources, WhatANodeDoesNotDescribeNeverLimits) {
  Cluster cluster = *parse_cluster_short("2x4");
  cluster.nodes[0].cpus_milli = 8000;
  HostResources host{cluster};
  const Shape hungry{
      .gpus = 1, .cpus_milli_per_gpu = 3000, .memory_mib_per_gpu = 1 << 20, .pools = {}};
  EXPECT_EQ(host.room(kFirst, hungry, 4), 2);
  EXPECT_EQ(host.room(kSecond, hungry, 4), 4);
  host.take({.node = kFirst, .gpus = 1, .devices = 1}, hungry);
  EXPECT_EQ(host.cpus_milli(kFirst), 5000);
  EXPECT_EQ(host.room(kFirst, hungry, 4), 1);
  EXPECT_TRUE(host.has_room({.node = kFirst, .gpus = 1, .devices = 2}, hungry));
  EXPECT_FALSE(host.has_room({.node = kFirst, .gpus = 2, .devices = 6}, hungry));
  // The totals of a pool limit only if every node says what it has.
  EXPECT_TRUE(host.has_room(kPool, {.gpus = 8, .cpus_milli_per_gpu = 3000, .pools = {}}));
  cluster.nodes[1].cpus_milli = 8000;
  const HostResources described{cluster};
  EXPECT_FALSE(described.has_room(kPool, {.gpus = 8, .cpus_milli_per_gpu = 3000, .pools = {}}));
  EXPECT_TRUE(described.has_room(kPool, {.gpus = 5, .cpus_milli_per_gpu = 3000, .pools = {}}));
}

TEST(HostResources, AJobWithoutADeviceIsOneWorker) {
  Cluster cluster = *parse_cluster_short("1x1");
  cluster.nodes[0].cpus_milli = 4000;
  ClusterState state{cluster, ClusterState::Mode::Devices};
  const Shape cores{.gpus = 0, .cpus_milli_per_gpu = 3000, .pools = {kPool}};
  const std::vector<Slice> here{{.node = kFirst, .gpus = 0, .devices = 0}};
  state.take(here, cores);
  EXPECT_EQ(state.free_cpus_milli(kFirst), 1000);
  EXPECT_EQ(state.free_gpus(), 1);
  EXPECT_FALSE(state.is_idle(kFirst)) << "all devices are free, but a job is there";
  state.give(here, cores);
  EXPECT_TRUE(state.is_idle(kFirst));
}

TEST(NodeStatus, FailuresAndPowerAreIndependent) {
  const Cluster cluster = *parse_cluster_short("2x4");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  ASSERT_EQ(state.kinds(kPool).size(), 1U);
  state.set_down(kFirst);
  state.set_down(kFirst);  // said twice
  EXPECT_EQ(state.kinds(kPool)[0].working, 1);
  state.set_power(kFirst, PowerState::Off);
  state.set_up(kFirst);
  EXPECT_FALSE(state.is_up(kFirst)) << "it works, but is off";
  EXPECT_EQ(state.kinds(kPool)[0].working, 2);
  state.set_power(kFirst, PowerState::Booting);
  EXPECT_FALSE(state.is_up(kFirst));
  state.set_power(kFirst, PowerState::On);
  EXPECT_TRUE(state.is_up(kFirst));
  EXPECT_EQ(state.usable_gpus(), 8);
}

TEST(KeptIndices, AreThereOnlyIfAskedForAndACopyHasNoLog) {
  const Cluster cluster = *parse_cluster_short("2x4");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  EXPECT_EQ(state.topology(), nullptr);
  EXPECT_EQ(state.slots(), nullptr);
  EXPECT_EQ(state.buses(), nullptr);
  EXPECT_EQ(state.changes(), nullptr);
  state.track_devices();
  state.track_topology();
  state.track_buses();
  state.track_changes();
  const std::vector<Slice> one{{.node = kSecond, .gpus = 1, .devices = 0b1}};
  state.take(one, {.gpus = 1, .bus_milli = 300, .pools = {kPool}}, JobId{3});
  ASSERT_NE(state.changes(), nullptr);
  EXPECT_EQ(state.changes()->position(), 1U);
  EXPECT_EQ(state.buses()->on(kSecond).size(), 1U);
  EXPECT_EQ(state.slots()->free_slots(kSecond, 0), 0);
  const ClusterState copy = state;
  EXPECT_EQ(copy.changes(), nullptr) << "whoever follows the log must not see another's changes";
  EXPECT_NE(copy.topology(), nullptr);
}

}  // namespace
}  // namespace berth
