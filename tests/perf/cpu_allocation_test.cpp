#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "perf/cpu_allocation.h"

namespace berth {
namespace {

using Cores = std::vector<std::int32_t>;

/// f(C) = (ln C + 0.2 C) / (ln th + 0.2 th) below th, 1 from th on.
std::vector<double> example_speeds(std::int32_t theta) {
  const double full = std::log(theta) + 0.2 * theta;
  return normalised_speeds({.log_gain = 1, .linear_gain = 0.2, .plateau = full, .theta = theta},
                           24);
}

struct Example {
  std::vector<std::vector<double>> tables;
  std::vector<CpuGang> gangs;
  explicit Example(const Cores& thetas) {
    for (const std::int32_t theta : thetas) tables.push_back(example_speeds(theta));
    for (const auto& table : tables) gangs.push_back({.speeds = table});
  }
};

constexpr CpuServer kServer{.cores = 24, .gpus = 4};

Cores allocate(CpuObjective objective, const CpuServer& server, std::span<const CpuGang> gangs,
               CpuLeftover leftover = CpuLeftover::Keep) {
  Cores cores(gangs.size());
  EXPECT_TRUE((CpuAllocator{objective, leftover}.allocate(server, gangs, cores)));
  return cores;
}

TEST(CpuAllocation, AlexNetTakesWhatTheOthersDoNotNeed) {
  const Example four{{19, 1, 3, 3}};  // AlexNet, LanguageModel, DeepSpeech, WaveNet
  const Cores cores = allocate(CpuObjective::Sum, kServer, four.gangs);
  EXPECT_EQ(cores, (Cores{17, 1, 3, 3}));
  EXPECT_NEAR(cpu_objective(four.gangs, cores), 3.9242, 5e-5);
  EXPECT_NEAR(four.gangs[0].speed(17), 0.9242, 5e-5);
  const Cores bind(4, bind_share(kServer, 1));
  EXPECT_EQ(bind, (Cores{6, 6, 6, 6}));
  EXPECT_NEAR(cpu_objective(four.gangs, bind), 3.4436, 5e-5);
  EXPECT_NEAR(four.gangs[0].speed(6), 0.4436, 5e-5);
}

TEST(CpuAllocation, TheThreeModesOfTheWorkedExample) {
  const Example four{{22, 11, 1, 8}};  // OverFeat, GoogLeNet, LanguageModel, Bi-Att-Flow
  const Cores sum = allocate(CpuObjective::Sum, kServer, four.gangs);
  EXPECT_EQ(sum, (Cores{4, 11, 1, 8}));
  EXPECT_NEAR(cpu_objective(four.gangs, sum), 3.2919, 5e-5);
  const Cores bind(4, 6);
  EXPECT_NEAR(cpu_objective(four.gangs, bind), 2.8632, 5e-5);
  EXPECT_NEAR(four.gangs[0].speed(6), 0.3994, 5e-5);
  EXPECT_NEAR(four.gangs[1].speed(6), 0.6507, 5e-5);
  EXPECT_NEAR(four.gangs[3].speed(6), 0.8131, 5e-5);
  const Cores floor = allocate(CpuObjective::FairFloor, kServer, four.gangs);
  EXPECT_EQ(floor, (Cores{6, 9, 1, 8}));
  EXPECT_NEAR(cpu_objective(four.gangs, floor), 3.2687, 5e-5);
  const Cores maxmin = allocate(CpuObjective::MaxMin, kServer, four.gangs);
  EXPECT_EQ(maxmin, (Cores{12, 6, 1, 5}));
  EXPECT_NEAR(cpu_objective(four.gangs, maxmin), 3.0120, 5e-5);
  EXPECT_NEAR(four.gangs[0].speed(12), 0.6521, 5e-5);
  EXPECT_NEAR(four.gangs[3].speed(5), 0.7092, 5e-5);
}

/// The best sum (or smallest speed) over every split of the cores, each gang at `least` at least.
double brute_force(CpuObjective objective, std::int32_t free, std::span<const CpuGang> gangs,
                   const Cores& least, std::size_t at = 0) {
  if (at == gangs.size()) return objective == CpuObjective::MaxMin ? 1e9 : 0;
  double best = -1;
  for (std::int32_t c = least[at]; c * gangs[at].workers <= free; ++c) {
    const double rest = brute_force(objective, free - c * gangs[at].workers, gangs, least, at + 1);
    if (rest < 0) break;
    const double mine = gangs[at].speed(c);
    best = std::max(best, objective == CpuObjective::MaxMin ? std::min(mine, rest)
                                                            : gangs[at].weight * mine + rest);
  }
  return best;
}

/// Rises with shrinking steps up to 1.
std::vector<double> random_concave(Rng& rng) {
  std::vector<double> steps;
  const auto length = 1 + rng.below(16);
  for (std::uint64_t i = 0; i < length; ++i) steps.push_back(rng.uniform() + 1e-3);
  std::ranges::sort(steps, std::ranges::greater{});
  const double total = std::accumulate(steps.begin(), steps.end(), 0.0);
  std::vector<double> speeds{0};
  for (const double step : steps) speeds.push_back(speeds.back() + step / total);
  return speeds;
}

TEST(CpuAllocation, IsTheBruteForceOptimumForConcaveCurves) {
  Rng rng{11};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<double>> tables;
    std::vector<CpuGang> gangs;
    for (std::uint64_t i = 0; i < 4; ++i) tables.push_back(random_concave(rng));
    for (const auto& table : tables)
      gangs.push_back({.speeds = table, .weight = 0.5 + rng.uniform()});
    const CpuServer server{.cores = static_cast<std::int32_t>(4 + rng.below(20)), .gpus = 4};
    const Cores ones(gangs.size(), 1);
    const Cores sum = allocate(CpuObjective::Sum, server, gangs);
    EXPECT_NEAR(cpu_objective(gangs, sum),
                brute_force(CpuObjective::Sum, server.cores, gangs, ones), 1e-9);
    const Cores least = allocate(CpuObjective::MaxMin, server, gangs);
    double slowest = 1;
    for (std::size_t i = 0; i < gangs.size(); ++i)
      slowest = std::min(slowest, gangs[i].speed(least[i]));
    EXPECT_NEAR(slowest,
                std::min(1.0, brute_force(CpuObjective::MaxMin, server.cores, gangs, ones)), 1e-9);
    // Fair floor: the optimum among those where nobody is worse off than with `bind`.
    Cores floors;
    for (const CpuGang& gang : gangs) {
      std::int32_t cores = 1;
      while (gang.speed(cores) < gang.speed(bind_share(server, 1))) ++cores;
      floors.push_back(cores);
    }
    const Cores fair = allocate(CpuObjective::FairFloor, server, gangs);
    EXPECT_NEAR(cpu_objective(gangs, fair),
                brute_force(CpuObjective::Sum, server.cores, gangs, floors), 1e-9);
    for (std::size_t i = 0; i < gangs.size(); ++i)
      EXPECT_GE(gangs[i].speed(fair[i]), gangs[i].speed(bind_share(server, 1)));
  }
}

TEST(CpuAllocation, NeverUsesMoreThanThereIsWhateverTheCurvesAndGangs) {
  Rng rng{12};
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::vector<double>> tables;
    std::vector<CpuGang> gangs;
    std::int32_t workers = 0;
    const auto count = 1 + rng.below(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::vector<double> table{0};
      for (int c = 0; c < 20; ++c)
        table.push_back(table.back() + (rng.below(3) == 0 ? rng.uniform() : 0.0));
      if (table.back() > 0)
        for (double& speed : table) speed /= table.back();
      tables.push_back(std::move(table));
    }
    for (const auto& table : tables) {
      gangs.push_back({.speeds = table,
                       .workers = static_cast<std::int32_t>(1 + rng.below(3)),
                       .most = static_cast<std::int32_t>(1 + rng.below(30))});
      workers += gangs.back().workers;
    }
    const CpuServer server{.cores = workers + static_cast<std::int32_t>(rng.below(40)),
                           .gpus = workers};
    for (const CpuObjective objective :
         {CpuObjective::Sum, CpuObjective::MaxMin, CpuObjective::FairFloor}) {
      for (const CpuLeftover leftover : {CpuLeftover::Keep, CpuLeftover::RoundRobin}) {
        const Cores cores = allocate(objective, server, gangs, leftover);
        std::int32_t used = 0;
        for (std::size_t i = 0; i < gangs.size(); ++i) {
          EXPECT_GE(cores[i], 1);
          EXPECT_LE(cores[i], gangs[i].most);
          used += cores[i] * gangs[i].workers;
        }
        EXPECT_LE(used, server.cores);
      }
    }
  }
}

