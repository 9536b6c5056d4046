// The parts of Gandiva that need no engine: placement by affinity, the ring, packing,
// defragmentation, growing, what a class deserves.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"
#include "policies/gandiva/defragment.h"
#include "policies/gandiva/growth.h"
#include "policies/gandiva/housing.h"
#include "policies/gandiva/migration.h"
#include "policies/gandiva/packing.h"
#include "policies/gandiva/ring.h"
#include "policies/gandiva/servers.h"

namespace berth::gandiva {
namespace {

Servers servers_of(std::uint32_t count, std::int32_t gpus, const ServerLimits& limits = {}) {
  Servers servers{limits};
  for (std::uint32_t i = 0; i < count; ++i) servers.add_server(NodeId{i}, gpus);
  return servers;
}

std::vector<std::int32_t> allocs(const Servers& servers) {
  std::vector<std::int32_t> all;
  for (std::uint32_t i = 0; i < servers.size(); ++i) all.push_back(servers[UnitId{i}].alloc);
  return all;
}

/// By the steps in their order; nothing: the job waits.
std::optional<UnitId> place(Servers& servers, const Demand& demand) {
  for (const Step step : kSteps)
    if (const auto unit = servers.try_place(step, demand)) return unit;
  return std::nullopt;
}

constexpr std::uint32_t kQueued = 99;
std::uint32_t place(Servers& servers, std::int32_t gpus) {
  const auto unit = place(servers, Demand{gpus});
  return unit ? unit->value : kQueued;
}

std::int32_t oversubscribed(const Servers& servers) {
  std::int32_t count = 0;
  for (std::uint32_t i = 0; i < servers.size(); ++i) count += servers[UnitId{i}].height() > 1;
  return count;
}

TEST(GandivaServers, ClassIsTheNextPowerOfTwo) {
  EXPECT_EQ(class_of(1), 1U);
  EXPECT_EQ(class_of(2), 2U);
  EXPECT_EQ(class_of(3), 4U);
  EXPECT_EQ(class_of(5), 8U);
}

TEST(GandivaServers, PlacesTwelveArrivalsByAffinityThenOversubscribes) {
  Servers servers = servers_of(3, 4);
  std::vector<std::uint32_t> where;
  for (const int gpus : {1, 2, 1, 4, 2, 1, 1}) where.push_back(place(servers, gpus));
  EXPECT_EQ(where, (std::vector<std::uint32_t>{0, 1, 0, 2, 1, 0, 0}));
  EXPECT_EQ(allocs(servers), (std::vector<std::int32_t>{4, 4, 4}));
  EXPECT_EQ(oversubscribed(servers), 0);
  EXPECT_EQ(place(servers, 2), 1U);
  EXPECT_EQ(place(servers, 1), 0U);
  EXPECT_EQ(place(servers, 4), 2U);
  EXPECT_EQ(allocs(servers), (std::vector<std::int32_t>{5, 6, 8}));
  EXPECT_EQ(place(servers, 4), kQueued) << "height 3 would exceed max_height";
  EXPECT_EQ(place(servers, 1), 0U);
  EXPECT_EQ(allocs(servers), (std::vector<std::int32_t>{6, 6, 8}));
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(servers[UnitId{i}].height(), 2);
  EXPECT_EQ(oversubscribed(servers), 3);
}

TEST(GandivaServers, RelaxesAffinityBeforeItOversubscribes) {
  Servers servers = servers_of(2, 4);
  EXPECT_EQ(place(servers, 4), 0U);
  EXPECT_EQ(place(servers, 1), 1U);
  EXPECT_EQ(place(servers, 2), 1U) << "room beside a job of another class";
  EXPECT_EQ(servers[UnitId{1}].affinity, 1U) << "the first job's class stays";
}

TEST(GandivaServers, ForgetsAffinityWhenEmpty) {
  Servers servers = servers_of(1, 4);
  EXPECT_EQ(place(servers, 1), 0U);
  servers.remove(UnitId{0}, {1});
  EXPECT_EQ(servers[UnitId{0}].affinity, 0U);
  EXPECT_EQ(place(servers, 4), 0U);
  EXPECT_EQ(servers[UnitId{0}].affinity, 4U);
}

TEST(GandivaServers, AGangLargerThanAServerTakesASetOfWholeServers) {
  Servers servers = servers_of(4, 4);
  EXPECT_EQ(place(servers, 1), 0U);
  const auto set = place(servers, Demand{6});
  ASSERT_TRUE(set);
  EXPECT_EQ(servers[*set].nodes, (std::vector<NodeId>{NodeId{1}, NodeId{2}}));
  EXPECT_EQ(servers[*set].affinity, 8U);
  EXPECT_EQ(servers.unit_of(NodeId{2}), set);
  EXPECT_EQ(place(servers, 2), 3U) << "the two GPUs left in the set are not for others";
  EXPECT_EQ(place(servers, Demand{8}), set) << "height 2 of the set: they take turns";
  EXPECT_EQ(place(servers, 12), kQueued);
  servers.remove(*set, {6});
  servers.remove(*set, {8});
  EXPECT_EQ(servers.unit_of(NodeId{2}), UnitId{2}) << "an empty set is single servers again";
  EXPECT_EQ(place(servers, 4), 1U);
}

TEST(GandivaServers, SuspendedJobsNeedHostMemory) {
  Servers servers = servers_of(2, 1, {.max_height = 0, .host_memory_mib = 10});
  EXPECT_EQ(place(servers, Demand{1, 8}), UnitId{0});
  EXPECT_EQ(place(servers, Demand{1, 3}), UnitId{1});
  EXPECT_EQ(place(servers, Demand{1, 4}), UnitId{1}) << "8 + 4 would not fit into the first";
  EXPECT_EQ(place(servers, Demand{1, 4}), std::nullopt);
}

TEST(GandivaServers, HighestHasMostToGive) {
  Servers servers = servers_of(2, 2);
  for (int i = 0; i < 7; ++i) static_cast<void>(place(servers, Demand{1}));
  EXPECT_EQ(allocs(servers), (std::vector<std::int32_t>{4, 3}));
  EXPECT_EQ(servers.highest(1), UnitId{0});
  EXPECT_EQ(servers.least_loaded(1), UnitId{1});
}

// Steps 1 to 3 come before 4, whatever came and went before.
TEST(GandivaServers, NeverOversubscribesWhileAServerHasRoom) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng{seed};
    Servers servers = servers_of(1 + static_cast<std::uint32_t>(rng.below(5)), 4);
    std::vector<std::pair<UnitId, std::int32_t>> residents;
    for (int event = 0; event < 60; ++event) {
      if (!residents.empty() && rng.below(3) == 0) {
        const std::size_t at = rng.below(residents.size());
        servers.remove(residents[at].first, {residents[at].second});
        residents.erase(residents.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      const auto gpus = 1 + static_cast<std::int32_t>(rng.below(6));
      bool has_room = false;
      for (std::uint32_t i = 0; i < servers.size(); ++i) {
        const auto& unit = servers[UnitId{i}];
        has_room = has_room || (!unit.is_set() && servers.fits(UnitId{i}, {gpus}));
      }
      const auto unit = place(servers, Demand{gpus});
      if (has_room) {
        ASSERT_TRUE(unit) << "seed " << seed;
        ASSERT_LE(servers[*unit].height(), 1) << "seed " << seed;
      }
      if (!unit) continue;
      ASSERT_LE(servers[*unit].height(), 2);
      residents.emplace_back(*unit, gpus);
    }
    for (const auto& [unit, gpus] : residents) servers.remove(unit, {gpus});
    EXPECT_TRUE(servers.classes().empty());
  }
}

std::vector<std::uint32_t> running(const Ring& ring) {
  std::vector<std::uint32_t> jobs;
  for (const Ring::Seat& seat : ring.running()) {
    jobs.push_back(seat.job.value);
    if (seat.guest) jobs.push_back(seat.guest->value);
  }
  return jobs;
}

TEST(GandivaRing, ThreeJobsOfTwoGpusTakeTurnsOnFour) {
  Ring ring;
  for (const std::uint32_t job : {0U, 1U, 2U}) ring.add(JobId{job}, 2);
  ring.choose(4);
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{0, 1}));
  ring.end_slice();
  ring.choose(4);
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{2, 0})) << "A is not suspended";
  ring.remove(JobId{0});  // 120 s done
  ring.end_slice();
  ring.choose(4);
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{1, 2}));
}

