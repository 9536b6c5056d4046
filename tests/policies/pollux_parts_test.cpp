// Pollux without the engine: fitness by enumeration, the genetic algorithm, its repair, and
// filling.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "policies/pollux/filling.h"
#include "policies/pollux/fitness.h"
#include "policies/pollux/genetic.h"
#include "support/goodput.h"

namespace berth::pollux {
namespace {

using test::exhaustive;

/// A job of the fitness test: speedups against four GPUs of one node.
GeneticJob job_with(double phi, std::int32_t most) {
  GeneticJob job;
  job.most = most;
  const double fair = exhaustive({1, 4}, phi).goodput;
  for (std::int32_t gpus = 0; gpus <= most; ++gpus) {
    job.one_node.push_back(gpus == 0 || gpus > 4 ? 0 : exhaustive({1, gpus}, phi).goodput / fair);
    job.spread.push_back(gpus < 2 ? 0 : exhaustive({2, gpus}, phi).goodput / fair);
  }
  return job;
}

GeneticProblem two_nodes(double p) {
  GeneticProblem problem;
  problem.capacity = {4, 4};
  problem.jobs = {job_with(1000, 8), job_with(10000, 8)};
  problem.current.assign(4, 0);
  problem.p = p;
  return problem;
}

bool is_feasible(const GeneticProblem& problem, const Allocations& all) {
  const std::size_t nodes = problem.nodes();
  std::vector<std::int32_t> load(nodes), distributed(nodes);
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const GeneticJob& job = problem.jobs[j];
    const std::span row = std::span(all).subspan(j * nodes, nodes);
    const auto used = std::ranges::count_if(row, [](auto gpus) { return gpus > 0; });
    std::int32_t sum = 0;
    for (std::size_t n = 0; n < nodes; ++n) {
      sum += row[n];
      load[n] += row[n];
      if (row[n] > 0 && used > 1) ++distributed[n];
    }
    if (job.pinned) {
      if (!std::ranges::equal(row, std::span(problem.current).subspan(j * nodes, nodes)))
        return false;
    } else if (sum > job.most || (sum > 0 && sum < job.least)) {
      return false;
    }
  }
  for (std::size_t n = 0; n < nodes; ++n) {
    if (load[n] > problem.capacity[n] || distributed[n] > 1) return false;
  }
  return true;
}

struct Ranked {
  double fitness;
  Allocations all;
};
std::vector<Ranked> enumerate(const GeneticProblem& problem) {
  Rng rng{1};
  const Genetic genetic(problem, rng);
  std::vector<Ranked> ranked;
  for (int code = 0; code < 625; ++code) {
    Allocations all;
    for (int rest = code, i = 0; i < 4; ++i, rest /= 5)
      all.push_back(static_cast<std::uint8_t>(rest % 5));
    if (is_feasible(problem, all)) ranked.push_back({genetic.fitness(all), all});
  }
  std::ranges::stable_sort(ranked,
                           [](const Ranked& a, const Ranked& b) { return a.fitness > b.fitness; });
  return ranked;
}

TEST(PolluxFitness, IsAPowerMeanInWhichAJobWithoutGpusHurts) {
  EXPECT_DOUBLE_EQ(power_mean(powered(3, 2) + powered(4, 2), 2, 2), std::sqrt(12.5));
  EXPECT_DOUBLE_EQ(power_mean(powered(2, 1) + powered(4, 1), 2, 1), 3);
  EXPECT_DOUBLE_EQ(power_mean(powered(2, -1) + powered(4, -1), 2, -1), 8.0 / 3);
  EXPECT_NEAR(power_mean(powered(2, -50) + powered(4, -50), 2, -50), 2, 0.03) << "nearly the worst";
  EXPECT_DOUBLE_EQ(powered(0, 1), 0);
  EXPECT_DOUBLE_EQ(powered(0, -1), 1000) << "as if its speedup were a thousandth";
}

TEST(PolluxFitness, FairnessGivesEachJobANode) {
  const auto ranked = enumerate(two_nodes(-1));
  EXPECT_NEAR(ranked[0].fitness, 1.0, 1e-9);
  EXPECT_NEAR(ranked[1].fitness, 1.0, 1e-9);  // the mirror image
  EXPECT_EQ(ranked[0].all, (Allocations{0, 4, 4, 0}));
  EXPECT_EQ(ranked[1].all, (Allocations{4, 0, 0, 4}));
  EXPECT_NEAR(ranked[2].fitness, 0.961047, 1e-6);
  EXPECT_EQ(ranked[3].all, (Allocations{3, 0, 1, 4}));
}

TEST(PolluxFitness, TheAverageTakesFromTheJobThatGainsLess) {
  const GeneticProblem problem = two_nodes(1);
  const auto ranked = enumerate(problem);
  EXPECT_NEAR(ranked[0].fitness, 1.000148, 1e-6);
  EXPECT_TRUE(ranked[0].all == (Allocations{3, 0, 1, 4}) ||
              ranked[0].all == (Allocations{0, 3, 4, 1}));
  EXPECT_NEAR(problem.jobs[0].one_node[3], 0.802393, 1e-6);
  EXPECT_NEAR(problem.jobs[1].spread[5], 1.197904, 1e-6);
}

TEST(PolluxGenetic, FindsBothOptimaFromTheEmptyState) {
  for (const double p : {-1.0, 1.0}) {
    const GeneticProblem problem = two_nodes(p);
    const double optimum = enumerate(problem)[0].fitness;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Rng rng{seed};
      std::vector<Allocations> population;
      const GeneticResult found =
          Genetic(problem, rng).run({.generations = 100, .patience = 20}, population);
      EXPECT_NEAR(found.fitness, optimum, 1e-9) << "p " << p << " seed " << seed;
      EXPECT_TRUE(is_feasible(problem, found.best));
      EXPECT_EQ(population.size(), 100U);
    }
  }
}

