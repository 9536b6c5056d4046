// The index of free devices over the topology tree, and its matcher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "core/bit_set.h"
#include "core/topology_index.h"

namespace berth::topology_index_tests {
namespace {

using testing::ElementsAre;

struct World {
  explicit World(const std::string& yaml)
      : cluster(std::make_unique<Cluster>(*parse_cluster_yaml(yaml, "c.yaml"))),
        topology(std::make_shared<const Topology>(*cluster)),
        index(topology) {}

  void set_all_free() {
    for (std::uint32_t i = 0; i < cluster->nodes.size(); ++i) index.set_free(NodeId{i}, full(i));
  }
  [[nodiscard]] std::uint64_t full(std::uint32_t node) const {
    const auto gpus = static_cast<unsigned>(cluster->nodes[node].gpus);
    return gpus == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << gpus) - 1;
  }

  [[nodiscard]] std::optional<Match> find(const MatchQuery& query) {
    return index.find(query, buffer);
  }

  std::unique_ptr<Cluster> cluster;
  std::shared_ptr<const Topology> topology;
  TopologyIndex index;
  std::vector<DeviceSet> buffer;
};

/// "pcie: 0/3 1/1": level, then node/devices.
std::string text_of(const std::optional<Match>& match) {
  if (!match) return "none";
  std::string text = fmt::format("{}:", to_string(match->level));
  for (const DeviceSet& part : match->parts)
    text += fmt::format(" {}/{:x}", part.node.value, part.devices);
  return text;
}

TEST(BitIndex, FindsNeighboursBothWays) {
  Rng rng(7);
  BitIndex index(70'000);
  std::set<std::size_t> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t key = rng.below(70'000);
    if (rng.below(2) == 0) {
      index.insert(key);
      model.insert(key);
    } else {
      index.erase(key);
      model.erase(key);
    }
    const std::size_t from = rng.below(80'000);
    const auto above = model.lower_bound(from);
    EXPECT_EQ(index.next(from), above == model.end() ? std::optional<std::size_t>{} : *above);
    EXPECT_EQ(index.previous(from),
              above == model.begin() ? std::optional<std::size_t>{} : *std::prev(above));
    EXPECT_EQ(index.contains(key), model.contains(key));
  }
}

// Free racks {2+2} and {4+2}, K=4: rack 0 fits best, but only rack 1 has a server with 4.
TEST(TopologyMatch, LooksForTheLowestLevelNotTheBestFittingRack) {
  World world("groups: [{count: 4, gpus: 4, nodes_per_rack: 2}]");
  world.index.set_free(NodeId{0}, 0b0011);
  world.index.set_free(NodeId{1}, 0b0011);
  world.index.set_free(NodeId{2}, 0b1111);
  world.index.set_free(NodeId{3}, 0b0011);
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 4})), "server: 2/f");
}

TEST(TopologyMatch, RefusesWhatIsAboveTheLevelAsked) {
  World world("groups: [{count: 4, gpus: 4, nodes_per_rack: 2}]");
  world.set_all_free();
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 6, .max_level = Level::Server})),
            "none");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 6, .max_level = Level::Rack})),
            "rack: 0/f 1/3");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 9, .max_level = Level::Rack})), "none");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 17})), "none");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 1, .max_level = Level::Device})),
            "device: 0/1");
}

// Roomiest children first, so that few are used; the last one as tight as possible.
TEST(TopologyMatch, CollectsFromFewChildrenTheLastBestFit) {
  World world("groups: [{count: 5, gpus: 8, nodes_per_rack: 5}]");
  world.index.set_free(NodeId{0}, 0b1);
  world.index.set_free(NodeId{1}, 0b11111);
  world.index.set_free(NodeId{2}, 0b111111);
  world.index.set_free(NodeId{3}, 0b11);
  world.index.set_free(NodeId{4}, 0b111);
  // 8 = 6 of server 2, then 2: server 3 has exactly that
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 8})), "rack: 2/3f 3/3");
  // 15 = 6 + 5 + 3 + 1: the last one is the tightest
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 15})), "rack: 2/3f 1/1f 4/7 0/1");
}