TEST(GandivaRing, NobodyOvertakesAHeadThatDoesNotFit) {
  Ring ring;
  ring.add(JobId{0}, 2);
  ring.add(JobId{1}, 4);
  ring.add(JobId{2}, 1);
  ring.choose(4);
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{0}));
  ring.end_slice();
  ring.choose(4);
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{1}));
}

TEST(GandivaRing, TwoJobsShareASeatAndPartAgain) {
  Ring ring;
  for (const std::uint32_t job : {0U, 1U, 2U}) ring.add(JobId{job}, 1);
  ring.choose(1);
  ring.pack(JobId{0}, JobId{2});
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{0, 2}));
  ring.unpack(JobId{2});
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(ring.suspended().size(), 2U);
  ring.pack(JobId{0}, JobId{2});
  ring.remove(JobId{0});
  EXPECT_EQ(running(ring), (std::vector<std::uint32_t>{2})) << "the guest keeps the seat";
}

TEST(GandivaRing, EverySeatRunsWithinAsManySlicesAsThereAreSeats) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng{seed};
    Ring ring;
    const auto seats = 1 + static_cast<std::uint32_t>(rng.below(10));
    for (std::uint32_t job = 0; job < seats; ++job)
      ring.add(JobId{job}, 1 + static_cast<std::int32_t>(rng.below(4)));
    std::map<std::uint32_t, std::uint32_t> waited;
    for (int slice = 0; slice < 50; ++slice) {
      ring.end_slice();
      ring.choose(4);
      std::int32_t gpus = 0;
      for (const Ring::Seat& seat : ring.running()) gpus += seat.gpus;
      ASSERT_LE(gpus, 4);
      for (const Ring::Seat& seat : ring.running()) waited[seat.job.value] = 0;
      for (const Ring::Seat& seat : ring.suspended())
        ASSERT_LT(++waited[seat.job.value], seats) << "seed " << seed;
    }
  }
}

