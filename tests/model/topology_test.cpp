// The topology tree: what hangs below what, how fast the links are, rings through an NVLink mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/topology.h"

namespace berth {
namespace {

using testing::ElementsAre;

Cluster cluster_of(const std::string& text) {
  auto cluster = parse_cluster_yaml(text, "c.yaml");
  if (!cluster) {
    ADD_FAILURE() << cluster.error().text();
    return {};
  }
  return std::move(*cluster);
}

/// "server(nvlink)[socket(…)[0 1] …]": devices by number.
std::string text_of(const ServerTree& tree, std::uint32_t at = 0) {
  const InnerVertex& vertex = tree.vertices[at];
  if (vertex.type == VertexType::Device) return fmt::format("{}", std::countr_zero(vertex.devices));
  std::string text = fmt::format("{}({})[", to_string(vertex.type), to_string(vertex.level));
  for (std::uint32_t i = 0; i < vertex.child_count; ++i)
    text += (i > 0 ? " " : "") + text_of(tree, vertex.first_child + i);
  return text + "]";
}

std::string inside_of(const std::string& group) {
  const Cluster cluster = cluster_of("groups: [{count: 1, " + group + "}]");
  return text_of(Topology(cluster).inside(NodeId{0}));
}

TEST(Topology, NestsSocketsSwitchesAndIslands) {
  EXPECT_EQ(inside_of("gpus: 2"), "server(server)[0 1]");
  EXPECT_EQ(inside_of("gpus: 4, sockets: 2, switches: 2"),
            "server(server)[socket(pcie)[0 1] socket(pcie)[2 3]]");  // a socket that is one switch
  EXPECT_EQ(inside_of("gpus: 8, sockets: 2, switches: 4"),
            "server(server)[socket(server)[switch(pcie)[0 1] switch(pcie)[2 3]] "
            "socket(server)[switch(pcie)[4 5] switch(pcie)[6 7]]]");
  EXPECT_EQ(inside_of("gpus: 8, sockets: 2, nvlink_island: 2"),
            "server(server)[socket(server)[island(nvlink)[0 1] island(nvlink)[2 3]] "
            "socket(server)[island(nvlink)[4 5] island(nvlink)[6 7]]]");
}

// NVSwitch joins all eight: whatever lies between two of them, NVLink is what they use.
TEST(Topology, AnIslandLendsItsLevelToAllInside) {
  EXPECT_EQ(inside_of("gpus: 4, switches: 2, nvlink_island: 4"),
            "server(nvlink)[switch(nvlink)[0 1] switch(nvlink)[2 3]]");
}

TEST(Topology, OddNumbersMakeUnevenParts) {
  EXPECT_EQ(inside_of("gpus: 5, sockets: 2"),
            "server(server)[socket(server)[0 1 2] socket(server)[3 4]]");
  EXPECT_EQ(inside_of("gpus: 6, switches: 4, nvlink_island: 3"),  // switches cut across islands
            "server(server)[island(nvlink)[0 1 2] island(nvlink)[3 4 5]]");
  EXPECT_EQ(inside_of("gpus: 1"), "server(server)[0]");
}

TEST(Topology, TheUpperTreeFollowsZonesAndRacks) {
  const Cluster cluster = cluster_of(R"(
links: {rack: 10, rack_latency_us: 20, cross_rack: 1}
groups:
  - {count: 5, gpus: 2, nodes_per_rack: 2, racks_per_zone: 2}
  - {nodes: x, gpus: 1, rack: far, zone: west}
)");
  EXPECT_THAT(cluster.zones, ElementsAre("z0", "z1", "west"));
  const Topology tree(cluster);
  ASSERT_EQ(tree.vertices().size(), 1U + 3 + 4 + 6);
  EXPECT_THAT(tree.children(Topology::root()),
              ElementsAre(tree.zone(ZoneId{0}), tree.zone(ZoneId{1}), tree.zone(ZoneId{2})));
  EXPECT_THAT(tree.children(tree.zone(ZoneId{0})),
              ElementsAre(tree.rack(RackId{0}), tree.rack(RackId{1})));
  EXPECT_THAT(tree.children(tree.rack(RackId{2})), ElementsAre(tree.server(NodeId{4})));
  EXPECT_EQ(tree[tree.server(NodeId{4})].parent, tree.rack(RackId{2}));
  EXPECT_EQ(tree[tree.server(NodeId{4})].up, (Link{10e9, 20e-6}));
  EXPECT_EQ(tree[tree.rack(RackId{3})].up.bandwidth, 1e9);
  EXPECT_EQ(tree.servers().size(), 2U);  // servers of one build share their inside

  using Gang = std::vector<DeviceSet>;
  EXPECT_EQ(tree.level_of(Gang{{NodeId{0}, 1}}), Level::Device);
  EXPECT_EQ(tree.level_of(Gang{{NodeId{0}, 3}}), Level::Server);
  EXPECT_EQ(tree.level_of(Gang{{NodeId{0}, 3}, {NodeId{1}, 1}}), Level::Rack);
  EXPECT_EQ(tree.level_of(Gang{{NodeId{1}, 3}, {NodeId{2}, 1}}), Level::CrossRack);
}

// Four devices in a square of fast links with one slow diagonal; 0-1 and 2-3 share a switch.
constexpr const char* kSquare =
    "gpus: 4, switches: 2, nvlink: [[0,50,25,50],[50,0,50,0],[25,50,0,50],[50,0,50,0]]";

TEST(Topology, AMeshMakesTheIslandAndItsRings) {
  const Cluster cluster = cluster_of(fmt::format("groups: [{{count: 1, {}}}]", kSquare));
  const ServerTree tree = make_server_tree(cluster, cluster.nodes[0]);
  EXPECT_EQ(text_of(tree), "server(nvlink)[switch(nvlink)[0 1] switch(nvlink)[2 3]]");
  ASSERT_TRUE(tree.rings);
  EXPECT_EQ(tree.rings->bandwidth(0b1111), 50e9);  // around the square, not over the diagonal
  EXPECT_EQ(tree.rings->bandwidth(0b0101), 25e9);
  EXPECT_EQ(tree.rings->bandwidth(0b0111), 25e9);  // a ring of three needs the diagonal
  EXPECT_EQ(tree.rings->best(0b1111, 2), 0b0011U);
  EXPECT_EQ(tree.rings->best(0b1101, 2), 0b1001U);  // 0-3 at 50 before 0-2 at 25
  EXPECT_EQ(tree.rings->best(0b1111, 3), 0b0111U);
  EXPECT_EQ(tree.level_of(0b0101), Level::Nvlink);
  // 1 and 3 have no link (or a broken one) and no switch in common: the next level up
  EXPECT_EQ(tree.rings->bandwidth(0b1010), cluster.links.socket);
  EXPECT_EQ(tree.level_of(0b1010), Level::Server);
  EXPECT_EQ(tree.level_of(0b1110), Level::Server);
}

TEST(Topology, ABrokenLinkBelowASwitchFallsBackToTheSwitch) {
  const Cluster cluster =
      cluster_of("groups: [{count: 1, gpus: 3, switches: 1, nvlink: [[0,0,9],[0,0,9],[9,9,0]]}]");
  const ServerTree tree = make_server_tree(cluster, cluster.nodes[0]);
  EXPECT_EQ(tree.level_of(0b011), Level::Pcie);
  EXPECT_EQ(tree.level_of(0b110), Level::Nvlink);
}

// What a gang is rated against is the best any of its size could have.
TEST(ServerTree, LowestLevelIsTheLowestOfAllSubsets) {
  for (const std::string group :
       {"gpus: 8, sockets: 2, switches: 4", "gpus: 7, switches: 3", "gpus: 8, nvlink_island: 4",
        "gpus: 6, sockets: 2, nvlink_island: 2",
        "gpus: 4, switches: 2, nvlink: [[0,50,25,50],[50,0,50,0],[25,50,0,50],[50,0,50,0]]",
        "gpus: 4, nvlink: [[0,25,50,0],[25,0,0,50],[50,0,0,25],[0,50,25,0]]",
        "gpus: 3, nvlink: [[0,1,0],[1,0,1],[0,1,0]]"}) {
    const auto cluster = *parse_cluster_yaml("groups: [{count: 1, " + group + "}]", "c.yaml");
    const ServerTree tree = make_server_tree(cluster, cluster.nodes[0]);
    for (std::int32_t gpus = 1; gpus <= cluster.nodes[0].gpus; ++gpus) {
      Level lowest = Level::CrossRack;
      for (std::uint64_t mask = 1; mask <= tree.vertices[0].devices; ++mask)
        if (std::popcount(mask) == gpus) lowest = std::min(lowest, tree.level_of(mask));
      EXPECT_EQ(tree.lowest_level(gpus), lowest) << group << " " << gpus;
    }
  }
}

}  // namespace
}  // namespace berth