TEST(TopologyMatch, GoesAcrossRacksThenZonesByTheSameRule) {
  World world("groups: [{count: 8, gpus: 2, nodes_per_rack: 2, racks_per_zone: 2}]");
  world.set_all_free();
  world.index.set_free(NodeId{0}, 0);
  // zone 0 has 2+4 = 6 free, zone 1 eight: six fit into zone 0, its roomier rack first
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 6})), "cross-rack: 2/3 3/3 1/3");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 9})), "cross-rack: 4/3 5/3 6/3 7/3 1/1");
}

TEST(TopologyMatch, PoolsAreApart) {
  World world("groups: [{count: 1, gpus: 2, type: v100}, {count: 1, gpus: 4, type: a100}]");
  world.set_all_free();
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 3})), "none");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{1}, .gpus = 3})), "server: 1/7");
  EXPECT_EQ(world.index.free_devices(Topology::root(), PoolId{0}), 2);
  EXPECT_EQ(world.index.free_devices(Topology::root(), PoolId{1}), 4);
}

// One device comes out of the pair that is broken already, and out of the fuller server.
TEST(TopologyMatch, BreaksTheSmallestHoleFirst) {
  World world("groups: [{count: 2, gpus: 8, sockets: 2, switches: 4}]");
  world.index.set_free(NodeId{0}, 0b1111'1111);
  world.index.set_free(NodeId{1}, 0b1100'1100);
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 2})), "pcie: 1/c");
  world.index.set_free(NodeId{0}, 0b0111'1111);
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 1})), "device: 0/40");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 4})), "server: 0/f");
}

class Cores final : public ServerRoom {
 public:
  explicit Cores(std::vector<std::int32_t> rooms) : rooms_(std::move(rooms)) {}
  [[nodiscard]] std::int32_t room(NodeId node) const override { return rooms_[node.value]; }

 private:
  std::vector<std::int32_t> rooms_;
};

TEST(TopologyMatch, ServersWithoutCoresHaveNoRoom) {
  World world("groups: [{count: 4, gpus: 4, nodes_per_rack: 2}]");
  world.set_all_free();
  const Cores cores({1, 2, 3, 3});
  const auto find = [&](std::int32_t gpus) {
    return text_of(world.find({.pool = PoolId{0}, .gpus = gpus, .room = &cores}));
  };
  EXPECT_EQ(find(2), "server: 1/3");
  EXPECT_EQ(find(3), "server: 2/7");
  EXPECT_EQ(find(4), "rack: 2/7 3/1");
  EXPECT_EQ(find(9), "cross-rack: 2/7 3/7 1/3 0/1");
  EXPECT_EQ(find(10), "none");
}

class Noise final : public ServerScore {
 public:
  explicit Noise(std::vector<double> scores) : scores_(std::move(scores)) {}
  [[nodiscard]] double score(NodeId node) const override { return scores_[node.value]; }

 private:
  std::vector<double> scores_;
};

TEST(TopologyMatch, EquallyTightServersGoByInterference) {
  World world("groups: [{count: 4, gpus: 4}]");
  world.set_all_free();
  world.index.set_free(NodeId{3}, 0b0111);
  const Noise noise({0.5, 0.2, 0.2, 9});
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 4, .score = &noise})), "server: 1/f");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 3, .score = &noise})),
            "server: 3/7");  // the tightest, however loud
}

// A ring is as fast as its slowest link: of four meshed devices the fast square, not the diagonal.
TEST(TopologyMatch, FollowsTheMeshInsideOfAServer) {
  World world(
      "groups: [{count: 1, gpus: 4, nvlink: [[0,25,50,0],[25,0,0,50],[50,0,0,25],[0,50,25,0]]}]");
  world.index.set_free(NodeId{0}, 0b1111);
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 2})), "nvlink: 0/5");
  world.index.set_free(NodeId{0}, 0b1001);  // 0 and 3 have no link: the next level up
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 2})), "server: 0/9");
  EXPECT_EQ(text_of(world.find({.pool = PoolId{0}, .gpus = 2, .max_level = Level::Nvlink})),
            "none");
}

const std::vector<std::string> kWorlds{
    "groups: [{count: 8, gpus: 8, sockets: 2, switches: 4, nodes_per_rack: 3}]",
    "groups: [{count: 6, gpus: 6, sockets: 2, nodes_per_rack: 2, racks_per_zone: 2}, "
    "{count: 4, gpus: 4, nvlink_island: 2, nodes_per_rack: 2}]",
    "groups: [{count: 3, gpus: 8, nvlink_island: 4, sockets: 2, type: a100, nodes_per_rack: 2}, "
    "{count: 5, gpus: 3, type: v100, nodes_per_rack: 2, racks_per_zone: 1}]",
    "groups: [{count: 4, gpus: 4, switches: 2, nodes_per_rack: 2, "
    "nvlink: [[0,50,25,50],[50,0,50,0],[25,50,0,50],[50,0,50,0]]}, {count: 2, gpus: 7}]",
    "groups: [{count: 1, gpus: 64, sockets: 4, switches: 16}]"};

