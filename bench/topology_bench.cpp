// The topology index at 100,000 GPUs: what a change and what a query cost. 12,500 servers of eight
// in racks of eight and zones of 31 racks (1,984 GPUs), filled to about the given percentage.
//   topology_bench --benchmark_filter=Find
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/topology_index.h"

namespace berth {
namespace {

const std::string kLarge =
    "groups: [{count: 12500, gpus: 8, sockets: 2, switches: 4, nodes_per_rack: 8, "
    "racks_per_zone: 31}]";

struct World {
  explicit World(std::uint64_t percent_taken)
      : cluster(*parse_cluster_yaml(kLarge, "bench.yaml")),
        index(std::make_shared<const Topology>(cluster)) {
    Rng rng(1);
    for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
      std::uint64_t mask = 0;
      for (unsigned device = 0; device < 8; ++device)
        if (rng.below(100) >= percent_taken) mask |= std::uint64_t{1} << device;
      index.set_free(NodeId{node}, mask);
    }
  }
  Cluster cluster;
  TopologyIndex index;
};

/// K devices, found and given back at once; arguments: K, percentage taken.
void Find(benchmark::State& state) {
  World world(static_cast<std::uint64_t>(state.range(1)));
  const MatchQuery query{.pool = PoolId{0}, .gpus = static_cast<std::int32_t>(state.range(0))};
  std::vector<DeviceSet> buffer;
  for (auto unused : state) {
    static_cast<void>(unused);
    auto match = world.index.find(query, buffer);
    benchmark::DoNotOptimize(match);
  }
}
BENCHMARK(Find)->ArgsProduct({{1, 2, 4, 8, 16, 64, 256, 1024}, {0, 50, 95}});

/// Random gangs are placed until little is left, then given back in random order: one step is a
/// query and two changes of every server of the answer.
void PlaceAndRelease(benchmark::State& state) {
  World world(50);
  Rng rng(2);
  std::vector<DeviceSet> buffer;
  for (auto unused : state) {
    static_cast<void>(unused);
    const auto gpus = static_cast<std::int32_t>(1U << rng.below(5));
    const auto match = world.index.find({.pool = PoolId{0}, .gpus = gpus}, buffer);
    if (!match) continue;
    for (const DeviceSet& part : match->parts)
      world.index.set_free(part.node, world.index.free_mask(part.node) & ~part.devices);
    for (const DeviceSet& part : match->parts)
      world.index.set_free(part.node, world.index.free_mask(part.node) | part.devices);
  }
}
BENCHMARK(PlaceAndRelease);

void SetFree(benchmark::State& state) {
  World world(50);
  Rng rng(3);
  for (auto unused : state) {
    static_cast<void>(unused);
    const NodeId node{static_cast<std::uint32_t>(rng.below(12'500))};
    world.index.set_free(node, world.index.free_mask(node) ^ (std::uint64_t{1} << rng.below(8)));
  }
}
BENCHMARK(SetFree);

}  // namespace
}  // namespace berth

BENCHMARK_MAIN();