TEST(PolluxGenetic, AtTheOptimumNothingMovesAnyMore) {
  GeneticProblem problem = two_nodes(-1);
  problem.current = {0, 4, 4, 0};
  for (GeneticJob& job : problem.jobs) job.restart = 0.9;
  Rng rng{3};
  std::vector<Allocations> population{{4, 0, 0, 4}};
  const GeneticResult found = Genetic(problem, rng).run({.generations = 20}, population);
  EXPECT_EQ(found.best, problem.current) << "not even to the mirror image";
}

TEST(PolluxGenetic, ARestartThatCostsMoreThanItGivesIsNotMade) {
  GeneticProblem problem = two_nodes(1);
  problem.current = {4, 0, 0, 4};  // fitness 1; the optimum is at 1.000148
  for (GeneticJob& job : problem.jobs) job.restart = 0.95;
  Rng rng{3};
  std::vector<Allocations> population;
  EXPECT_EQ(Genetic(problem, rng).run({.generations = 20}, population).best, problem.current);
}

TEST(PolluxGenetic, WhatIsRepairedIsFeasible) {
  Rng rng{5};
  for (int i = 0; i < 10'000; ++i) {
    GeneticProblem problem;
    const std::size_t nodes = 1 + rng.below(5);
    const std::size_t jobs = 1 + rng.below(6);
    for (std::size_t n = 0; n < nodes; ++n)
      problem.capacity.push_back(static_cast<std::int32_t>(rng.below(9)));
    problem.current.assign(nodes * jobs, 0);
    for (std::size_t j = 0; j < jobs; ++j) {
      GeneticJob job;
      job.least = 1 + static_cast<std::int32_t>(rng.below(3));
      job.most = job.least + static_cast<std::int32_t>(rng.below(8));
      job.one_node.assign(80, 1);
      job.spread.assign(80, 1);
      job.pinned = j == 0 && problem.capacity[0] >= job.least && rng.below(3) == 0;
      if (job.pinned) problem.current[0] = static_cast<std::uint8_t>(job.least);
      problem.jobs.push_back(std::move(job));
    }
    Allocations all(nodes * jobs);
    for (auto& gpus : all) gpus = static_cast<std::uint8_t>(rng.below(9));
    Genetic(problem, rng).repair(all);
    ASSERT_TRUE(is_feasible(problem, all)) << "matrix " << i;
  }
}

TEST(PolluxGenetic, JobsOverSeveralNodesMayMeetIfAllowed) {
  GeneticProblem problem = two_nodes(-1);
  problem.interference = Interference::Allow;
  Rng rng{1};
  Allocations all{2, 2, 2, 2};
  Genetic(problem, rng).repair(all);
  EXPECT_EQ(all, (Allocations{2, 2, 2, 2}));
  problem.interference = Interference::Avoid;
  Genetic(problem, rng).repair(all);
  EXPECT_NE(all, (Allocations{2, 2, 2, 2}));
}

const std::vector<std::int32_t> kDoubling{1, 2, 4, 8, 16};

FillJob fill_job(double phi, const std::vector<std::int32_t>& sizes = kDoubling) {
  FillJob job;
  const double fair = exhaustive({1, 4}, phi).goodput;
  for (const std::int32_t gpus : sizes) {
    job.sizes.push_back(gpus);
    job.utility.push_back(exhaustive({gpus > 4 ? 2 : 1, gpus}, phi).goodput / fair);
  }
  return job;
}