/// The same numbers by counting devices.
void expect_recount(const World& world) {
  const Cluster& cluster = *world.cluster;
  const Topology& tree = *world.topology;
  for (std::uint32_t pool = 0; pool < cluster.pools.size(); ++pool) {
    std::vector<std::int32_t> free(tree.vertices().size());
    std::vector<std::int32_t> most(tree.vertices().size());
    for (std::uint32_t i = static_cast<std::uint32_t>(tree.vertices().size()); i-- > 0;) {
      const Vertex& vertex = tree.vertices()[i];
      if (vertex.type == VertexType::Server && cluster.nodes[vertex.id].pool.value == pool)
        free[i] = std::popcount(world.index.free_mask(NodeId{vertex.id}));
      EXPECT_EQ(world.index.free_devices(VertexId{i}, PoolId{pool}), free[i]);
      if (vertex.type != VertexType::Server) {
        EXPECT_EQ(world.index.max_free_child(VertexId{i}, PoolId{pool}), most[i]);
      }
      if (i == 0) continue;
      free[vertex.parent.value] += free[i];
      most[vertex.parent.value] = std::max(most[vertex.parent.value], free[i]);
    }
  }
}

TEST(TopologyIndexProperty, AggregatesEqualARecountAfterRandomChanges) {
  for (const std::string& text : kWorlds) {
    World world(text);
    Rng rng(11);
    for (int step = 0; step < 100'000; ++step) {
      const auto node = static_cast<std::uint32_t>(rng.below(world.cluster->nodes.size()));
      const auto device = rng.below(static_cast<std::uint64_t>(world.cluster->nodes[node].gpus));
      const std::uint64_t bit = std::uint64_t{1} << device;
      world.index.set_free(NodeId{node}, world.index.free_mask(NodeId{node}) ^ bit);
      if (step % 5000 == 0) expect_recount(world);
    }
    expect_recount(world);
  }
}

/// The lowest level at which some vertex has enough free devices, by looking at all of them.
std::optional<Level> brute_force(const World& world, PoolId pool, std::int32_t gpus) {
  const Cluster& cluster = *world.cluster;
  std::optional<Level> best;
  const auto offer = [&](Level level) {
    if (!best || level < *best) best = level;
  };
  std::vector<std::int32_t> racks(cluster.racks.size());
  std::int32_t all = 0;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (cluster.nodes[i].pool != pool) continue;
    const std::uint64_t mask = world.index.free_mask(NodeId{i});
    racks[cluster.nodes[i].rack.value] += std::popcount(mask);
    all += std::popcount(mask);
    const ServerTree& tree = world.topology->inside(NodeId{i});
    if (tree.rings) {  // every subset of the right size
      for (std::uint64_t part = mask; part > 0; part = (part - 1) & mask)
        if (std::popcount(part) == gpus) offer(tree.level_of(part));
      continue;
    }
    for (const InnerVertex& vertex : tree.vertices)
      if (std::popcount(mask & vertex.devices) >= gpus) offer(vertex.level);
  }
  for (const std::int32_t free : racks)
    if (free >= gpus) offer(Level::Rack);
  if (all >= gpus) offer(Level::CrossRack);
  if (best && gpus == 1) best = Level::Device;
  return best;
}

/// The parts of a gang above one server by walking: the roomiest child first, the last one the
/// tightest that is enough.
void collect_naively(const World& world, PoolId pool, VertexId vertex, std::int32_t count,
                     std::vector<DeviceSet>& parts) {
  const Vertex& row = (*world.topology)[vertex];
  if (row.type == VertexType::Server) {
    const std::uint64_t mask = world.index.free_mask(NodeId{row.id});
    if (std::popcount(mask) == count) parts.push_back({NodeId{row.id}, mask});
    if (std::popcount(mask) > count)  // which ones is another rule
      parts.push_back({NodeId{row.id}, 0});
    return;
  }
  std::vector<VertexId> left(world.topology->children(vertex).begin(),
                             world.topology->children(vertex).end());
  const auto free = [&](VertexId child) { return world.index.free_devices(child, pool); };
  while (count > 0) {
    const auto enough = [&](VertexId child) { return free(child) >= count; };
    std::ranges::stable_sort(left, [&](VertexId a, VertexId b) {
      if (enough(a) != enough(b)) return enough(a);
      return enough(a) ? free(a) < free(b) : free(a) > free(b);
    });
    const std::int32_t part = std::min(count, free(left.front()));
    collect_naively(world, pool, left.front(), part, parts);
    count -= part;
    left.erase(left.begin());
    std::ranges::sort(left);
  }
}

