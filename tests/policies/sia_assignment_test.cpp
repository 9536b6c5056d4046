// Sia without the engine: configurations, costs, and the integer program against enumeration.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "policies/sia/assignment.h"
#include "policies/sia/configurations.h"

namespace berth::sia {
namespace {

TEST(SiaConfigurations, PowersOfTwoInAServerThenWholeServers) {
  const std::vector<Configuration> expected{{1, 1}, {1, 2}, {1, 4}, {2, 8}, {3, 12}};
  EXPECT_EQ(configurations(4, 12), expected);
  EXPECT_EQ(configurations(8, 4), (std::vector<Configuration>{{1, 1}, {1, 2}, {1, 4}}));
  EXPECT_EQ(configurations(6, 6), (std::vector<Configuration>{{1, 1}, {1, 2}, {1, 4}, {1, 6}}));
}

TEST(SiaConfigurations, OnlyWholeReplicas) {
  EXPECT_EQ(configurations(8, 24, 4),
            (std::vector<Configuration>{{1, 4}, {1, 8}, {2, 16}, {3, 24}}));
}

TEST(SiaCosts, MoveFactor) {
  EXPECT_NEAR(move_factor(600, 1, 30), 570.0 / 630, 1e-12);
  EXPECT_EQ(move_factor(20, 3, 30), 1) << "too young to have lost anything";
  EXPECT_EQ(move_factor(60, 3, 30), 0);
}

TEST(SiaCosts, FallWithUtilityAndAreBounded) {
  EXPECT_NEAR(cost_of_utility(4, {.p = -0.5}), 0.5, 1e-12);
  EXPECT_EQ(cost_of_utility(0, {.p = -0.5}), 3000);
  EXPECT_EQ(cost_of_utility(1e-9, {.p = -0.5}), 3000);
  EXPECT_NEAR(cost_of_utility(4, {.p = 1}), -4, 1e-12);
}

TEST(SiaModels, GangsOnAnUnseenTypeScaleAsOnASeenOne) {
  // 10/s on one GPU there, 35/s on four; 20/s on one here.
  EXPECT_NEAR(bootstrapped(20, 10, 35), 70, 1e-12);
  EXPECT_EQ(bootstrapped(20, 0, 35), 0);
}

/// The three jobs of the specification: goodputs on A1, A2, A4, T1, T2, T4.
Program three_jobs(const CostRule& rule) {
  constexpr std::int32_t kSizes[]{1, 2, 4, 1, 2, 4};
  struct Job {
    std::vector<double> goodput;
    double restart;
    int current;  // option; -1 = none
  };
  const std::vector<Job> jobs{{{20, 36, 60, 10, 19, 34}, .9, 2},
                              {{12, 20, 30, 8, 14, 22}, .8, 4},
                              {{16, 31, 58, 4, 7.5, 13}, 1, -1}};
  Program program;
  program.capacity = {4, 4};
  for (const Job& job : jobs) {
    Row& row = program.rows.emplace_back();
    row.none = rule.none;
    const double least = *std::ranges::min_element(job.goodput);
    for (int i = 0; i < 6; ++i) {
      const double utility =
          job.goodput[static_cast<std::size_t>(i)] / least * (i == job.current ? 1 : job.restart);
      row.options.push_back({i < 3 ? 0U : 1U, kSizes[i], cost_of_utility(utility, rule)});
    }
  }
  return program;
}

struct Found {
  double cost;
  std::vector<std::size_t> choices;
};
/// Everything that fits, cheapest first.
std::vector<Found> enumerate(const Program& program) {
  std::vector<Found> all;
  std::vector<std::size_t> choices;
  std::vector<std::int64_t> free = program.capacity;
  const std::function<void(double)> look = [&](double cost) {
    if (choices.size() == program.rows.size()) {
      all.push_back({cost, choices});
      return;
    }
    const Row& row = program.rows[choices.size()];
    choices.push_back(row.options.size());
    look(cost + row.none);
    for (std::size_t i = 0; i < row.options.size(); ++i) {
      if (free[row.options[i].type] < row.options[i].gpus) continue;
      free[row.options[i].type] -= row.options[i].gpus;
      choices.back() = i;
      look(cost + row.options[i].cost);
      free[row.options[i].type] += row.options[i].gpus;
    }
    choices.pop_back();
  };
  look(0);
  std::ranges::stable_sort(all, {}, &Found::cost);
  return all;
}

std::vector<std::size_t> choices_of(const Assignment& assignment) {
  std::vector<std::size_t> choices;
  for (const auto& row : assignment.taken) {
    const auto found = std::ranges::find(row, 1);
    choices.push_back(static_cast<std::size_t>(found - row.begin()));
  }
  return choices;
}

constexpr std::size_t kA2 = 1, kA4 = 2, kT2 = 4, kT4 = 5;

TEST(SiaProgram, TheExampleOfTheSpecification) {
  const Program program = three_jobs({});
  const auto all = enumerate(program);
  EXPECT_EQ(all[0].choices, (std::vector{kA2, kT4, kA2}));
  EXPECT_NEAR(all[0].cost, 1.5890, 5e-5);
  EXPECT_EQ(all[1].choices, (std::vector{kT4, kA2, kA2}));
  EXPECT_NEAR(all[1].cost, 1.6380, 5e-5);
  EXPECT_EQ(all[2].choices, (std::vector{kA2, kT2, kA2}));
  EXPECT_NEAR(all[2].cost, 1.6707, 5e-5);
  for (const Assignment& found :
       {solve(program), solve_by_prices(program), *solve_exactly(program, 100'000)}) {
    EXPECT_EQ(choices_of(found), all[0].choices);
    EXPECT_NEAR(found.cost, all[0].cost, 1e-12);
  }
}

TEST(SiaProgram, TheSumOfUtilitiesStarvesTheFirstJob) {
  const Program program = three_jobs({.p = 1});
  const Assignment found = solve(program);
  EXPECT_EQ(choices_of(found), (std::vector{kT2, kT2, kA4}));
  EXPECT_NEAR(-found.cost, 17.96, 1e-9);
  EXPECT_NEAR(enumerate(program)[0].cost, found.cost, 1e-12);
}

/// Jobs of concave goodput on `types` types of 16 GPUs.
Program random_program(Rng& rng, std::size_t jobs, std::size_t types) {
  Program program;
  program.capacity.assign(types, 16);
  for (std::size_t j = 0; j < jobs; ++j) {
    Row& row = program.rows.emplace_back();
    row.none = 1.1;
    const double bend = 0.3 + 0.7 * rng.uniform();
    for (std::uint32_t t = 0; t < types; ++t) {
      const double speed = 1 + 3 * rng.uniform();
      for (const std::int32_t gpus : {1, 2, 4, 8}) {
        const double utility = speed * std::pow(gpus, bend) * (0.7 + 0.3 * rng.uniform());
        row.options.push_back({t, gpus, cost_of_utility(utility, {})});
      }
    }
  }
  return program;
}

TEST(SiaProgram, PricesComeWithinTwoPercentOfTheOptimum) {
  Rng rng{11};
  for (int i = 0; i < 20; ++i) {
    const Program program = random_program(rng, 6 + rng.below(25), 2);
    const Assignment found = solve_by_prices(program, {.iterations = 200});
    ASSERT_TRUE(is_within_capacity(program, found));
    EXPECT_NEAR(cost_of(program, found), found.cost, 1e-9);
    const auto exact = solve_exactly(program, 3'000'000);
    if (!exact) continue;
    EXPECT_LE(found.cost, exact->cost * 1.02) << "instance " << i;
    EXPECT_GE(found.cost, exact->cost - 1e-9) << "instance " << i;
  }
}

TEST(SiaProgram, TheSearchFindsWhatEnumerationFinds) {
  Rng rng{5};
  for (int i = 0; i < 10; ++i) {
    Program program = random_program(rng, 4, 2);
    program.capacity = {5, 3};
    const auto exact = solve_exactly(program, 1'000'000);
    ASSERT_TRUE(exact);
    EXPECT_NEAR(exact->cost, enumerate(program)[0].cost, 1e-12);
    EXPECT_NEAR(solve(program).cost, exact->cost, 1e-12);
  }
}

TEST(SiaProgram, TheTableOfOneTypeIsExact) {
  Rng rng{7};
  for (int i = 0; i < 10; ++i) {
    const Program program = random_program(rng, 6, 1);
    const Assignment table = solve_one_type(program);
    ASSERT_TRUE(is_within_capacity(program, table));
    const auto exact = solve_exactly(program, 1'000'000);
    ASSERT_TRUE(exact);
    EXPECT_NEAR(table.cost, exact->cost, 1e-12);
    EXPECT_NEAR(solve(program).cost, table.cost, 1e-12);
  }
}

TEST(SiaProgram, EqualJobsAsOneRowCostTheSame) {
  Rng rng{9};
  const Program kinds = random_program(rng, 4, 2);
  Program single;
  Program joined;
  single.capacity = joined.capacity = {24, 24};
  for (const Row& kind : kinds.rows) {
    joined.rows.push_back(kind);
    joined.rows.back().count = 6;
    for (int i = 0; i < 6; ++i) single.rows.push_back(kind);
  }
  const Assignment one = solve(joined);
  const Assignment many = solve(single);
  ASSERT_TRUE(is_within_capacity(joined, one));
  EXPECT_NEAR(one.cost, many.cost, 0.02 * many.cost);
  for (std::size_t r = 0; r < joined.rows.size(); ++r) {
    std::int32_t taken = 0;
    for (const std::int32_t jobs : one.taken[r]) taken += jobs;
    EXPECT_LE(taken, 6);
  }
}

TEST(SiaProgram, NothingToShareAndNobodyToShareIt) {
  EXPECT_TRUE(solve({}).taken.empty());
  Program program = three_jobs({});
  program.capacity = {0, 0};
  const Assignment found = solve(program);
  EXPECT_NEAR(found.cost, 3.3, 1e-12);
  EXPECT_TRUE(is_within_capacity(program, found));
}

}  // namespace
}  // namespace berth::sia
