#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "perf/data_cache.h"
#include "policies/synergy/optimum.h"
#include "policies/synergy/packing.h"
#include "policies/synergy/sensitivity.h"

namespace berth::synergy {
namespace {

constexpr std::int64_t kGib = 1024;

/// 8 GPUs, 24 cores, 500 GB: 3 cores and 62.5 GB to each GPU.
const Axes kAxes = Axes::of_server(8, 24, 500 * kGib);
const Server kServer{.gpus = 8, .cores = 24, .memory_mib = 500 * kGib};

/// By cores from one, measured with memory to spare; the cache says what less memory costs.
Result<Sensitivity> from_column(std::span<const double> column, const DataCache& cache) {
  std::vector<double> matrix;
  for (const double measured : column) {
    for (const std::int64_t memory : kAxes.memory_mib)
      matrix.push_back(std::min(measured, cache.samples_per_second(static_cast<double>(memory))));
  }
  return Sensitivity::from_matrix(kAxes, matrix);
}

/// Throughput in GPUs with their proportional share.
double value_of(std::span<const Job> jobs, std::span<const Grant> grants) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (grants[i].runs) sum += jobs[i].gpus * jobs[i].sensitivity->at(grants[i].share);
  }
  return sum;
}

/// A second program spreads the jobs over the servers as fractions: how many it tears apart, or
/// nothing if the shares do not fit even so.
std::optional<std::size_t> torn_over_servers(std::span<const Server> servers,
                                             std::span<const Job> jobs,
                                             std::span<const Share> shares) {
  LinearProgram program{Sense::Minimise};
  std::vector<std::vector<LinearTerm>> gpus(servers.size()), cores(servers.size()),
      memory(servers.size());
  std::vector<LinearTerm> whole;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    whole.clear();
    const double k = jobs[j].gpus;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      // The first servers are cheap: the rest stay free for whole jobs.
      const ColumnId x = program.add_column(k * static_cast<double>(i), {0, 1});
      whole.push_back({x, 1});
      gpus[i].push_back({x, k});
      cores[i].push_back({x, k * shares[j].cores});
      memory[i].push_back(
          {x,
           k * static_cast<double>(kAxes.memory_mib[static_cast<std::size_t>(shares[j].level)])});
    }
    program.add_row(whole, Bounds::exactly(1));
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    program.add_row(gpus[i], Bounds::at_most(servers[i].gpus));
    program.add_row(cores[i], Bounds::at_most(servers[i].cores));
    program.add_row(memory[i], Bounds::at_most(static_cast<double>(servers[i].memory_mib)));
  }
  const Solution solution = program.solve();
  if (solution.status != SolveStatus::Optimal) return std::nullopt;
  std::size_t torn = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    std::size_t used = 0;
    for (std::size_t i = 0; i < servers.size(); ++i)
      used += solution.values[j * servers.size() + i] > 1e-9 ? 1U : 0U;
    torn += used > 1 ? 1U : 0U;
  }
  return torn;
}

Sensitivity rising_to(std::int32_t demand) {
  std::vector<double> column;
  for (std::int32_t c = 1; c <= kAxes.max_cores; ++c)
    column.push_back(std::min(1.0, static_cast<double>(c) / demand));
  return *from_column(column, {});
}

TEST(Sensitivity, AxesHoldTheProportionalShare) {
  EXPECT_EQ(kAxes.fair.cores, 3);
  EXPECT_EQ(kAxes.memory_mib[static_cast<std::size_t>(kAxes.fair.level)], 64000);  // 62.5 GiB
  EXPECT_EQ(kAxes.memory_mib.back(), 256000);
  EXPECT_EQ(kAxes.max_cores, 24);
  const auto no_memory = Axes::of_server(4, 16, 0);
  EXPECT_EQ(no_memory.memory_mib, (std::vector<std::int64_t>{0}));
}

