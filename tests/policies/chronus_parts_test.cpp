// Placement of Chronus: buddy blocks and the local search for jobs without a promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "base/rng.h"
#include "policies/chronus/local_search.h"
#include "policies/common/buddy_servers.h"

namespace berth::chronus {
namespace {

BuddyServers servers_of(std::string_view cluster) {
  return BuddyServers{*parse_cluster_short(cluster), PoolId{0}};
}

BuddyServers::Map empty_map(const BuddyServers& servers) {
  const std::vector<std::uint64_t> none(servers.size());
  return {.taken = none, .settled = none, .lent = none};
}

std::vector<BuddyTenant> newcomers(const std::vector<std::int32_t>& sizes) {
  std::vector<BuddyTenant> tenants;
  for (const std::int32_t gpus : sizes) tenants.push_back({.gpus = gpus, .own = {}});
  return tenants;
}

TEST(BuddyServers, RoundUpAsPublished) {
  const BuddyServers servers = servers_of("4x8");
  const std::vector<std::pair<std::int32_t, std::int64_t>> table{
      {1, 1}, {2, 2}, {3, 4}, {5, 8}, {6, 8}, {7, 8}, {8, 8}, {9, 16}, {12, 16}, {20, 24}};
  for (const auto& [gpus, rounded] : table) EXPECT_EQ(servers.rounded(gpus), rounded) << gpus;
}

TEST(BuddyServers, RoundUpWhereAServerIsNoPowerOfTwo) {
  const BuddyServers servers = servers_of("3x6");
  EXPECT_EQ(servers.rounded(3), 4);
  EXPECT_EQ(servers.rounded(5), 4);  // a whole server, which holds four in small leases
  EXPECT_EQ(servers.rounded(7), 8);
  const auto cluster = parse_cluster_short("3x6");
  const ClusterState state{*cluster, ClusterState::Mode::Devices};
  EXPECT_EQ(servers.capacity(state), 12);
}

TEST(BuddyServers, CountLargeNodesAsSeveral) {
  const auto cluster = parse_cluster_short("6x4:v100,1x8:v100");
  const BuddyServers servers{*cluster, PoolId{0}};
  EXPECT_EQ(servers.gpus_each(), 4);
  EXPECT_EQ(servers.size(), 8U);
  const auto place = servers.find(empty_map(servers), 8);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(servers.slices(*place, 7).size(), 2U);
}

TEST(BuddyServers, PackRoundedSizesExactly) {
  const BuddyServers servers = servers_of("2x8");
  const auto places = place_tenants(servers, newcomers({4, 4, 2, 2, 2, 1, 1}), empty_map(servers));
  std::vector<std::uint64_t> taken(2);
  for (const auto& place : places) {
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(taken[place->front().server] & place->front().devices, 0U);
    taken[place->front().server] |= place->front().devices;
  }
  EXPECT_EQ(taken, (std::vector<std::uint64_t>{0xff, 0xff}));
}

TEST(BuddyServers, RefuseTheFifthJobThatWouldBeSpread) {
  // 3+3+3+3+4 GPUs are 16, but each server holds two of them: rounded they are 20.
  const BuddyServers servers = servers_of("2x8");
  std::int64_t sum = 0;
  for (const std::int32_t gpus : {3, 3, 3, 3, 4}) sum += servers.rounded(gpus);
  EXPECT_EQ(sum, 20);
  const auto places = place_tenants(servers, newcomers({3, 3, 3, 3, 4}), empty_map(servers));
  EXPECT_EQ(std::ranges::count_if(places, [](const auto& place) { return place.has_value(); }), 4);
}

TEST(BuddyServers, PushAsideJobsWithoutAPromiseBeforeLeases) {
  const BuddyServers servers = servers_of("2x4");
  BuddyServers::Map map = empty_map(servers);
  map.lent[1] = 0b0011;
  std::vector<BuddyTenant> tenants = newcomers({4});
  tenants.push_back({.gpus = 1, .own = BuddyBlocks{{.server = 0, .devices = 0b0001}}});
  const auto places = place_tenants(servers, tenants, map);
  EXPECT_EQ(places[0]->front().server, 1U);  // two lent GPUs, not the settled lease
  EXPECT_EQ(places[1], tenants[1].own);
}

TEST(BuddyServers, MoveALeaseWhenNothingElseHelps) {
  const BuddyServers servers = servers_of("1x8");
  std::vector<BuddyTenant> tenants{
      {.gpus = 2, .own = BuddyBlocks{{.server = 0, .devices = 0b00000011}}},
      {.gpus = 2, .own = BuddyBlocks{{.server = 0, .devices = 0b00110000}}},
      {.gpus = 4, .own = {}}};
  const auto places = place_tenants(servers, tenants, empty_map(servers));
  EXPECT_EQ(places[2]->front().devices, 0x0fU);
  EXPECT_EQ(places[0]->front().devices, 0xc0U);  // had to move
  EXPECT_EQ(places[1], tenants[1].own);
}

TEST(BuddyServers, KnowTheBlockAroundDevices) {
  const BuddyServers servers = servers_of("2x8");
  const Slice three{.node = NodeId{1}, .gpus = 3, .devices = 0b01110000};
  const auto block = servers.around(std::span{&three, 1}, 3);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ(*block, (BuddyBlocks{{.server = 1, .devices = 0xf0}}));
  const Slice across{.node = NodeId{0}, .gpus = 2, .devices = 0b0110};
  EXPECT_FALSE(servers.around(std::span{&across, 1}, 2).has_value());
  const std::vector<Slice> whole{{.node = NodeId{0}, .gpus = 8, .devices = 0xff},
                                 {.node = NodeId{1}, .gpus = 4, .devices = 0x0f}};
  EXPECT_EQ(servers.around(whole, 12)->size(), 2U);
  EXPECT_EQ(servers.slices(*servers.around(whole, 12), 12), whole);
}

// Whatever fits by count has a place in one block, stays disjoint, and most stay where they are.
TEST(BuddyServers, PlaceWhateverFitsByCount) {
  Rng rng{5};
  for (int round = 0; round < 200; ++round) {
    const std::int32_t gpus_each = round % 2 == 0 ? 8 : 6;
    const BuddyServers servers = servers_of(fmt::format("5x{}", gpus_each));
    std::vector<BuddyTenant> tenants;
    for (int term = 0; term < 6; ++term) {
      std::erase_if(tenants, [&](const BuddyTenant&) { return rng.below(3) == 0; });
      std::int64_t left = 5 * std::bit_floor(static_cast<std::uint32_t>(gpus_each));
      for (const BuddyTenant& tenant : tenants) left -= servers.rounded(tenant.gpus);
      for (int tries = 0; tries < 8; ++tries) {
        const auto gpus = static_cast<std::int32_t>(1 + rng.below(rng.below(4) == 0 ? 14 : 5));
        if (servers.rounded(gpus) > left) continue;
        left -= servers.rounded(gpus);
        tenants.push_back({.gpus = gpus, .own = {}});
      }
      BuddyServers::Map map = empty_map(servers);
      for (std::uint64_t& lent : map.lent) lent = rng.next() & servers.all();
      const auto places = place_tenants(servers, tenants, map);
      std::vector<std::uint64_t> taken(servers.size());
      for (std::size_t i = 0; i < tenants.size(); ++i) {
        ASSERT_TRUE(places[i].has_value()) << "round " << round;
        const auto fewest = (tenants[i].gpus + gpus_each - 1) / gpus_each;
        ASSERT_EQ(std::ssize(*places[i]), fewest) << "consolidated";
        for (const BuddyBlock& block : *places[i]) {
          ASSERT_EQ(taken[block.server] & block.devices, 0U);
          taken[block.server] |= block.devices;
        }
        tenants[i].own = places[i];
      }
    }
  }
}

Resident resident(std::uint32_t job, double spread_speed, std::vector<Part> at) {
  std::int32_t gpus = 0;
  for (const Part& part : at) gpus += part.gpus;
  return {.job = JobId{job},
          .gpus = gpus,
          .fewest = 1,
          .spread_speed = spread_speed,
          .at = std::move(at)};
}

TEST(LocalSearch, ClimbsTheWorkedExample) {
  std::vector<Resident> jobs{resident(0, 0.6, {{0, 1}, {1, 1}}), resident(1, 0.6, {{0, 1}, {1, 1}}),
                             resident(2, 0.6, {{0, 2}})};
  LocalSearch search{{0, 2}, jobs, {}, 0};
  EXPECT_NEAR(search.speeds(), 2.2, 1e-12);
  EXPECT_EQ(search.run(1), 1);
  EXPECT_NEAR(search.speeds(), 2.6, 1e-12);
  EXPECT_EQ(search.residents()[0].at, (std::vector<Part>{{1, 2}}));
  EXPECT_EQ(search.run(1000), 1);
  EXPECT_NEAR(search.speeds(), 3.0, 1e-12);
  EXPECT_EQ(search.residents()[1].at, (std::vector<Part>{{0, 2}}));
  EXPECT_EQ(search.run(1000), 0);
}

TEST(LocalSearch, StaysWhenMovingCostsMoreThanItGains) {
  std::vector<Resident> jobs{resident(0, 0.9, {{0, 1}, {1, 1}})};
  LocalSearch dear{{0, 1}, jobs, {}, 0.2};
  EXPECT_EQ(dear.run(10), 0);
  jobs[0].is_free_to_move = true;
  LocalSearch fresh{{0, 1}, jobs, {}, 0.2};
  EXPECT_EQ(fresh.run(10), 1);
}

TEST(LocalSearch, SpreadsTheJobThatMindsLeast) {
  // No server has room for both workers: the sensitive job changes places with the other.
  std::vector<Resident> jobs{resident(0, 0.5, {{0, 1}, {1, 1}}), resident(1, 0.97, {{2, 2}})};
  LocalSearch search{{0, 0, 0}, jobs, {}, 0.01};
  EXPECT_EQ(search.run(10), 1);
  EXPECT_EQ(search.residents()[0].at, (std::vector<Part>{{2, 2}}));
  EXPECT_EQ(search.residents()[1].at, (std::vector<Part>{{0, 1}, {1, 1}}));
}

TEST(LocalSearch, MakesRoomForAJobThatFitsWhole) {
  std::vector<Resident> jobs{resident(0, 0.5, {{0, 1}, {1, 1}})};
  std::vector<Resident> waiting{{.job = JobId{5}, .gpus = 1}};
  LocalSearch search{{0, 0}, jobs, waiting, 0};
  EXPECT_EQ(search.run(10), 1);
  EXPECT_TRUE(search.residents()[0].at.empty());
  EXPECT_EQ(search.waiting()[0].at, (std::vector<Part>{{0, 1}}));
}

TEST(LocalSearch, NeverLosesSpeedOrOversubscribes) {
  Rng rng{3};
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int32_t> free(4, 8);
    std::vector<Resident> jobs;
    for (std::uint32_t j = 0; j < 10; ++j) {
      const auto gpus = static_cast<std::int32_t>(1 + rng.below(12));
      if (std::accumulate(free.begin(), free.end(), 0) < gpus) continue;
      Resident job{.job = JobId{j},
                   .gpus = gpus,
                   .fewest = (gpus + 7) / 8,
                   .spread_speed = 0.5 + 0.05 * static_cast<double>(rng.below(10)),
                   .at = {}};
      std::vector<std::int32_t> parts(4);
      for (std::int32_t left = gpus; left > 0;) {
        const std::size_t s = rng.below(4);
        if (free[s] == 0) continue;
        --free[s];
        ++parts[s];
        --left;
      }
      for (std::uint32_t s = 0; s < 4; ++s) {
        if (parts[s] > 0) job.at.push_back({s, parts[s]});
      }
      jobs.push_back(job);
    }
    LocalSearch search{free, jobs, {}, 0.02};
    const double before = search.speeds();
    const auto steps = search.run(1000);
    EXPECT_GE(search.speeds(), before);
    EXPECT_LT(steps, 1000);
    std::vector<std::int32_t> held(4);
    for (const Resident& job : search.residents()) {
      std::int32_t gpus = 0;
      for (const Part& part : job.at) {
        held[part.server] += part.gpus;
        gpus += part.gpus;
      }
      EXPECT_EQ(gpus, job.gpus);
    }
    for (const std::int32_t gpus : held) EXPECT_LE(gpus, 8);
  }
}

}  // namespace
}  // namespace berth::chronus