// Racks that are taken whole are copied in one go; nobody may notice.
TEST(TopologyIndexProperty, LargeGangsHaveThePartsOfAPlainWalk) {
  World world(
      "groups: [{count: 300, gpus: 4, nodes_per_rack: 7, racks_per_zone: 5}, "
      "{count: 40, gpus: 8, type: a100, nodes_per_rack: 9}]");
  Rng rng(9);
  for (int step = 0; step < 60; ++step) {
    for (std::uint32_t i = 0; i < world.cluster->nodes.size(); ++i)
      world.index.set_free(NodeId{i}, rng.next() & rng.next() & world.full(i));
    const auto gpus = static_cast<std::int32_t>(9 + rng.below(400));
    const auto match = world.find({.pool = PoolId{0}, .gpus = gpus});
    if (!match) continue;
    VertexId vertex = Topology::root();  // the tightest of the lowest level
    for (std::uint32_t i = world.topology->server(NodeId{0}).value; i-- > 1;) {
      const auto key = [&](VertexId at) {
        return std::pair((*world.topology)[at].level, world.index.free_devices(at, PoolId{0}));
      };
      const bool fits = world.index.free_devices(VertexId{i}, PoolId{0}) >= gpus;
      if (fits && (vertex == Topology::root() || key(VertexId{i}) <= key(vertex)))
        vertex = VertexId{i};
    }
    std::vector<DeviceSet> expected;
    collect_naively(world, PoolId{0}, vertex, gpus, expected);
    std::vector<DeviceSet> parts(match->parts.begin(), match->parts.end());
    std::ranges::sort(parts, {}, &DeviceSet::node);
    std::ranges::sort(expected, {}, &DeviceSet::node);
    ASSERT_EQ(parts.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(parts[i].node, expected[i].node);
      if (expected[i].devices != 0) {
        EXPECT_EQ(parts[i].devices, expected[i].devices);
      }
    }
  }
}

TEST(TopologyIndexProperty, TheMatchersLevelIsTheLowestThereIs) {
  for (const std::string& text : kWorlds) {
    World world(text);
    Rng rng(5);
    for (int step = 0; step < 4000; ++step) {
      const auto node = static_cast<std::uint32_t>(rng.below(world.cluster->nodes.size()));
      const std::uint64_t sparse = rng.below(3) == 0 ? rng.next() : rng.next() & rng.next();
      world.index.set_free(NodeId{node}, sparse & world.full(node));
      const PoolId pool{static_cast<std::uint32_t>(rng.below(world.cluster->pools.size()))};
      const auto gpus = static_cast<std::int32_t>(1 + rng.below(20));
      const auto match = world.find({.pool = pool, .gpus = gpus});
      const auto expected = brute_force(world, pool, gpus);
      ASSERT_EQ(match.has_value(), expected.has_value()) << text << gpus;
      if (!match) continue;
      EXPECT_EQ(match->level, *expected) << text << gpus;
      EXPECT_EQ(match->level, world.topology->level_of(match->parts));
      std::int32_t count = 0;
      std::set<NodeId> nodes;
      for (const DeviceSet& part : match->parts) {
        EXPECT_EQ(part.devices & ~world.index.free_mask(part.node), 0U);
        EXPECT_EQ(world.cluster->nodes[part.node.value].pool, pool);
        EXPECT_TRUE(nodes.insert(part.node).second);
        count += std::popcount(part.devices);
      }
      EXPECT_EQ(count, gpus);
      const auto lower = static_cast<Level>(static_cast<int>(*expected) - 1);
      if (*expected != Level::Device) {
        EXPECT_FALSE(world.find({.pool = pool, .gpus = gpus, .max_level = lower}));
      }
    }
  }
}

}  // namespace
}  // namespace berth::topology_index_tests