TEST(CpuAllocation, GangsRiseTogetherAndPayForEveryWorker) {
  const std::vector<double> pair_table{0, 0.1, 0.5, 1};
  const std::vector<double> single_table{0, 0.2, 0.45, 0.7, 1};
  const std::vector<CpuGang> gangs{{.speeds = pair_table, .workers = 2}, {.speeds = single_table}};
  // Start 1+1+1, 4 left. The pair gains 0.45/2 a core (3 cores in one step of 2: 0.9/4), the single
  // 0.8/3 over three cores: the single rises to 4, one core is left, which the pair cannot use.
  EXPECT_EQ(allocate(CpuObjective::Sum, {.cores = 7, .gpus = 3}, gangs), (Cores{1, 4}));
  EXPECT_EQ(allocate(CpuObjective::Sum, {.cores = 8, .gpus = 3}, gangs), (Cores{2, 4}));
}

TEST(CpuAllocation, LooksAheadWhereACurveIsNotConcave) {
  // Nothing until the fifth core: one core at a time would see no gain there.
  const std::vector<double> stair{0, 0.1, 0.1, 0.1, 0.1, 1};
  const std::vector<double> slow{0, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
  const std::vector<CpuGang> gangs{{.speeds = stair}, {.speeds = slow}};
  EXPECT_EQ(allocate(CpuObjective::Sum, {.cores = 6, .gpus = 2}, gangs), (Cores{5, 1}));
  // Three free cores do not reach the stair: the hull within reach is flat, the other rises.
  EXPECT_EQ(allocate(CpuObjective::Sum, {.cores = 5, .gpus = 2}, gangs), (Cores{1, 4}));
}

TEST(CpuAllocation, LeftoverCoresAreKeptOrDealtOut) {
  const Example two{{3, 1}};
  const CpuServer server{.cores = 9, .gpus = 2};
  EXPECT_EQ(allocate(CpuObjective::Sum, server, two.gangs), (Cores{3, 1}));
  EXPECT_EQ(allocate(CpuObjective::Sum, server, two.gangs, CpuLeftover::RoundRobin), (Cores{6, 3}));
}

TEST(CpuAllocation, AJobOfUnknownDemandIsNotGivenMoreThanItsFirstCore) {
  const auto unknown = normalised_speeds(CpuCurve{}, 24);
  const auto wants = example_speeds(19);
  const std::vector<CpuGang> gangs{{.speeds = unknown}, {.speeds = wants}};
  EXPECT_EQ(allocate(CpuObjective::Sum, {.cores = 12, .gpus = 2}, gangs), (Cores{1, 11}));
}

TEST(CpuAllocation, FewerCoresThanWorkersIsSaid) {
  const Example four{{19, 1, 3, 3}};
  Cores cores(4, 7);
  EXPECT_FALSE(CpuAllocator{}.allocate({.cores = 3, .gpus = 4}, four.gangs, cores));
  EXPECT_EQ(cores, (Cores{0, 0, 0, 0}));
}

}  // namespace
}  // namespace berth
