// The YAML cluster file: what it means, and what is said about a bad one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "model/cluster.h"
#include "project_paths.h"

namespace berth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Cluster good(const std::string& text) {
  auto cluster = parse_cluster_yaml(text, "c.yaml");
  if (!cluster) {
    ADD_FAILURE() << cluster.error().text();
    return {};
  }
  return std::move(*cluster);
}

std::vector<std::string> faults(const std::string& text) {
  const auto cluster = parse_cluster_yaml(text, "c.yaml");
  return cluster ? std::vector<std::string>{"(read without complaint)"} : cluster.error().messages;
}

TEST(ClusterFile, CountsNamesAndTypesOfTheShortestFile) {
  const Cluster cluster = good("groups: [{count: 3, gpus: 4, type: V100}]");
  ASSERT_EQ(cluster.nodes.size(), 3U);
  EXPECT_EQ(cluster.nodes[0].name, "n0");
  EXPECT_EQ(cluster.nodes[2].name, "n2");
  EXPECT_EQ(cluster.total_gpus(), 12);
  EXPECT_EQ(cluster.pools.at(0).name, "v100");
  EXPECT_EQ(cluster.pools.at(0).memory_mib, 16384);
  EXPECT_THAT(cluster.racks, ElementsAre("r0"));
  EXPECT_EQ(cluster.nodes[0].cpus_milli, 0);  // not described: never a limit
}

