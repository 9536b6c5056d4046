// Free shareable slots over the topology tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "core/cluster_state.h"
#include "core/slot_index.h"

namespace berth {
namespace {

const std::string kTypes =
    "devices: [{name: half, slots: 2, memory_gb: 16}, {name: whole, slots: 1, memory_gb: 16}]\n";

struct World {
  explicit World(const std::string& groups)
      : cluster(std::make_unique<Cluster>(*parse_cluster_yaml(kTypes + groups, "c.yaml"))),
        topology(std::make_shared<const Topology>(*cluster)),
        index(topology) {}

  void set_all_free() {
    for (std::uint32_t i = 0; i < cluster->nodes.size(); ++i) {
      for (std::int32_t device = 0; device < cluster->nodes[i].gpus; ++device)
        index.set_free(NodeId{i}, device, index.slots_per_device(cluster->nodes[i].pool));
    }
  }
  [[nodiscard]] std::string find(const SlotQuery& query) {
    const auto match = index.find(query, buffer);
    if (!match) return "none";
    std::string text = fmt::format("{}:", to_string(match->level));
    for (const DeviceSet& part : match->parts)
      text += fmt::format(" {}/{:x}", part.node.value, part.devices);
    return text;
  }

  std::unique_ptr<Cluster> cluster;
  std::shared_ptr<const Topology> topology;
  SlotIndex index;
  std::vector<DeviceSet> buffer;
};

TEST(SlotIndex, OneDeviceIsTheTightestThatSuffices) {
  World world("groups: [{count: 2, gpus: 2}]");
  world.set_all_free();
  EXPECT_EQ(world.find({.pool = {}, .slots = 3}), "device: 0/1");
  world.index.set_free(NodeId{1}, 1, 4);
  world.index.set_free(NodeId{1}, 0, 2);
  EXPECT_EQ(world.find({.pool = {}, .slots = 3}), "device: 1/2");  // 4 of 8 are left there
  EXPECT_EQ(world.find({.pool = {}, .slots = 2}), "device: 1/1");
  EXPECT_EQ(world.find({.pool = {}, .slots = 5}), "device: 0/1");
  EXPECT_EQ(world.find({.pool = {}, .slots = 9}), "none");
}

// Eight slots are free on server 0, but on no device two of them.
TEST(SlotIndex, SlotsOnTooManyDevicesAreOfNoUse) {
  World world("groups: [{count: 3, gpus: 8, nodes_per_rack: 2}]");
  for (std::int32_t device = 0; device < 8; ++device) world.index.set_free(NodeId{0}, device, 1);
  EXPECT_EQ(world.find({.pool = {}, .gpus = 2, .slots = 2}), "none");
  for (std::uint32_t node = 1; node < 3; ++node) {
    for (std::int32_t device = 0; device < 3; ++device)
      world.index.set_free(NodeId{node}, device, 3 + device);
  }
  EXPECT_EQ(world.find({.pool = {}, .gpus = 2, .slots = 2}),
            "server: 1/3");  // the tighter two of three
  EXPECT_EQ(world.find({.pool = {}, .gpus = 2, .slots = 4}), "server: 1/6");
  EXPECT_EQ(world.find({.pool = {}, .gpus = 3, .slots = 4}), "cross-rack: 1/6 2/2");
  EXPECT_EQ(world.find({.pool = {}, .gpus = 3, .slots = 4, .max_level = Level::Rack}), "none");
  EXPECT_EQ(world.find({.pool = {}, .gpus = 4, .slots = 1, .max_level = Level::Server}),
            "server: 0/f");
  EXPECT_EQ(world.find({.pool = {}, .gpus = 9, .slots = 1, .max_level = Level::Rack}),
            "rack: 0/ff 1/1");
}

TEST(SlotIndex, EachTypeHasItsOwnNumberOfSlots) {
  World world("groups: [{count: 1, gpus: 2, type: half}, {count: 1, gpus: 4, type: whole}]");
  world.set_all_free();
  EXPECT_EQ(world.index.free_slots(Topology::root(), PoolId{0}), 4);
  EXPECT_EQ(world.index.free_slots(Topology::root(), PoolId{1}), 4);
  EXPECT_EQ(world.find({.pool = PoolId{1}, .gpus = 4}), "server: 1/f");
  EXPECT_EQ(world.find({.pool = PoolId{1}, .slots = 2}), "none");
}

class Cores final : public ServerRoom {
 public:
  [[nodiscard]] std::int32_t room(NodeId node) const override { return node.value == 0 ? 0 : 2; }
};

TEST(SlotIndex, ServersWithoutCoresHaveNoRoom) {
  World world("groups: [{count: 3, gpus: 4}]");
  world.set_all_free();
  const Cores cores;
  EXPECT_EQ(world.find({.pool = {}, .slots = 1, .room = &cores}), "device: 1/1");
  EXPECT_EQ(world.find({.pool = {}, .gpus = 2, .slots = 1, .room = &cores}), "server: 1/3");
  EXPECT_EQ(world.find({.pool = {}, .gpus = 3, .slots = 1, .room = &cores}), "rack: 1/3 2/1");
  EXPECT_EQ(world.find({.pool = {}, .gpus = 5, .slots = 1, .room = &cores}), "none");
}

/// How many devices of the pool below a vertex have so many free slots, and how many slots in all.
struct Count {
  std::int32_t devices = 0;
  std::int32_t slots = 0;
};
Count count_below(const World& world, VertexId vertex, const SlotQuery& query) {
  const Vertex& row = (*world.topology)[vertex];
  Count sum;
  if (row.type == VertexType::Server) {
    const Node& node = world.cluster->nodes[row.id];
    for (std::int32_t i = 0; i < node.gpus && node.pool == query.pool; ++i) {
      const std::int32_t free = world.index.free_slots(NodeId{row.id}, i);
      sum.slots += free;
      sum.devices += free >= query.slots ? 1 : 0;
    }
    return sum;
  }
  for (const VertexId child : world.topology->children(vertex)) {
    const Count below = count_below(world, child, query);
    sum.devices += below.devices;
    sum.slots += below.slots;
  }
  return sum;
}

TEST(SlotIndexProperty, AggregatesEqualARecountAndAnswersTheLowestLevel) {
  World world(
      "groups: [{count: 7, gpus: 4, type: half, nodes_per_rack: 2, racks_per_zone: 2}, "
      "{count: 6, gpus: 3, nodes_per_rack: 3}]");
  Rng rng(4);
  for (int step = 0; step < 4000; ++step) {
    const auto node = static_cast<std::uint32_t>(rng.below(world.cluster->nodes.size()));
    const PoolId pool = world.cluster->nodes[node].pool;
    const std::int32_t all = world.index.slots_per_device(pool);
    const auto gpus = static_cast<std::uint64_t>(world.cluster->nodes[node].gpus);
    const auto slots = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(all) + 1));
    world.index.set_free(NodeId{node}, static_cast<std::int32_t>(rng.below(gpus)),
                         rng.below(2) == 0 ? 0 : slots);
    const SlotQuery query{
        .pool = pool,
        .gpus = static_cast<std::int32_t>(1 + rng.below(8)),
        .slots = static_cast<std::int32_t>(1 + rng.below(static_cast<std::uint64_t>(all)))};
    std::optional<Level> lowest;
    for (std::uint32_t i = 0; i < world.topology->vertices().size(); ++i) {
      const Count count = count_below(world, VertexId{i}, query);
      ASSERT_EQ(world.index.free_slots(VertexId{i}, pool), count.slots);
      const Level level = query.gpus == 1 ? Level::Device : (*world.topology)[VertexId{i}].level;
      if (count.devices >= query.gpus && (!lowest || level < *lowest)) lowest = level;
    }
    const auto match = world.index.find(query, world.buffer);
    ASSERT_EQ(match.has_value(), lowest.has_value());
    if (!match) continue;
    EXPECT_EQ(match->level, *lowest);
    std::int32_t found = 0;
    for (const DeviceSet& part : match->parts) {
      for (std::uint64_t rest = part.devices; rest != 0; rest &= rest - 1, ++found)
        EXPECT_GE(world.index.free_slots(part.node, std::countr_zero(rest)), query.slots);
    }
    EXPECT_EQ(found, query.gpus);
  }
}

