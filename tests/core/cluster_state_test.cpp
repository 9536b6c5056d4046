// The free state against a plain recount, and the placements against brute force.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "placements/node_picker.h"
#include "placements/placements.h"

namespace berth {
namespace {

TEST(NodeSet, AgreesWithASet) {
  Rng rng{3};
  for (const std::size_t size : {1U, 64U, 65U, 5000U, 300'000U}) {
    NodeSet set{size};
    std::set<std::uint32_t> naive;
    for (int step = 0; step < 3000; ++step) {
      const auto node = static_cast<std::uint32_t>(rng.below(size));
      if (naive.contains(node)) {
        set.erase(NodeId{node});
        naive.erase(node);
      } else {
        set.insert(NodeId{node});
        naive.insert(node);
      }
      const auto from = static_cast<std::uint32_t>(rng.below(size));
      const auto expected = naive.lower_bound(from);
      const auto found = set.next(NodeId{from});
      ASSERT_EQ(found.has_value(), expected != naive.end());
      if (found) {
        ASSERT_EQ(found->value, *expected);
      }
      ASSERT_EQ(set.size(), naive.size());
      if (!naive.empty() && step % 50 == 0) {
        const auto rank = rng.below(naive.size());
        ASSERT_EQ(set.nth(rank).value,
                  *std::next(naive.begin(), static_cast<std::ptrdiff_t>(rank)));
      }
    }
  }
}

void expect_recount(const ClusterState& state) {
  std::int64_t free = 0;
  for (std::uint32_t i = 0; i < state.cluster().nodes.size(); ++i) {
    const NodeId node{i};
    ASSERT_EQ(std::popcount(state.free_mask(node)), state.free_on(node));
    if (!state.is_up(node)) continue;
    ASSERT_TRUE(
        state.nodes_with(state.cluster().nodes[i].pool, state.free_on(node)).contains(node));
    free += state.free_on(node);
  }
  ASSERT_EQ(free, state.free_gpus());
}

TEST(ClusterState, AggregatesEqualARecountAfterRandomUse) {
  const Cluster cluster = *parse_cluster_short("6x8:a100,9x4:v100,5x2:v100");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  Rng rng{11};
  auto placement = *make_placement("best-fit");
  std::vector<std::pair<std::vector<Slice>, Shape>> held;
  for (int step = 0; step < 20'000; ++step) {
    if (rng.below(2) == 0 || held.empty()) {
      const PoolId pool{static_cast<std::uint32_t>(rng.below(2))};
      const Shape shape{.gpus = 1 + static_cast<std::int32_t>(rng.below(20)), .pools = {pool}};
      std::vector<Slice> slices;
      const bool placed =
          state.free_gpus(pool) >= shape.gpus && placement->place(state, shape, pool, rng, slices);
      ASSERT_EQ(placed, state.free_gpus(pool) >= shape.gpus)
          << "a relaxed gang is placed whenever there is room";
      if (!placed) continue;
      state.take(slices, shape);
      held.emplace_back(slices, shape);
    } else {
      const std::size_t i = rng.below(held.size());
      state.give(held[i].first, held[i].second);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (step % 100 == 0) expect_recount(state);
    if (HasFatalFailure()) return;
  }
}

class EveryPlacement : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPlacement, PlacesWholeGangsOnFreeDevicesOfOnePool) {
  const Cluster cluster = *parse_cluster_short("4x8:a100,6x4:v100");
  Rng rng{5};
  auto placement = *make_placement(GetParam());
  ClusterState state{cluster, ClusterState::Mode::Devices};
  for (int step = 0; step < 3000; ++step) {
    const PoolId pool{static_cast<std::uint32_t>(rng.below(2))};
    TraceJob job;
    Shape shape{.gpus = 1 + static_cast<std::int32_t>(rng.below(12)), .pools = {pool}};
    shape.locality = placement->locality_of(job, rng.below(2) == 0 ? "vgg16" : "resnet50");
    std::vector<Slice> slices;
    const bool enough = state.free_gpus(pool) >= shape.gpus;
    if (!enough || !placement->place(state, shape, pool, rng, slices)) {
      ASSERT_FALSE(enough && shape.locality == Locality::Relaxed)
          << "a relaxed gang is placed whenever there is room";
      state = ClusterState{cluster, ClusterState::Mode::Devices};
      continue;
    }
    std::int32_t sum = 0;
    for (const Slice& slice : slices) {
      ASSERT_EQ(cluster.nodes[slice.node.value].pool, pool);
      sum += slice.gpus;
    }
    ASSERT_EQ(sum, shape.gpus);
    if (shape.locality == Locality::Consolidated) {
      ASSERT_LE(std::ssize(slices), fewest_possible(state, shape, pool));
    }
    state.take(slices, shape);  // checks that every device was free
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPlacement,
                         ::testing::Values("first-fit", "best-fit", "consolidated", "spread",
                                           "random", "skew"),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::erase(name, '-');
                           return name;
                         });

std::vector<Slice> place(const std::string& placement, ClusterState& state, std::int32_t gpus,
                         std::int32_t cores = 0) {
  Shape shape{.gpus = gpus, .cpus_milli_per_gpu = cores * 1000, .pools = {PoolId{0}}};
  std::vector<Slice> slices;
  Rng rng{1};
  auto chosen = *make_placement(placement);
  if (!chosen->place(state, shape, PoolId{0}, rng, slices)) slices.clear();
  return slices;
}

TEST(Placements, ChooseTheirNodes) {
  const Cluster cluster = *parse_cluster_short("3x4");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  const std::vector<Slice> used{{NodeId{1}, 2, 0b11}, {NodeId{2}, 3, 0b111}};  // free: 4, 2, 1
  state.take(used, Shape{});
  EXPECT_EQ(place("first-fit", state, 1)[0].node, NodeId{0});
  EXPECT_EQ(place("best-fit", state, 1)[0].node, NodeId{2});
  EXPECT_EQ(place("best-fit", state, 2)[0].node, NodeId{1});
  EXPECT_EQ(place("best-fit", state, 5).size(), 2U);  // 4 + the tightest that holds 1
  EXPECT_EQ(place("best-fit", state, 5)[1].node, NodeId{2});
  EXPECT_EQ(place("spread", state, 3).size(), 3U);  // one on each
  EXPECT_TRUE(place("best-fit", state, 8).empty());
}

TEST(Placements, CountCoresBesideDevices) {
  Cluster cluster = *parse_cluster_short("2x4");
  for (Node& node : cluster.nodes) node.cpus_milli = 16'000;
  ClusterState state{cluster, ClusterState::Mode::Devices};
  const std::vector<Slice> used{{NodeId{0}, 2, 0b11}};
  state.take(used, Shape{.gpus = 2,
                         .cpus_milli_per_gpu = 7'000,
                         .pools = {PoolId{0}}});  // node 0: 2 GPUs free, 2 cores left
  EXPECT_EQ(place("best-fit", state, 2, 4)[0].node, NodeId{1});
  EXPECT_EQ(place("best-fit", state, 2, 1)[0].node, NodeId{0});
  EXPECT_TRUE(place("best-fit", state, 5, 4).empty());  // 4 on node 1, none on node 0
}

TEST(ClusterShort, SaysWhatIsWrongAndWhere) {
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{{"", "no 'x'"},
                                                        {"4", "no 'x'"},
                                                        {"0x4", "nodes must be"},
                                                        {"4x0", "GPUs per node"},
                                                        {"4x65", "GPUs per node"},
                                                        {"4x4,", "no 'x'"},
                                                        {"4x4:a b", "device type"},
                                                        {"2x2,axb", "1:5"},
                                                        {"99999999x4", "nodes must be"}}) {
    const auto cluster = parse_cluster_short(text);
    ASSERT_FALSE(cluster.has_value()) << text;
    EXPECT_NE(cluster.error().text().find(part), std::string::npos) << cluster.error().text();
  }
  EXPECT_EQ(parse_cluster_short("8x8:A100,16x4:v100")->total_gpus(), 128);
  EXPECT_EQ(parse_cluster_short("8x8:A100,16x4:v100")->pools[0].name, "a100");
}

}  // namespace
}  // namespace berth
