// What a machine says of itself: hwloc descriptions and a driver library made for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <unistd.h>

#include "exec/discover.h"
#include "model/topology.h"

namespace berth {
namespace {

using testing::HasSubstr;

constexpr const char* kNoDriver = "libno-such-driver.so.1";

/// FAKE_NVML_COUNT while it lives.
class FakeCount {
 public:
  explicit FakeCount(const char* count) { setenv("FAKE_NVML_COUNT", count, 1); }
  FakeCount(const FakeCount&) = delete;
  FakeCount& operator=(const FakeCount&) = delete;
  ~FakeCount() { unsetenv("FAKE_NVML_COUNT"); }
};

DiscoverOptions fake(const std::string& synthetic = "pack:2 [numa] core:16 pu:2") {
  return {.host = "box", .synthetic = synthetic, .nvml_library = BERTH_FAKE_NVML};
}

TEST(Discover, AMachineWithoutADriverHasNoDevices) {
  const auto cluster = discover_cluster(
      {.host = "box", .synthetic = "pack:2 [numa] core:64 pu:2", .nvml_library = kNoDriver});
  ASSERT_TRUE(cluster);
  ASSERT_EQ(cluster->nodes.size(), 1U);
  EXPECT_EQ(cluster->nodes[0].name, "box");
  EXPECT_EQ(cluster->nodes[0].gpus, 0);
  EXPECT_EQ(cluster->nodes[0].cpus_milli, 128'000);  // cores, not their two threads
  EXPECT_EQ(cluster->nodes[0].shape.sockets, 2);
  EXPECT_EQ(cluster->total_gpus(), 0);
  EXPECT_EQ(Topology(*cluster).inside(NodeId{0}).vertices.size(), 1U);
}

TEST(Discover, ThisMachineHasCoresAndMemory) {
  if (::access("/sys/devices/system/cpu", R_OK) != 0)
    GTEST_SKIP() << "no /sys here (a chroot?): the machine cannot be seen";
  const auto cluster = discover_cluster({.host = "", .synthetic = "", .nvml_library = kNoDriver});
  ASSERT_TRUE(cluster);
  EXPECT_GE(cluster->nodes[0].cpus_milli, 1000);
  EXPECT_GT(cluster->nodes[0].memory_mib, 0);
  EXPECT_FALSE(cluster->nodes[0].name.empty());
}

TEST(Discover, ABadDescriptionIsToldNotReplacedByTheRealMachine) {
  const auto cluster = discover_cluster(fake("pack:two"));
  ASSERT_FALSE(cluster);
  EXPECT_THAT(cluster.error().text(), HasSubstr("'pack:two' is no hwloc description"));
}

TEST(Discover, TheDriverTellsDevicesSwitchesAndTheMesh) {
  const auto cluster = discover_cluster(fake());
  ASSERT_TRUE(cluster);
  ASSERT_EQ(cluster->nodes.size(), 1U);
  const Node& node = cluster->nodes[0];
  EXPECT_EQ(node.gpus, 4);
  EXPECT_EQ(cluster->pools.at(0).name, "v100m32");
  EXPECT_EQ(cluster->pools.at(0).busy_watts, 225);  // 0.9 x the board's limit
  EXPECT_EQ(node.shape.sockets, 2);
  EXPECT_EQ(node.shape.switches, 2);
  ASSERT_TRUE(node.nvlink);
  const NvlinkMatrix& mesh = cluster->nvlinks[*node.nvlink];
  EXPECT_EQ(mesh.at(0, 1), 50e9);  // two links of the second generation
  EXPECT_EQ(mesh.at(0, 3), 0);
  EXPECT_EQ(mesh.at(2, 3), 50e9);
  const Topology tree(*cluster);
  EXPECT_EQ(tree.inside(NodeId{0}).level_of(0b1111), Level::Nvlink);  // 0-1-3-2-0
  EXPECT_EQ(tree.inside(NodeId{0}).level_of(0b1001), Level::Server);
}

TEST(Discover, SeveralTypesMakeANodeEach) {
  const FakeCount six("6");
  const auto cluster = discover_cluster(fake());
  ASSERT_TRUE(cluster);
  ASSERT_EQ(cluster->nodes.size(), 2U);
  EXPECT_EQ(cluster->nodes[0].name, "box-v100m32");
  EXPECT_EQ(cluster->nodes[1].name, "box-t4");
  EXPECT_EQ(cluster->nodes[1].gpus, 2);
  EXPECT_EQ(cluster->nodes[1].cpus_milli, 32'000 * 2 / 6);
  EXPECT_FALSE(cluster->nodes[1].nvlink);
}

TEST(Discover, ABrokenDriverIsAnError) {
  const FakeCount broken("99");
  const auto cluster = discover_cluster(fake());
  ASSERT_FALSE(cluster);
  EXPECT_THAT(cluster.error().text(), HasSubstr("nvidia-smi"));
}

TEST(Discover, DriverNamesFindTheirRow) {
  EXPECT_EQ(device_type_for("NVIDIA A100-SXM4-80GB", 81'251).name, "a100-80g");
  EXPECT_EQ(device_type_for("NVIDIA A100-PCIE-40GB", 40'536).name, "a100");
  EXPECT_EQ(device_type_for("Tesla V100-SXM2-16GB", 16'160).name, "v100");
  EXPECT_EQ(device_type_for("NVIDIA GeForce RTX 2080 Ti", 11'019).name, "2080ti");
  EXPECT_EQ(device_type_for("Quadro RTX 6000", 24'220).name, "rtx6000");
  EXPECT_EQ(device_type_for("NVIDIA A10", 23'028).name, "a10");
  EXPECT_EQ(device_type_for("NVIDIA L4", 23'034).name, "l4");
  const DeviceType unknown = device_type_for("Acme Z-9", 4096);
  EXPECT_EQ(unknown.name, "acme-z-9");
  EXPECT_EQ(unknown.memory_mib, 4096);
}

}  // namespace
}  // namespace berth