TEST(GandivaTimers, KeepOneMomentForEachHomeTheEarliestFirst) {
  const Home a{PoolId{0}, UnitId{0}};
  const Home b{PoolId{0}, UnitId{1}};
  HomeTimers timers;
  EXPECT_EQ(timers.first(), kNever);
  timers.set(a, seconds_to_time(30));
  timers.set(b, seconds_to_time(20));
  EXPECT_EQ(timers.begin()->home, b);
  timers.set(b, seconds_to_time(40));  // instead of the one it had
  EXPECT_EQ(timers.first(), seconds_to_time(30));
  timers.clear(a);
  timers.clear(a);
  EXPECT_FALSE(timers.has(a));
  EXPECT_EQ(timers.begin()->home, b);
}

TEST(GandivaPacking, KeepsWhatBeatsTakingTurns) {
  const double good = packing_score({.isolated = 10, .packed = 7}, {.isolated = 20, .packed = 13});
  EXPECT_NEAR(good, 1.35, 1e-12);
  EXPECT_TRUE(keeps_packing(good));
  const double bad = packing_score({.isolated = 10, .packed = 4}, {.isolated = 20, .packed = 9});
  EXPECT_NEAR(bad, 0.85, 1e-12);
  EXPECT_FALSE(keeps_packing(bad));
  EXPECT_FALSE(keeps_packing(1)) << "no better than taking turns";
}

TEST(GandivaMigration, PaysWithinTheHorizonOrNot) {
  EXPECT_TRUE(is_worth_moving(0.6, 1, 600, 2));
  EXPECT_FALSE(is_worth_moving(1, 1, 600, 2));
  EXPECT_FALSE(is_worth_moving(0.999, 1, 600, 2)) << "wins 0.6 s, costs 2 s";
}