TEST(ClusterFile, ReadsEveryKey) {
  const Cluster cluster = good(R"(
name: all
devices:
  - {name: x9, memory_gb: 48, speed: 1.5, idle_watts: 30, busy_watts: 300, price_per_hour: 2.5}
  - {name: a100, memory_gb: 80}
links: {nvlink: 300, pcie: 25, socket: 20, rack: 12.5, cross_rack: 1}
groups:
  - {nodes: "a[08-10]", gpus: 8, type: x9, cpus: 12.5, memory_gb: 64, sockets: 2, switches: 4,
     nvlink_island: 4, rack: west, power: {idle_watts: 200, busy_watts: 500}}
  - {nodes: ["b1", "b[3-4]"], gpus: 2, type: a100, nodes_per_rack: 2}
)");
  EXPECT_EQ(cluster.name, "all");
  ASSERT_EQ(cluster.nodes.size(), 6U);
  const Node& node = cluster.nodes[1];
  EXPECT_EQ(node.name, "a09");
  EXPECT_EQ(node.cpus_milli, 12'500);
  EXPECT_EQ(node.memory_mib, 65'536);
  EXPECT_EQ(node.shape, (NodeShape{2, 4, 4}));
  EXPECT_EQ(node.idle_watts, 200);
  EXPECT_EQ(node.busy_watts, 500);
  EXPECT_THAT(cluster.racks, ElementsAre("west", "r0", "r1"));
  EXPECT_EQ(cluster.nodes[3].name, "b1");
  EXPECT_EQ(cluster.nodes[4].rack, RackId{1});
  EXPECT_EQ(cluster.nodes[5].rack, RackId{2});
  EXPECT_EQ(cluster.pools.at(0).speed, 1.5);
  EXPECT_EQ(cluster.pools.at(0).price_per_hour, 2.5);
  EXPECT_EQ(cluster.pools.at(1).memory_mib, 81'920);
  EXPECT_EQ(cluster.pools.at(1).speed, 2.0);  // a row changes only what it says
  EXPECT_EQ(cluster.links.rack, 12.5e9);
}

TEST(ClusterFile, ANewAcceleratorIsARow) {
  const Cluster cluster = good(R"(
devices:
  - {name: vck5000, kind: FPGA, memory_gb: 16, speed: 0.2, slots: 2}
  - {name: tpu-v4, slots: 4}
groups: [{count: 1, gpus: 2, type: vck5000}, {count: 1, gpus: 4, type: TPU-v4}]
)");
  EXPECT_EQ(cluster.pools.at(0).kind, DeviceKind::Fpga);
  EXPECT_EQ(cluster.pools.at(0).slots, 2);
  EXPECT_EQ(cluster.pools.at(1).kind, DeviceKind::Tpu);  // a row changes only what it says
  EXPECT_EQ(cluster.pools.at(1).slots, 4);
  EXPECT_EQ(find_device("A100")->slots, 8);
}

TEST(ClusterFile, ADeviceWithoutAPublicPriceCostsAsItsSpeed) {
  EXPECT_EQ(price_of(*find_device("k80")), 0.9);
  DeviceType unlisted;
  unlisted.speed = 2;
  EXPECT_DOUBLE_EQ(price_of(unlisted), 2 * price_of(*find_device("v100")));
}

TEST(ClusterFile, TheCatalogueIsSane) {
  std::vector<std::string> names;
  for (const DeviceType& device : built_in_devices()) {
    EXPECT_GT(device.memory_mib, 0) << device.name;
    EXPECT_GT(device.speed, 0) << device.name;
    EXPECT_GE(device.busy_watts, device.idle_watts) << device.name;
    EXPECT_GE(device.slots, 1) << device.name;
    EXPECT_EQ(find_device(device.name)->name, device.name);  // no name twice, none in capitals
    EXPECT_THAT(names, testing::Not(testing::Contains(device.name)));
    names.push_back(device.name);
  }
}

TEST(ClusterFile, ZonesHoldRacks) {
  const Cluster cluster = good(R"(
groups:
  - {count: 4, gpus: 1, nodes_per_rack: 1, racks_per_zone: 2}
  - {count: 1, gpus: 1, zone: z1}
  - {count: 1, gpus: 1, zone: z1}
  - {count: 1, gpus: 1, rack: a, zone: west}
  - {count: 1, gpus: 1, rack: a}
  - {count: 1, gpus: 1}
)");
  EXPECT_THAT(cluster.zones, ElementsAre("z0", "z2", "z1", "west", "z3"));  // z1 is named
  EXPECT_THAT(cluster.racks, ElementsAre("r0", "r1", "r2", "r3", "r4", "a", "r5"));
  EXPECT_THAT(cluster.rack_zones, ElementsAre(ZoneId{0}, ZoneId{0}, ZoneId{1}, ZoneId{1}, ZoneId{2},
                                              ZoneId{3}, ZoneId{4}));
  EXPECT_EQ(cluster.nodes[4].rack, cluster.nodes[5].rack);  // one common rack per zone
}

TEST(ClusterFile, ReadsLatenciesAndTheNvlinkMesh) {
  const Cluster cluster = good(R"(
links: {rack_latency_us: 2, cross_rack_latency_us: 0}
groups: [{count: 3, gpus: 2, nvlink: [[0, 25], [25, 0]]}]
)");
  EXPECT_EQ(cluster.links.rack_latency, 2e-6);
  EXPECT_EQ(cluster.links.cross_rack_latency, 0);
  EXPECT_EQ(cluster.links.pcie_latency, Links{}.pcie_latency);
  ASSERT_EQ(cluster.nvlinks.size(), 1U);  // one mesh, shared by three nodes
  EXPECT_EQ(cluster.nodes[2].nvlink, 0U);
  EXPECT_EQ(cluster.nvlinks[0].at(1, 0), 25e9);
}

TEST(ClusterFile, ANumberedRackNeverTakesANamedOne) {
  const Cluster cluster =
      good("groups: [{count: 2, gpus: 1, nodes_per_rack: 1}, {count: 1, gpus: 1, rack: r1}]");
  EXPECT_THAT(cluster.racks, ElementsAre("r0", "r2", "r1"));
}

TEST(ClusterFile, NumbersGoOnAcrossGroupsOfOnePrefix) {
  const Cluster cluster =
      good("groups: [{count: 2, gpus: 1}, {count: 1, gpus: 2}, {count: 1, gpus: 2, prefix: z}]");
  EXPECT_EQ(cluster.nodes[2].name, "n2");
  EXPECT_EQ(cluster.nodes[3].name, "z0");
}

TEST(ClusterFile, SeveralBracketsMultiply) {
  const Cluster cluster = good("groups: [{nodes: 'r[1-2]n[01-03]', gpus: 1}]");
  ASSERT_EQ(cluster.nodes.size(), 6U);
  EXPECT_EQ(cluster.nodes[3].name, "r2n01");
}

TEST(ClusterFile, AliasesStandForWhatTheyName) {
  const Cluster cluster = good(
      "groups: [{count: 1, gpus: 1, power: &p {idle_watts: 9}}, {count: 1, gpus: 1, power: *p}]");
  EXPECT_EQ(cluster.nodes[1].idle_watts, 9);
}

TEST(ClusterFile, SaysPlaceFactAndRemedySeveralAtOnce) {
  EXPECT_THAT(
      faults("groups:\n  - count: 4\n    gpu: 8\n    typ: v100\n    gpus: 65\n"),
      ElementsAre(AllOf(StartsWith("c.yaml:3:5: a group has no key 'gpu' (did you mean gpus"),
                        HasSubstr("?)")),
                  AllOf(StartsWith("c.yaml:4:5: a group has no key 'typ' (did you mean type"),
                        HasSubstr("?)")),
                  "c.yaml:5:11: gpus must be a number from 1 to 64, got '65'"));
}

struct Fault {
  std::string text;
  std::string message;
};

TEST(ClusterFile, RefusesWhatItCannotMean) {
  const std::vector<Fault> cases{
      {"", "c.yaml:1:1: the file is empty"},
      {"# nothing here\n", "c.yaml:1:1: the file is empty"},
      {"16x4", "a cluster file is a mapping"},
      {"- a\n- b\n", "a cluster file is a mapping"},
      {"name: x", "no groups of nodes"},
      {"groups: []", "groups must be a list"},
      {"groups: 4", "groups must be a list"},
      {"groups:\n", "groups must be a list"},
      {"groups: [3]", "c.yaml:1:10: a group is a mapping"},
      {"groups: [{count: 1}]", "a group needs gpus"},
      {"groups: [{gpus: 1}]", "either nodes"},
      {"groups: [{gpus: 1, count: 1, nodes: a}]", "either nodes"},
      {"groups: [{gpus: 1, nodes: a, prefix: b}]", "prefix goes with count"},
      {"groups: [{count: 1, gpus: 1, gpus: 2}]", "c.yaml:1:30: 'gpus' is given twice (keep one)"},
      {"groups: [{count: 1, gpus: -1}]", "gpus must be a number from 1 to 64, got '-1'"},
      {"groups: [{count: 1, gpus: 1.5}]", "gpus must be a whole number"},
      {"groups: [{count: 1, gpus: nan}]", "gpus must be a number"},
      {"groups: [{count: 1, gpus: }]", "gpus must be a number"},
      {"groups: [{count: 1, gpus: [1]}]", "got a list or mapping"},
      {"groups: [{count: 0, gpus: 1}]", "count must be a number from 1 to 1000000"},
      {"groups: [{count: 1e99, gpus: 1}]", "count must be a number"},
      {"groups: [{count: 1000000, gpus: 1}, {count: 1, gpus: 1}]",
       "more than 1000000 nodes in all"},
      {"groups: [{nodes: 'n[1-9999999]', gpus: 1}]", "is no node name or range"},
      {"groups: [{nodes: 'n[5-1]', gpus: 1}]", "is no node name or range"},
      {"groups: [{nodes: 'n[1', gpus: 1}]", "is no node name or range"},
      {"groups: [{nodes: 'a b', gpus: 1}]", "is no node name or range"},
      {"groups: [{nodes: {a: b}, gpus: 1}]", "is no node name or range"},
      {"groups: [{nodes: 'n[1-2]', gpus: 1}, {nodes: n2, gpus: 1}]", "two nodes are called 'n2'"},
      {"groups: [{count: 1, gpus: 1, cpus: -4}]", "cpus must be a number"},
      {"groups: [{count: 1, gpus: 1, memory_gb: inf}]", "memory_gb must be a number"},
      {"groups: [{count: 1, gpus: 4, nvlink_island: 8}]",
       "nvlink_island is 8 but a node has 4 GPUs"},
      {"groups: [{count: 1, gpus: 1, type: a1000}]",
       "no device type is called 'a1000' (did you mean a100"},
      {"groups: [{count: 1, gpus: 1, type: 'a 1'}]", "type must be made of letters"},
      {"groups: [{count: 1, gpus: 1, type: v100, device_memory_gb: 32}, {count: 1, gpus: 1, type: "
       "v100, device_memory_gb: 16}]",
       "'v100' has 32 GB elsewhere"},
      {"groups: [{count: 1, gpus: 1, rack: a, nodes_per_rack: 2}]", "not both"},
      {"groups: [{count: 1, gpus: 1, rack: a, zone: x}, {count: 1, gpus: 1, rack: a, zone: y}]",
       "rack 'a' stands in zone 'x' already"},
      {"groups: [{count: 1, gpus: 1, racks_per_zone: 2}]", "goes with nodes_per_rack"},
      {"groups: [{count: 1, gpus: 2, nvlink: [[0, 1]]}]", "2 rows of 2 numbers"},
      {"groups: [{count: 1, gpus: 2, nvlink: [[0, 1], 4]}]", "2 rows of 2 numbers"},
      {"groups: [{count: 1, gpus: 2, nvlink: 4}]", "2 rows of 2 numbers"},
      {"groups: [{count: 1, gpus: 2, nvlink: [[0, 1], [2, 0]]}]", "differs from the way back"},
      {"groups: [{count: 1, gpus: 2, nvlink: [[0, -1], [-1, 0]]}]",
       "a link of nvlink must be a number from 0"},
      {"links: {rack_latency_us: -1}\ngroups: [{count: 1, gpus: 1}]", "rack_latency_us must be"},
      {"devices: [{name: a100, kind: cpu}]\ngroups: [{count: 1, gpus: 1}]",
       "kind must be gpu, fpga, asic, tpu or npu, got 'cpu'"},
      {"devices: [{name: a100, slots: 0}]\ngroups: [{count: 1, gpus: 1}]",
       "slots must be a number"},
      {"groups: [{count: 1, gpus: 1, power: 300}]", "power must be a mapping"},
      {"groups: [{count: 1, gpus: 1, power: {idle_watts: 5, busy_watts: 4}}]",
       "busy_watts must be at least idle_watts"},
      {"groups: [{count: 1, gpus: 1, <<: {gpus: 2}}]", "a group has no key '<<'"},
      {"groups: [{count: 1, gpus: 1, ? [a] : b}]", "a key of a group must be a word"},
      {"devices: 3\ngroups: [{count: 1, gpus: 1}]", "devices must be a list"},
      {"devices: [{name: x9}]\ngroups: [{count: 1, gpus: 1}]", "needs memory_gb"},
      {"devices: [{name: a100}, {name: A100}]\ngroups: [{count: 1, gpus: 1}]", "described twice"},
      {"devices: [{name: a100, speed: 0}]\ngroups: [{count: 1, gpus: 1}]",
       "speed must be a number"},
      {"links: {rak: 5}\ngroups: [{count: 1, gpus: 1}]",
       "links has no key 'rak' (did you mean rack"},
      {"links: [5]\ngroups: [{count: 1, gpus: 1}]", "links must be a mapping"},
      {"a: b\n---\nc: d\n", "a second document begins (one cluster per file)"},
      {"groups: &g [*g]", "an alias inside of what it stands for"},
      {"groups: [*nobody]", "c.yaml:1:"},
      {"groups: [{count: 1\n", "c.yaml:"},
      {"groups:\n\t- count: 1\n", "c.yaml:2:"},
      {std::string("gr\0ups", 6), "not a text file"},
      {"\x7f"
       "ELF\x01\x02",
       "a cluster file is a mapping"},
      {std::string(100, '[') + std::string(100, ']'), "nested deeper"},
      {std::string(100'000, '['), "c.yaml:"},
      {std::string(17U << 20U, '#'), "larger than"},
  };
  for (const Fault& fault : cases) {
    const auto messages = faults(fault.text);
    EXPECT_THAT(messages, testing::Contains(AllOf(StartsWith("c.yaml:"), HasSubstr(fault.message))))
        << fault.text.substr(0, 200);
  }
}

TEST(ClusterFile, LaughsNotAtABillionAliases) {
  std::string text = "a: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("b{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i,
                        i - 1);
  }
  EXPECT_GT(faults(text + "groups: [*a9]\n").size(), 1U);
  std::string many = "p: &p 1\ngroups: [";
  for (int i = 0; i < 2000; ++i) many += "*p,";
  EXPECT_THAT(faults(many + "]").at(0), HasSubstr("more than 1000 aliases"));
}

TEST(ClusterFile, StopsTalkingAfterTwentyFaults) {
  std::string text = "groups:\n";
  for (int i = 0; i < 100; ++i) text += "  - {count: 1, gpus: 99}\n";
  const auto messages = faults(text);
  EXPECT_EQ(messages.size(), 21U);
  EXPECT_EQ(messages.back(), "c.yaml: and 80 more");
}

TEST(ClusterFile, ExamplesAreWhatTheySay) {
  const auto load = [](const std::string& file) {
    auto cluster = load_cluster(fmt::format("{}/examples/clusters/{}", BERTH_SOURCE_DIR, file));
    if (!cluster) ADD_FAILURE() << cluster.error().text();
    return cluster ? *cluster : Cluster{};
  };
  const Cluster philly = load("philly.yaml");
  EXPECT_EQ(philly.nodes.size(), 552U);
  EXPECT_EQ(philly.total_gpus(), 321 * 2 + 231 * 8);  // 2490
  EXPECT_EQ(philly.racks.size(), 12U + 20U);          // 321 / 27 and 231 / 12, rounded up
  const Cluster dgx = load("dgx-a100.yaml");
  EXPECT_EQ(dgx.total_gpus(), 128);
  EXPECT_EQ(dgx.racks.size(), 4U);
  EXPECT_EQ(dgx.pools.at(0).memory_mib, 81'920);
  const Cluster mixed = load("mixed.yaml");
  EXPECT_EQ(mixed.pools.size(), 3U);
  EXPECT_EQ(mixed.total_gpus(), 32 + 32 + 4);
}

TEST(ClusterArgument, AMissingFileSaysWhatTheShortFormIs) {
  const auto cluster = load_cluster("/nowhere/c.yaml");
  ASSERT_FALSE(cluster);
  EXPECT_THAT(cluster.error().text(), HasSubstr("write NODESxGPUS[:TYPE]"));
}

}  // namespace
}  // namespace berth
