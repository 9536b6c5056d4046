// How long one placement by fragmentation gradient descent takes on 1,500 nodes, beside a rule that
// looks at every node. Tasks of openb-like shapes arrive and leave so that the cluster stays about
// nine tenths full. Exits with 1 if FGD needs 50 microseconds or more.
//   fgd_bench [NODES]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "policies/placements/fgd.h"
#include "policies/placements/fraction_rules.h"

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
  fmt::print("{} nodes: fgd {:.1f} us, best-fit by scan {:.1f} us per placement\n", nodes, fgd,
             scan);
  return fgd < 50 ? 0 : 1;
}