// Every job takes at least one slot; a whole one takes all.
TEST(ClusterStateSlots, FollowFractionsWholeJobsAndOutages) {
  const Cluster cluster = *parse_cluster_yaml("groups: [{count: 2, gpus: 2}]", "c.yaml");
  ClusterState state(cluster, ClusterState::Mode::Devices);
  state.track_devices();
  state.track_topology();
  const auto free = [&] { return state.slots()->free_slots(Topology::root(), PoolId{0}); };
  EXPECT_EQ(free(), 32);
  const Shape shape;
  const std::vector<Slice> first{{NodeId{0}, 1, 1}};
  state.take(first, shape, JobId{0}, {.milli = 500});
  EXPECT_EQ(state.slots()->free_slots(NodeId{0}, 0), 4);
  state.take(first, shape, JobId{1}, {.milli = 10});
  EXPECT_EQ(state.slots()->free_slots(NodeId{0}, 0), 3);  // 490 thousandths fill no fourth slot
  const std::vector<Slice> second{{NodeId{0}, 1, 2}};
  state.take(second, shape, JobId{2}, {});
  EXPECT_EQ(free(), 3 + 16);
  state.set_down(NodeId{1});
  EXPECT_EQ(free(), 3);
  state.set_up(NodeId{1});
  state.give(first, shape, JobId{0}, {.milli = 500});
  state.give(first, shape, JobId{1}, {.milli = 10});
  EXPECT_EQ(free(), 24);
}

// A device takes no more jobs than it can be shared by, however small they are.
TEST(ClusterStateSlots, AFullHouseHasNoThousandthsLeft) {
  const Cluster cluster = *parse_cluster_yaml(kTypes + "groups: [{count: 1, gpus: 1}]", "c.yaml");
  ClusterState state(cluster, ClusterState::Mode::Devices);
  state.track_devices();
  const std::vector<Slice> device{{NodeId{0}, 1, 1}};
  for (std::uint32_t job = 0; job < kMaxSharers; ++job) {
    EXPECT_EQ(state.free_milli(NodeId{0}, 0), 1000 - 100 * static_cast<std::int32_t>(job));
    state.take(device, Shape{}, JobId{job}, {.milli = 100});
  }
  EXPECT_EQ(state.free_milli(NodeId{0}, 0), 0);
  EXPECT_EQ(state.free_milli(PoolId{0}), 0);
}

}  // namespace
}  // namespace berth