TEST(Sensitivity, TheCacheMissesInProportionToWhatDoesNotFit) {
  const DataCache cache{.dataset_mib = 100'000, .sample_mib = 0.1, .storage_mib_per_second = 200};
  // Half of it fits: half of the samples are fetched, 0.05 MiB each on average, 4000 a second.
  EXPECT_NEAR(cache.samples_per_second(50'000), 4000, 1e-6);
  EXPECT_NEAR(cache.samples_per_second(0), 2000, 1e-6);
  EXPECT_TRUE(std::isinf(cache.samples_per_second(100'000)));
  EXPECT_TRUE(std::isinf(DataCache{}.samples_per_second(0)));
}

TEST(Sensitivity, DemandIsTheFewestCoresThenTheLeastMemoryForNineTenths) {
  std::vector<double> column;  // 1000 samples/s at ten cores
  for (std::int32_t c = 1; c <= 24; ++c) column.push_back(std::min(1000.0, 100.0 * c));
  const DataCache cache{.dataset_mib = 200'000, .sample_mib = 0.1, .storage_mib_per_second = 50};
  const auto w = from_column(column, cache);
  ASSERT_TRUE(w.has_value());
  // 9 cores give 900. Fetching allows 500 / (1 - m/200000): 900 from m = 88,889, so the level
  // 128000.
  EXPECT_EQ(w->demand().cores, 9);
  EXPECT_EQ(kAxes.memory_mib[static_cast<std::size_t>(w->demand().level)], 128000);
  // Relative to three cores and 64000 MiB: min(300, 735).
  EXPECT_DOUBLE_EQ(w->at(w->fair()), 1);
  EXPECT_NEAR(w->at(w->demand()), 3, 1e-12);
}

// Nine tenths of the best may be less than the proportional share gives; the guarantee comes first.
TEST(Sensitivity, DemandIsNeverBelowTheProportionalThroughput) {
  std::vector<double> column{0.85, 0.95, 1.0};
  column.resize(24, 1.0);
  const auto w = from_column(column, {});
  ASSERT_TRUE(w.has_value());
  EXPECT_EQ(w->demand().cores, 3);
}

TEST(Sensitivity, LeastKeepsTheProportionalThroughputAndNothingIdle) {
  std::vector<double> column;
  for (std::int32_t c = 1; c <= 24; ++c) column.push_back(std::min(1000.0, 100.0 * c));
  std::vector<double> matrix;  // the cache helps only when it holds everything
  for (const double w : column)
    for (const std::int64_t memory : kAxes.memory_mib)
      matrix.push_back(memory < 128000 ? w / 2 : w);
  const auto w = Sensitivity::from_matrix(kAxes, matrix);
  ASSERT_TRUE(w.has_value());
  EXPECT_EQ(w->demand(), (Share{9, 2}));
  EXPECT_EQ(w->least_of(w->demand()), (Share{3, 0}));
}

TEST(Sensitivity, RefusesMatricesThatAreNone) {
  const auto axes = Axes::of_server(1, 2, 0);
  EXPECT_TRUE(Sensitivity::from_matrix(axes, std::vector<double>{1, 2}).has_value());
  EXPECT_FALSE(Sensitivity::from_matrix(axes, std::vector<double>{1}).has_value());
  EXPECT_FALSE(Sensitivity::from_matrix(axes, std::vector<double>{2, 1}).has_value());
  EXPECT_FALSE(Sensitivity::from_matrix(axes, std::vector<double>{0, 1}).has_value());
  EXPECT_FALSE(Sensitivity::from_matrix(axes, std::vector<double>{std::nan(""), 1}).has_value());
}

struct Mix {
  std::vector<Sensitivity> w;
  std::vector<Job> jobs;
  void add(Sensitivity sensitivity, std::int32_t gpus = 1) {
    w.push_back(std::move(sensitivity));
    jobs.push_back({.gpus = gpus});
  }
  std::span<const Job> ready() {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].sensitivity = &w[i];
      jobs[i].demand = w[i].demand();
    }
    return jobs;
  }
};

std::vector<std::int32_t> cores_of(std::span<const Grant> grants) {
  std::vector<std::int32_t> cores;
  for (const Grant& grant : grants) cores.push_back(grant.runs ? grant.share.cores : 0);
  return cores;
}

Mix worked_example() {
  Mix mix;
  for (const std::int32_t demand : {9, 9, 1, 1, 3, 3, 3, 3}) mix.add(rising_to(demand));
  return mix;
}

TEST(SynergyTune, TheWorkedExample) {
  Mix mix = worked_example();  // A … H
  const auto jobs = mix.ready();
  EXPECT_EQ(mix.w[0].demand().cores, 9);
  EXPECT_EQ(mix.w[2].demand().cores, 1);
  EXPECT_EQ(mix.w[4].demand().cores, 3);
  Packer tune{Mode::Tune};
  const std::vector<Server> servers{kServer};
  EXPECT_EQ(cores_of(tune.pack(kAxes, servers, jobs)),
            (std::vector<std::int32_t>{5, 5, 1, 1, 3, 3, 3, 3}));
}

TEST(SynergyGreedy, LeavesFourJobsWaitingInTheWorkedExample) {
  Mix mix = worked_example();
  const auto jobs = mix.ready();
  Packer greedy{Mode::Greedy};
  const std::vector<Server> servers{kServer};
  EXPECT_EQ(cores_of(greedy.pack(kAxes, servers, jobs)),
            (std::vector<std::int32_t>{9, 9, 0, 0, 3, 3, 0, 0}));
}

TEST(SynergyProportional, GivesEverybodyTheSame) {
  Mix mix = worked_example();
  const auto jobs = mix.ready();
  Packer packer{Mode::Proportional};
  const std::vector<Server> servers{kServer};
  EXPECT_EQ(cores_of(packer.pack(kAxes, servers, jobs)), std::vector<std::int32_t>(8, 3));
}

TEST(SynergyTune, TakesTheFullestServerThatSatisfiesTheDemand) {
  Mix mix;
  mix.add(rising_to(3), 6);  // first: most GPUs
  mix.add(rising_to(6), 2);  // 12 cores: the first server has 6 left, so the second
  mix.add(rising_to(2), 2);  // 4 cores: beside the first
  const auto jobs = mix.ready();
  Packer tune{Mode::Tune};
  const std::vector<Server> servers{kServer, kServer};
  const auto grants = tune.pack(kAxes, servers, jobs);
  EXPECT_EQ(grants[0].parts, (std::vector<Part>{{0, 6}}));
  EXPECT_EQ(grants[1].parts, (std::vector<Part>{{1, 2}}));
  EXPECT_EQ(grants[2].parts, (std::vector<Part>{{0, 2}}));
}

TEST(SynergyTune, SplitsAGangOnlyWhenNoServerHasItsGpus) {
  Mix mix;
  mix.add(rising_to(3), 12);
  mix.add(rising_to(3), 4);
  const auto jobs = mix.ready();
  Packer tune{Mode::Tune};
  const std::vector<Server> servers{kServer, kServer};
  const auto grants = tune.pack(kAxes, servers, jobs);
  EXPECT_EQ(grants[0].parts.size(), 2U);
  EXPECT_EQ(grants[1].parts, (std::vector<Part>{{grants[0].parts[1].server, 4}}));
}

TEST(SynergyTune, AJobThatRanStaysWhereItIs) {
  Mix mix;
  mix.add(rising_to(3), 4);
  mix.add(rising_to(3), 2);
  mix.ready();
  const std::vector<Part> there{{1, 2}};
  mix.jobs[1].stay = there;
  Packer tune{Mode::Tune};
  const std::vector<Server> servers{kServer, kServer};
  const auto grants = tune.pack(kAxes, servers, mix.jobs);
  EXPECT_EQ(grants[1].parts, there);
  EXPECT_EQ(grants[0].parts, (std::vector<Part>{{1, 4}}));  // the fuller server
}

enum class Caches { NoMatter, Hungry };

/// Rises with shrinking steps, by cores; a step at a random memory level for hungry ones.
Sensitivity random_sensitivity(Rng& rng, Caches caches) {
  const auto sweet = 1 + rng.below(14);
  const double bend = 0.3 + 0.7 * rng.uniform();
  const double needed = caches == Caches::Hungry ? static_cast<double>(rng.below(3)) * 60'000 : 0.0;
  std::vector<double> matrix;
  for (std::int32_t c = 1; c <= kAxes.max_cores; ++c) {
    const double by_cores =
        std::min(1.0, std::pow(static_cast<double>(c) / static_cast<double>(sweet), bend));
    for (const std::int64_t memory : kAxes.memory_mib)
      matrix.push_back(by_cores * (static_cast<double>(memory) >= needed ? 1.0 : 0.4));
  }
  return *Sensitivity::from_matrix(kAxes, matrix);
}

Mix random_mix(Rng& rng, std::int32_t gpus, Caches caches) {
  Mix mix;
  while (gpus > 0) {
    const auto k = std::min(gpus, std::int32_t{1} << rng.below(3));
    mix.add(random_sensitivity(rng, caches), k);
    gpus -= k;
  }
  return mix;
}

TEST(SynergyTune, NobodyIsSlowerThanWithItsProportionalShareAndNothingIsOverused) {
  Rng rng{21};
  Packer tune{Mode::Tune};
  for (int round = 0; round < 300; ++round) {
    Mix mix = random_mix(rng, 24, Caches::Hungry);
    const auto jobs = mix.ready();
    const std::vector<Server> servers(3, kServer);
    const auto grants = tune.pack(kAxes, servers, jobs);
    std::vector<std::int64_t> gpus(3), cores(3), memory(3);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_TRUE(grants[i].runs);  // all GPUs are used
      EXPECT_GE(jobs[i].sensitivity->at(grants[i].share), 1 - 1e-12);
      for (const Part& part : grants[i].parts) {
        gpus[part.server] += part.gpus;
        cores[part.server] += part.gpus * grants[i].share.cores;
        memory[part.server] +=
            part.gpus * kAxes.memory_mib[static_cast<std::size_t>(grants[i].share.level)];
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_LE(gpus[i], 8);
      EXPECT_LE(cores[i], 24);
      EXPECT_LE(memory[i], 500 * kGib);
    }
  }
}

/// tune in parts of the optimum over thirty random rounds of two servers.
double tune_over_optimum(Caches caches) {
  Rng rng{22};
  Packer tune{Mode::Tune};
  double tuned = 0;
  double best = 0;
  for (int round = 0; round < 30; ++round) {
    Mix mix = random_mix(rng, 16, caches);
    const auto jobs = mix.ready();
    const std::vector<Server> servers(2, kServer);
    const double value = value_of(jobs, tune.pack(kAxes, servers, jobs));
    const auto optimum = optimum_of(kAxes, servers, jobs, {.nodes = 2000});
    if (!optimum.has_value()) return 0;
    EXPECT_GE(value, 16 - 1e-9);  // the proportional share of 16 GPUs
    EXPECT_LE(value, optimum->bound + 1e-6);
    const auto torn = torn_over_servers(servers, jobs, optimum->shares);
    EXPECT_TRUE(torn.has_value());
    // A corner of the program: no more torn jobs than there are limits of servers.
    EXPECT_LE(torn.value_or(99), 6U);
    tuned += value;
    best += optimum->value;
  }
  return tuned / best;
}

TEST(SynergyOptimum, TuneIsWithinATenthOfItWhenOnlyCoresMatter) {
  EXPECT_GT(tune_over_optimum(Caches::NoMatter), 0.9);
}

// A third of the jobs gains 2.5 times by a cache of two shares, and tune serves by size and cores
// first: the gap is wider than on the mixes of the paper.
TEST(SynergyOptimum, TuneIsWithinAFifthOfItWhenCachesMatterMuch) {
  const double part = tune_over_optimum(Caches::Hungry);
  EXPECT_GT(part, 0.8);
  EXPECT_LT(part, 1);
}

TEST(SynergyOptimum, FindsTheBestSplitOfTheWorkedExample) {
  Mix mix = worked_example();
  const auto jobs = mix.ready();
  const std::vector<Server> servers{kServer};
  const auto optimum = optimum_of(kAxes, servers, jobs);
  ASSERT_TRUE(optimum.has_value());
  EXPECT_EQ(optimum->status, SolveStatus::Optimal);
  // C, D keep one core, E … H three: ten are left for A and B, a third of the share each.
  EXPECT_NEAR(optimum->value, 6 + 10.0 / 3, 1e-9);
  Packer tune{Mode::Tune};
  EXPECT_NEAR(value_of(jobs, tune.pack(kAxes, servers, jobs)), optimum->value, 1e-9);
}

TEST(SynergyOptimum, RefusesMoreGpusThanThereAre) {
  Mix mix;
  mix.add(rising_to(3), 9);
  const auto jobs = mix.ready();
  const std::vector<Server> servers{kServer};
  EXPECT_FALSE(optimum_of(kAxes, servers, jobs).has_value());
}

}  // namespace
}  // namespace berth::synergy