double sum_of_utilities(const std::vector<FillJob>& jobs, const std::vector<std::int32_t>& sizes) {
  double sum = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::size_t i = 0; i < jobs[j].sizes.size(); ++i)
      sum += jobs[j].sizes[i] == sizes[j] ? jobs[j].utility[i] : 0;
  }
  return sum;
}

/// The largest value any choice of sizes reaches.
double best_of_all(const std::vector<FillJob>& jobs, std::int32_t gpus, double p) {
  double best = -1e300;
  const std::function<void(std::size_t, std::int32_t, double)> look =
      [&](std::size_t j, std::int32_t left, double value) {
        if (j == jobs.size()) {
          best = std::max(best, p < 0 ? -value : value);
          return;
        }
        look(j + 1, left, value + powered(0, p));
        for (std::size_t i = 0; i < jobs[j].sizes.size() && jobs[j].sizes[i] <= left; ++i)
          look(j + 1, left - jobs[j].sizes[i], value + powered(jobs[j].utility[i], p));
      };
  look(0, gpus, 0);
  return best;
}

TEST(WaterFill, TheExamplesOfTheSpecification) {
  struct Case {
    std::vector<double> phis;
    std::vector<std::int32_t> sizes;
    double sum;
  };
  for (const Case& one : {Case{{100, 1000, 10000, 100000}, {2, 2, 4, 8}, 4.16194},
                          Case{{500, 700, 20000, 3000}, {2, 2, 8, 4}, 4.06199}}) {
    std::vector<FillJob> jobs;
    for (const double phi : one.phis) jobs.push_back(fill_job(phi));
    EXPECT_EQ(water_fill(jobs, 16, 1), one.sizes);
    EXPECT_NEAR(sum_of_utilities(jobs, one.sizes), one.sum, 1e-5);
    EXPECT_NEAR(best_of_all(jobs, 16, 1), one.sum, 1e-5) << "nothing is better";
    EXPECT_EQ(water_fill(jobs, 16, -1), (std::vector<std::int32_t>{4, 4, 4, 4}));
    EXPECT_NEAR(best_of_all(jobs, 16, -1), -4, 1e-9) << "nor here";
  }
}

double value_of(const std::vector<FillJob>& jobs, const std::vector<std::int32_t>& sizes,
                double p) {
  double value = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const auto at = std::ranges::find(jobs[j].sizes, sizes[j]) - jobs[j].sizes.begin();
    value += powered(sizes[j] == 0 ? 0 : jobs[j].utility[static_cast<std::size_t>(at)], p);
  }
  return p < 0 ? -value : value;
}

// Six sets of noise scales, both means, doubling sizes or all of them: 24 cases.
TEST(WaterFill, EqualsExhaustiveSearchOnFourJobsAndSixteenGpus) {
  const std::vector<std::int32_t> all{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const std::vector<std::vector<double>> sets{
      {100, 1000, 10000, 100000}, {500, 700, 20000, 3000},  {1000, 1000, 1000, 1000},
      {50, 100, 200, 400},        {5000, 300, 80000, 1500}, {20000, 40000, 60000, 80000}};
  for (const auto& phis : sets) {
    for (const auto* sizes : {&kDoubling, &all}) {
      std::vector<FillJob> jobs;
      for (const double phi : phis) jobs.push_back(fill_job(phi, *sizes));
      for (const double p : {1.0, -1.0}) {
        const double best = best_of_all(jobs, 16, p);
        EXPECT_NEAR(value_of(jobs, water_fill(jobs, 16, p), p), best, 2e-3 * std::abs(best))
            << "phi " << phis[0] << ", " << sizes->size() << " sizes, p " << p;
      }
    }
  }
}

TEST(WaterFill, GivesEverybodySomethingBeforeAnybodyMuch) {
  const std::vector<FillJob> jobs(20, fill_job(1000));
  const auto sizes = water_fill(jobs, 20, -1);
  EXPECT_TRUE(std::ranges::all_of(sizes, [](auto gpus) { return gpus == 1; }));
  const auto few = water_fill(jobs, 7, -1);
  EXPECT_EQ(std::ranges::count(few, 1), 7);
  EXPECT_EQ(few[0], 1) << "equal jobs in their order";
}

TEST(WaterFill, AStepThatDoesNotFitLeavesTheWayForASmallerOne) {
  FillJob wide{{8}, {8}};
  FillJob narrow{{1, 2, 3}, {0.5, 0.9, 1.2}};
  EXPECT_EQ(water_fill(std::vector{wide, narrow}, 5, 1), (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(water_fill(std::vector{wide, narrow}, 10, 1), (std::vector<std::int32_t>{8, 2}));
}

}  // namespace
}  // namespace berth::pollux