std::vector<Occupied> one_gpu_jobs(const std::vector<std::int32_t>& used, std::int32_t gpus) {
  std::vector<Occupied> servers;
  std::uint32_t job = 0;
  for (std::uint32_t i = 0; i < used.size(); ++i) {
    if (used[i] == 0) continue;
    Occupied server{.server = UnitId{i}, .gpus = gpus, .free = gpus - used[i], .movable = {}};
    for (std::int32_t n = 0; n < used[i]; ++n) server.movable.emplace_back(1, JobId{job++});
    servers.push_back(server);
  }
  return servers;
}

TEST(GandivaDefragmentation, EmptiesTheLoosestServerIntoTheTightest) {
  const auto moves = defragment(one_gpu_jobs({1, 2, 3, 4}, 4), 0.75);
  EXPECT_EQ(moves, (std::vector<Move>{{JobId{0}, UnitId{0}, UnitId{2}}}));
  // Without the threshold the second server, too, looks for targets, and finds none.
  EXPECT_EQ(defragment(one_gpu_jobs({1, 2, 3, 4}, 4), 0.25).size(), 1U);
}

TEST(GandivaDefragmentation, NeverFillsAnIdleServerAndEnds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng{seed};
    std::map<UnitId, std::int32_t> used;
    std::map<JobId, std::int32_t> gpus_of;
    std::vector<Occupied> servers;
    std::uint32_t job = 0;
    for (std::uint32_t i = 0; i < 6; ++i) {
      Occupied server{.server = UnitId{i}, .gpus = 8, .free = 8, .movable = {}};
      while (rng.below(3) != 0) {
        const auto gpus = 1 + static_cast<std::int32_t>(rng.below(4));
        if (gpus > server.free) break;
        server.free -= gpus;
        gpus_of[JobId{job}] = gpus;
        if (rng.below(4) != 0) server.movable.emplace_back(gpus, JobId{job});
        ++job;
      }
      used[UnitId{i}] = 8 - server.free;
      if (server.free < 8) servers.push_back(server);
    }
    const auto is_idle = [](const auto& entry) { return entry.second == 0; };
    auto idle = std::ranges::count_if(used, is_idle);
    for (const Move& move : defragment(servers, 0.25)) {
      ASSERT_GT(used[move.to], 0) << "seed " << seed;
      used[move.from] -= gpus_of[move.job];
      used[move.to] += gpus_of[move.job];
      ASSERT_GE(used[move.from], 0);
      ASSERT_LE(used[move.to], 8);
      const auto now_idle = std::ranges::count_if(used, is_idle);
      ASSERT_GE(now_idle, idle);
      idle = now_idle;
    }
  }
}

TEST(GandivaGrow, DoublesOrTakesAllWithinItsMost) {
  EXPECT_EQ(grown(1, 4, 3, GrowStep::Double), 2);
  EXPECT_EQ(grown(2, 4, 2, GrowStep::Double), 4);
  EXPECT_EQ(grown(1, 4, 3, GrowStep::All), 4);
  EXPECT_EQ(grown(2, 3, 6, GrowStep::Double), 3);
  EXPECT_EQ(grown(4, 8, 1, GrowStep::Double), 5);
  EXPECT_EQ(grown(4, 4, 4, GrowStep::All), 4);
}

TEST(GandivaRebalance, AClassDeservesItsShareOfDemandAndNoMoreThanItWants) {
  EXPECT_EQ(deserved({{1, 12}, {4, 12}}, 16),
            (std::map<AffinityClass, std::int64_t>{{1, 8}, {4, 8}}));
  EXPECT_EQ(deserved({{1, 2}, {4, 4}}, 16),
            (std::map<AffinityClass, std::int64_t>{{1, 2}, {4, 4}}));
  EXPECT_EQ(deserved({{1, 1}, {4, 20}}, 16),
            (std::map<AffinityClass, std::int64_t>{{1, 0}, {4, 15}}));
}

}  // namespace
}  // namespace berth::gandiva
