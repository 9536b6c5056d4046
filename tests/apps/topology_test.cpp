// The drawing of `berth topology`: equal neighbours folded, links and totals told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/topology.h"

namespace berth {
namespace {

using testing::HasSubstr;

Cluster cluster_of(const std::string& text) { return *parse_cluster_yaml(text, "c.yaml"); }

TEST(TopologyDrawing, FoldsEqualNeighbours) {
  const Cluster cluster = cluster_of(R"(
name: lab
groups:
  - {count: 32, gpus: 8, type: v100, sockets: 2, switches: 4, cpus: 64, memory_gb: 512,
     nodes_per_rack: 16}
  - {nodes: "old[1-2]", gpus: 2, type: p100, rack: attic}
)");
  EXPECT_EQ(draw_topology(cluster),
            "cluster lab\n"
            "└─ zone z0  [cross-rack 2.5 GB/s, 60 us]\n"
            "   ├─ rack r0…r1 x2  [rack 5 GB/s, 30 us]\n"
            "   │  └─ node n0…n15 x16: 8 v100, 64 cores, 512 GB  [server 9 GB/s, 15 us]\n"
            "   │     └─ socket x2  [server 9 GB/s, 15 us]\n"
            "   │        └─ switch x2  [pcie 12 GB/s, 10 us]\n"
            "   │           └─ v100 x2\n"
            "   └─ rack attic  [rack 5 GB/s, 30 us]\n"
            "      └─ node old1…old2 x2: 2 p100  [server 9 GB/s, 15 us]\n"
            "         └─ p100 x2\n"
            "\n"
            "device  kind  devices  GB each  speed  slots\n"
            "------  ----  -------  -------  -----  -----\n"
            "v100    gpu       256       16      1      8\n"
            "p100    gpu         4       16    0.6      8\n");
}

TEST(TopologyDrawing, ANodeThatDiffersStandsAlone) {
  const std::string text = draw_topology(cluster_of(
      "groups: [{count: 2, gpus: 1}, {count: 1, gpus: 1, cpus: 4}, {count: 1, gpus: 1}]"));
  EXPECT_THAT(text, HasSubstr("├─ node n0…n1 x2: 1 gpu\n"));
  EXPECT_THAT(text, HasSubstr("├─ node n2: 1 gpu, 4 cores\n"));
  EXPECT_THAT(text, HasSubstr("└─ node n3: 1 gpu\n"));
}

TEST(TopologyDrawing, AMachineWithoutDevicesIsDrawnToo) {
  Cluster cluster;
  cluster.name = "box";
  cluster.racks = {"r0"};
  cluster.pools.push_back(*find_device("gpu"));
  cluster.nodes.emplace_back().name = "box";
  EXPECT_THAT(draw_topology(cluster), HasSubstr("node box: no devices\n"));
}

TEST(TopologyDrawing, JsonTellsTheSame) {
  const std::string json =
      topology_json(cluster_of("name: x\ngroups: [{count: 2, gpus: 2, nvlink_island: 2}]"));
  EXPECT_EQ(json,
            R"({"name":"x","nodes":2,"racks":1,"zones":1,"devices":[{"type":"gpu","kind":"gpu",)"
            R"("count":4,"memory_mib":16384,"speed":1,"slots":8}],"tree":{"type":"cluster",)"
            R"("name":"x","times":1,"children":[{"type":"zone","name":"z0","times":1,"children":)"
            R"([{"type":"rack","name":"r0","times":1,"level":"rack","bytes_per_second":5000000000,)"
            R"("latency_seconds":3e-05,"children":[{"type":"server","name":"n0","last":"n1",)"
            R"("times":2,"level":"nvlink","bytes_per_second":130000000000,"latency_seconds":5e-06,)"
            R"("children":[{"type":"device","times":2,"device":"gpu"}]}]}]}]}})"
            "\n");
}

}  // namespace
}  // namespace berth
