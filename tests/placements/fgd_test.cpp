// Fragmentation gradient descent: the worked cluster, ties, and the incremental index against a
// scan of all nodes; the rules it is compared with.
#include <gtest/gtest.h>

#include <bit>
#include <tuple>

#include "base/rng.h"
#include "placements/fgd.h"
#include "placements/fraction_rules.h"

namespace berth {
namespace {

constexpr std::int64_t kPlenty = 1'000'000'000;

NodeDemand task(std::int64_t cpus, std::int32_t milli, std::int32_t gpus) {
  return {.cpus_milli = cpus * 1000, .gpus = gpus, .gpu_milli = milli};
}

const NodeDemand m1 = task(4, 500, 1), m2 = task(8, 1000, 1), m3 = task(16, 1000, 2);

TargetWorkload worked_target() { return TargetWorkload{{{m1, 5}, {m2, 3}, {m3, 2}}, 1}; }

/// n1: 32 cores, [1000, 600]; n2: 10 cores, [300, 1000, 1000]; n3: 64 cores, [1000 x 4].
NodeRooms worked_nodes() {
  NodeRooms rooms{8};
  rooms.add(PoolId{0}, 2, 32'000, kPlenty);
  rooms.add(PoolId{0}, 3, 10'000, kPlenty);
  rooms.add(PoolId{0}, 4, 64'000, kPlenty);
  rooms.take({NodeId{0}, 0b10}, task(0, 400, 1));
  rooms.take({NodeId{1}, 0b1}, task(0, 700, 1));
  return rooms;
}

class WorkedFgd : public ::testing::Test {
 protected:
  NodeRooms rooms_ = worked_nodes();
  FragmentationIndex index_{rooms_, worked_target()};
  // weights add up to 10: ten times the figures of the example
  [[nodiscard]] std::int64_t growth(std::uint32_t node, std::uint64_t devices,
                                    const NodeDemand& demand) const {
    return index_.growth({NodeId{node}, devices}, demand);
  }
};

TEST_F(WorkedFgd, FragmentsOfTheNodes) {
  EXPECT_EQ(index_.fragment_of(NodeId{0}), 5000);
  EXPECT_EQ(index_.fragment_of(NodeId{1}), 7000);
  EXPECT_EQ(index_.fragment_of(NodeId{2}), 0);
  EXPECT_DOUBLE_EQ(index_.fragmentation(), 1.2);  // 1200 thousandths of a device
}

TEST_F(WorkedFgd, AFractionGoesWhereItHealsMost) {
  EXPECT_EQ(growth(0, 0b01, m1), 500);
  EXPECT_EQ(growth(0, 0b10, m1), -2000);
  EXPECT_EQ(growth(1, 0b010, m1), 3500);  // 6 cores left: m2 and m3 cannot run there any more
  EXPECT_EQ(growth(2, 0b0001, m1), 2500);
  EXPECT_EQ(index_.choose(m1), (NodeChoice{NodeId{0}, 0b10}));
}

TEST_F(WorkedFgd, AWholeDeviceGoesWhereItHealsMost) {
  EXPECT_EQ(growth(0, 0b01, m2), -2000);
  EXPECT_EQ(growth(1, 0b010, m2), 6000);
  EXPECT_EQ(growth(2, 0b0001, m2), 0);
  EXPECT_EQ(index_.choose(m2), (NodeChoice{NodeId{0}, 0b01}));
}

TEST_F(WorkedFgd, CoresAloneMayStrandDevices) {
  const NodeDemand cores{.cpus_milli = 8000, .gpus = 0};
  // n2 keeps 2 cores: nothing of the workload runs there, its 2300 free thousandths are lost
  EXPECT_EQ(growth(1, 0, cores), 23000 - 7000);
  EXPECT_EQ(growth(0, 0, cores), 0);
  EXPECT_EQ(index_.choose(cores),
            (NodeChoice{NodeId{0}, 0}));  // n1 has fewer devices left to strand than n3
}

TEST_F(WorkedFgd, NoNodeHoldsIt) {
  EXPECT_FALSE(index_.choose(task(1, 1000, 5)));
  EXPECT_FALSE(index_.choose(task(65, 100, 1)));
}

TEST(Fgd, ATypeNobodyAsksForIsAFragmentWhereverOneLooks) {
  NodeRooms rooms{2};
  rooms.add(PoolId{0}, 2, kPlenty, kPlenty);
  rooms.add(PoolId{1}, 2, kPlenty, kPlenty);
  NodeDemand only_first = task(1, 1000, 1);
  only_first.pools = {PoolId{0}};
  FragmentationIndex index{rooms, TargetWorkload{{{only_first, 1}}, 2}};
  EXPECT_EQ(index.fragment_of(NodeId{0}), 0);
  EXPECT_EQ(index.fragment_of(NodeId{1}), 2000);
  EXPECT_EQ(index.choose(task(1, 400, 1))->node, NodeId{1});  // a loss that was lost before
  EXPECT_EQ(index.choose(only_first)->node, NodeId{0});
}

TEST(Fgd, AWorkloadWithoutDevicesMakesEverythingAFragment) {
  NodeRooms rooms{2};
  rooms.add(PoolId{0}, 2, kPlenty, kPlenty);
  const NodeDemand cores{.cpus_milli = 1000, .gpus = 0};
  EXPECT_EQ((FragmentationIndex{rooms, TargetWorkload{{{cores, 7}}, 1}}.fragment_of(NodeId{0})),
            14000);
}

TEST(WorkloadHistory, KeepsTheMostFrequentShapesOfNineteenInTwenty) {
  WorkloadHistory history;
  for (int i = 0; i < 60; ++i) history.add(m1);
  for (int i = 0; i < 35; ++i) history.add(m2);
  for (int i = 0; i < 5; ++i) history.add(m3);
  const auto classes = history.typical();
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].demand, m1);
  EXPECT_EQ(classes[0].weight, 60);
  EXPECT_EQ(history.typical(1.0).size(), 3U);
  EXPECT_EQ(history.typical(1.0, 1).size(), 1U);
}

struct World {
  NodeRooms rooms{8};
  std::vector<NodeDemand> demands;
  std::vector<TargetWorkload::TaskClass> classes;
};

World random_world(Rng& rng, std::uint32_t nodes) {
  World world;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const auto pool = static_cast<std::uint32_t>(rng.below(2));
    world.rooms.add(PoolId{pool}, pool == 0 ? 2 : 8, pool == 0 ? 16'000 : 64'000, 1000);
  }
  for (int i = 0; i < 12; ++i) {
    NodeDemand demand = rng.below(4) == 0
                            ? task(static_cast<std::int64_t>(rng.below(16)), 1000,
                                   static_cast<std::int32_t>(rng.below(4)))
                            : task(static_cast<std::int64_t>(rng.below(8)),
                                   static_cast<std::int32_t>(100 * (1 + rng.below(10))), 1);
    demand.memory_mib = static_cast<std::int64_t>(rng.below(300));
    if (rng.below(3) == 0) demand.pools = {PoolId{static_cast<std::uint32_t>(rng.below(2))}};
    world.demands.push_back(demand);
    world.classes.push_back({demand, 1 + static_cast<std::int64_t>(rng.below(20))});
  }
  return world;
}

/// F by the definition: class by class, device by device.
std::int64_t plain_fragment(const NodeRooms& rooms, NodeId node,
                            const std::vector<TargetWorkload::TaskClass>& classes) {
  std::int64_t sum = 0;
  for (const auto& [demand, weight] : classes) {
    const bool runs = demand.gpus > 0 && rooms.holds(node, demand);
    for (const std::uint16_t milli : rooms.free(node))
      if (!runs || milli < demand.gpu_milli) sum += weight * milli;
  }
  return sum;
}

std::optional<NodeChoice> plain_choice(NodeRooms& rooms, const NodeDemand& demand,
                                       const std::vector<TargetWorkload::TaskClass>& classes) {
  using Key = std::tuple<std::int64_t, std::int32_t, std::int32_t, std::uint32_t, std::uint64_t>;
  std::optional<Key> best;
  std::optional<NodeChoice> choice;
  for (std::uint32_t i = 0; i < rooms.size(); ++i) {
    const NodeId node{i};
    if (!rooms.holds(node, demand)) continue;
    const std::size_t tries = demand.is_fraction() ? rooms.free(node).size() : 1;
    for (std::size_t device = 0; device < tries; ++device) {
      const std::int32_t room = demand.is_fraction() ? rooms.free(node)[device] : 0;
      if (demand.is_fraction() && room < demand.gpu_milli) continue;
      const NodeChoice one{node, demand.is_fraction() ? std::uint64_t{1} << device
                                                      : rooms.whole_devices(node, demand.gpus)};
      const std::int64_t before = plain_fragment(rooms, node, classes);
      const std::int32_t left = rooms[node].free_milli;
      rooms.take(one, demand);
      const std::int64_t grown = plain_fragment(rooms, node, classes) - before;
      rooms.give(one, demand);
      const Key key{grown, left, room, i, device};
      if (best && *best <= key) continue;
      best = key;
      choice = one;
    }
  }
  return choice;
}

TEST(Fgd, TheIndexChoosesWhatTheDefinitionChooses) {
  Rng rng{23};
  for (int round = 0; round < 12; ++round) {
    World world = random_world(rng, 1 + static_cast<std::uint32_t>(rng.below(40)));
    FragmentationIndex index{world.rooms, TargetWorkload{world.classes, 2}};
    std::vector<std::pair<NodeChoice, NodeDemand>> placed;
    for (int step = 0; step < 150; ++step) {
      if (!placed.empty() && rng.below(3) == 0) {
        const std::size_t at = rng.below(placed.size());
        world.rooms.give(placed[at].first, placed[at].second);
        placed.erase(placed.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const NodeDemand& demand = world.demands[rng.below(world.demands.size())];
      const auto expected = plain_choice(world.rooms, demand, world.classes);
      const auto found = index.choose(demand);
      ASSERT_EQ(found, expected) << "round " << round << " step " << step;
      if (!found) continue;
      ASSERT_EQ(index.fragment_of(found->node),
                plain_fragment(world.rooms, found->node, world.classes));
      world.rooms.take(*found, demand);
      placed.emplace_back(*found, demand);
    }
  }
}

TEST(Fgd, ANewTargetIsSeenAtOnce) {
  NodeRooms rooms{2};
  rooms.add(PoolId{0}, 2, kPlenty, kPlenty);
  rooms.add(PoolId{0}, 2, kPlenty, kPlenty);
  rooms.take({NodeId{1}, 0b1}, task(0, 500, 1));
  FragmentationIndex index{rooms, TargetWorkload{{{task(0, 1000, 2), 1}}, 1}};
  // Node 1 holds no pair any more: either of its devices will do, so the one with less room.
  EXPECT_EQ(index.choose(task(0, 300, 1)), (NodeChoice{NodeId{1}, 0b01}));
  index.set_target(TargetWorkload{{{task(0, 400, 1), 1}}, 1});
  // Now 200 left of 500 would be lost.
  EXPECT_EQ(index.choose(task(0, 300, 1)), (NodeChoice{NodeId{1}, 0b10}));
}

class Rules : public ::testing::Test {
 protected:
  // node 0 idle with 4 devices, node 1 with one device half taken, node 2 with one device taken
  Rules() {
    for (int i = 0; i < 3; ++i) rooms_.add(PoolId{0}, 4, 32'000, kPlenty);
    put({NodeId{1}, 0b1}, task(4, 500, 1));
    put({NodeId{2}, 0b1}, task(4, 1000, 1));
  }
  void put(const NodeChoice& choice, const NodeDemand& demand) {
    rooms_.take(choice, demand);
    sizes_.add(choice.node, demand);
  }
  [[nodiscard]] std::optional<NodeChoice> choose(FractionRule rule, const NodeDemand& demand) {
    return FractionPlacer{rule, rooms_, sizes_}.choose(demand, rng_);
  }
  NodeRooms rooms_{4};
  TaskSizes sizes_{3};
  Rng rng_{1};
};

TEST_F(Rules, PackingTakesDevicesInUseThenNodesInUse) {
  EXPECT_EQ(choose(FractionRule::GpuPacking, task(1, 300, 1)), (NodeChoice{NodeId{1}, 0b1}));
  EXPECT_EQ(choose(FractionRule::GpuPacking, task(1, 600, 1)), (NodeChoice{NodeId{2}, 0b10}))
      << "no device in use holds it; of the nodes in use the fuller";
  EXPECT_EQ(choose(FractionRule::GpuPacking, task(1, 1000, 4)), (NodeChoice{NodeId{0}, 0b1111}));
}

TEST_F(Rules, ClusteringKeepsEqualSizesTogether) {
  EXPECT_EQ(choose(FractionRule::GpuClustering, task(1, 500, 1)), (NodeChoice{NodeId{1}, 0b1}));
  EXPECT_EQ(choose(FractionRule::GpuClustering, task(1, 1000, 1)), (NodeChoice{NodeId{2}, 0b10}));
  EXPECT_EQ(choose(FractionRule::GpuClustering, task(1, 250, 1))->node, NodeId{0})
      << "nobody has that size: rather an idle node than a strange one";
  put({NodeId{2}, 0b10}, task(0, 100, 1));
  EXPECT_EQ(choose(FractionRule::GpuClustering, task(1, 1000, 1))->node, NodeId{2});
}

TEST_F(Rules, BestFitLeavesTheLeastRest) {
  EXPECT_EQ(choose(FractionRule::BestFit, task(1, 300, 1))->node, NodeId{2});  // 3000 left of 4000
  EXPECT_EQ(choose(FractionRule::DotProduct, task(1, 300, 1))->node, NodeId{2});
}

TEST_F(Rules, RandomFitReachesEveryDeviceThatHolds) {
  std::uint64_t seen[3] = {};
  for (int i = 0; i < 400; ++i) {
    const auto choice = choose(FractionRule::RandomFit, task(1, 600, 1));
    ASSERT_TRUE(choice);
    ASSERT_EQ(std::popcount(choice->devices), 1);
    seen[choice->node.value] |= choice->devices;
  }
  EXPECT_EQ(seen[0], 0b1111U);
  EXPECT_EQ(seen[1], 0b1110U);
  EXPECT_EQ(seen[2], 0b1110U);
}

TEST_F(Rules, NoRuleTakesWhatIsNotThere) {
  for (const FractionRule rule :
       {FractionRule::RandomFit, FractionRule::BestFit, FractionRule::DotProduct,
        FractionRule::GpuPacking, FractionRule::GpuClustering}) {
    EXPECT_FALSE(choose(rule, task(1, 1000, 5)));
    EXPECT_FALSE(choose(rule, task(33, 100, 1)));
  }
}

}  // namespace
}  // namespace berth
