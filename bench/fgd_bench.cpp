// How long one placement by fragmentation gradient descent takes on 1,500 nodes, beside a rule that
// looks at every node. Tasks of openb-like shapes arrive and leave so that the cluster stays about
// nine tenths full; the third figure is the whole placement of a run, over the state of a cluster
// of four device types. Exits with 1 if FGD needs 50 microseconds or more.
//   fgd_bench [NODES]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "core/cluster_state.h"
#include "placements/fgd.h"
#include "placements/fraction_placements.h"
#include "placements/fraction_rules.h"

namespace {

using namespace berth;

NodeRooms cluster_of(std::uint32_t nodes) {
  NodeRooms rooms{8};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const bool large = i % 2 == 0;
    rooms.add(PoolId{i % 4}, large ? 8 : 2, large ? 96'000 : 64'000, large ? 393'216 : 262'144);
  }
  return rooms;
}

/// 150 shapes of which a few make up most tasks.
std::vector<TargetWorkload::TaskClass> shapes(Rng& rng) {
  std::vector<TargetWorkload::TaskClass> all;
  constexpr std::int32_t kMilli[] = {1000, 810, 470, 320, 650, 230, 460, 590};
  for (std::int64_t i = 0; i < 150; ++i) {
    NodeDemand demand;
    demand.cpus_milli = 1000 * static_cast<std::int64_t>(1 + rng.below(16));
    demand.memory_mib = 4096 * static_cast<std::int64_t>(1 + rng.below(12));
    demand.gpu_milli = kMilli[rng.below(8)];
    if (demand.gpu_milli == kWholeDevice && rng.below(4) == 0)
      demand.gpus = std::int32_t{2} << rng.below(3);
    all.push_back({demand, 1 + 2000 / (1 + i)});
  }
  return all;
}

struct Placed {
  NodeChoice choice;
  NodeDemand demand;
};

template <class Choose>
double microseconds_per_placement(std::uint32_t nodes, Choose make_chooser) {
  Rng rng{1};
  NodeRooms rooms = cluster_of(nodes);
  const auto classes = shapes(rng);
  std::vector<double> weights;
  for (const auto& each : classes) weights.push_back(static_cast<double>(each.weight));
  auto choose = make_chooser(rooms, classes);
  std::vector<Placed> running;
  double spent = 0;
  int measured = 0;
  for (int step = 0; step < 60'000; ++step) {
    const NodeDemand& demand = classes[rng.weighted(weights)].demand;
    const std::clock_t begin = std::clock();  // processor time: others may be busy beside us
    const auto choice = choose(demand, rng);
    const auto took = static_cast<double>(std::clock() - begin) * (1e6 / CLOCKS_PER_SEC);
    if (step >= 20'000) {
      spent += took;
      ++measured;
    }
    if (choice) {
      rooms.take(*choice, demand);
      running.push_back({*choice, demand});
    }
    if (!choice || running.size() > nodes * 5) {
      const std::size_t at = rng.below(running.size());
      rooms.give(running[at].choice, running[at].demand);
      running[at] = running.back();
      running.pop_back();
    }
  }
  return spent / measured;
}

Cluster described(std::uint32_t nodes) {
  Cluster cluster = *parse_cluster_short("1x8:t4,1x8:v100,1x8:a100,1x8:h100");
  const Node first = cluster.nodes.front();
  cluster.nodes.clear();
  const NodeRooms rooms = cluster_of(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const NodeRooms::Room& room = rooms[NodeId{i}];
    Node& node = cluster.nodes.emplace_back(first);
    node.pool = room.pool;
    node.gpus = room.gpus;
    node.cpus_milli = room.cpus_milli;
    node.memory_mib = room.memory_mib;
  }
  return cluster;
}

Shape shape_of(const NodeDemand& demand) {
  Shape shape;
  shape.gpus = demand.gpus;
  shape.gpu_milli = demand.gpu_milli;
  shape.cpus_milli_per_gpu = static_cast<std::int32_t>(demand.cpus_milli / demand.gpus);
  shape.memory_mib_per_gpu = static_cast<std::int32_t>(demand.memory_mib / demand.gpus);
  shape.pools = {PoolId{0}, PoolId{1}, PoolId{2}, PoolId{3}};
  return shape;
}

/// As above, through the placement of a run.
double microseconds_in_a_run(std::uint32_t nodes) {
  struct Running {
    JobId job;
    Shape shape;
    std::vector<Slice> slices;
  };
  Rng rng{1};
  const Cluster cluster = described(nodes);
  ClusterState state{cluster, ClusterState::Mode::Devices};
  state.track_devices();
  state.track_changes();
  const auto classes = shapes(rng);
  std::vector<double> weights;
  for (const auto& each : classes) weights.push_back(static_cast<double>(each.weight));
  const auto fgd = make_fraction_placement("fgd");
  std::vector<Running> running;
  double spent = 0;
  int measured = 0;
  for (std::uint32_t step = 0; step < 60'000; ++step) {
    Running next{JobId{step}, shape_of(classes[rng.weighted(weights)].demand), {}};
    const std::clock_t begin = std::clock();
    const bool placed = fgd->place_in_any(state, next.shape, rng, next.slices).has_value();
    const auto took = static_cast<double>(std::clock() - begin) * (1e6 / CLOCKS_PER_SEC);
    if (step >= 20'000) {
      spent += took;
      ++measured;
    }
    if (placed) {
      state.take(next.slices, next.shape, next.job, {.milli = next.shape.gpu_milli});
      running.push_back(next);
    }
    if (!placed || running.size() > nodes * 5) {
      std::swap(running[rng.below(running.size())], running.back());
      const Running& last = running.back();
      state.give(last.slices, last.shape, last.job, {.milli = last.shape.gpu_milli});
      running.pop_back();
    }
  }
  return spent / measured;
}

}  // namespace

int main(int argc, char** argv) {
  const auto nodes =
      static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1500);
  const double fgd =
      microseconds_per_placement(nodes, [](const NodeRooms& rooms, const auto& classes) {
        WorkloadHistory history;
        for (const auto& each : classes) {
          for (std::int64_t i = 0; i < each.weight; ++i) history.add(each.demand);
        }
        return [index = FragmentationIndex{rooms, TargetWorkload{history.typical(), 4}}](
                   const NodeDemand& demand, Rng&) mutable { return index.choose(demand); };
      });
  const TaskSizes nobody{nodes};
  const double scan = microseconds_per_placement(nodes, [&](const NodeRooms& rooms, const auto&) {
    return [placer = FractionPlacer{FractionRule::BestFit, rooms, nobody}](
               const NodeDemand& demand, Rng& rng) mutable { return placer.choose(demand, rng); };
  });
  const double run = microseconds_in_a_run(nodes);
  fmt::print(
      "{} nodes: fgd {:.1f} us, best-fit by scan {:.1f} us, fgd in a run {:.1f} us per placement\n",
      nodes, fgd, scan, run);
  return fgd < 50 && run < 50 ? 0 : 1;
}
