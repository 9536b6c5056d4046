// Gavel's programs on the worked examples: two types of one device each, three jobs of one GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "policies/gavel/level_program.h"
#include "policies/gavel/programs.h"
#include "policies/gavel/water_fill.h"

namespace berth::gavel {
namespace {

Fluid fluid_of(std::vector<double> gpus, std::vector<std::vector<double>> rates) {
  Fluid fluid{.gpus = std::move(gpus), .classes = {}, .pairs = {}};
  for (std::vector<double>& row : rates) fluid.classes.push_back({.rates = std::move(row)});
  return fluid;
}

Fluid worked() { return fluid_of({1, 1}, {{4, 1}, {3, 1}, {2, 1}}); }

FillRule las_rule(const Fluid& fluid) {
  FillRule rule;
  const std::vector<double> equal = equal_rates(fluid);
  for (std::size_t i = 0; i < equal.size(); ++i)
    rule.value.push_back(fluid.classes[i].gpus / equal[i]);
  return rule;
}

struct Filled {
  Shares shares;
  std::vector<double> level;  // by class: value times effective rate
  double first = 0;           // the level of the first bottleneck
};

Filled fill(const Fluid& fluid, const FillRule& rule) {
  Filled filled{.shares = water_fill(fluid, rule), .level = {}, .first = 0};
  filled.level = effective_rates(fluid, filled.shares);
  for (std::size_t i = 0; i < filled.level.size(); ++i) filled.level[i] *= rule.value[i];
  if (const auto level = LevelProgram{fluid, rule.value}.solve()) filled.first = level->z;
  return filled;
}

/// Sum over all jobs of worth by class and type.
double worth_of(const Fluid& fluid, std::span<const double> worth) {
  const Shares shares = maximise(fluid, worth);
  double sum = 0;
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    for (std::size_t type = 0; type < fluid.types(); ++type)
      sum += worth[i * fluid.types() + type] * fluid.classes[i].count * shares.of_class(i, type);
  }
  return sum;
}

/// All work over all dollars.
double ratio_of(const Fluid& fluid, std::span<const double> prices) {
  const Shares shares = best_ratio(fluid, prices);
  double work = 0;
  double dollars = 0;
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    for (std::size_t type = 0; type < fluid.types(); ++type) {
      work += fluid.classes[i].rates[type] * shares.of_class(i, type);
      dollars += prices[type] * shares.of_class(i, type);
    }
  }
  return work / dollars;
}

void expect_legal(const Fluid& fluid, const Shares& shares) {
  std::vector<double> used(fluid.types());
  std::vector<double> time(fluid.classes.size());
  for (std::size_t type = 0; type < fluid.types(); ++type) {
    for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
      const FluidClass& one = fluid.classes[i];
      const double x = shares.of_class(i, type);
      EXPECT_GE(x, 0);
      if (one.rates[type] <= 0) {
        EXPECT_EQ(x, 0);
      }
      used[type] += x * one.count * one.gpus;
      time[i] += x;
    }
    for (std::size_t i = 0; i < fluid.pairs.size(); ++i) {
      const double x = shares.of_pair(i, type);
      used[type] += x * fluid.classes[fluid.pairs[i].first].gpus;
      time[fluid.pairs[i].first] += x;
      time[fluid.pairs[i].second] += x;
    }
    EXPECT_LE(used[type], fluid.gpus[type] * (1 + 1e-7) + 1e-9);
  }
  for (const double sum : time) EXPECT_LE(sum, 1 + 1e-7);
}

TEST(GavelPrograms, EqualSharesOfEachType) {
  const std::vector<double> equal = equal_rates(worked());
  EXPECT_NEAR(equal[0], 5.0 / 3, 1e-12);
  EXPECT_NEAR(equal[1], 4.0 / 3, 1e-12);
  EXPECT_NEAR(equal[2], 1, 1e-12);
  // two jobs on four devices of each type: nobody runs more than all of the time
  EXPECT_NEAR(equal_rates(fluid_of({4, 4}, {{4, 1}, {3, 1}}))[0], 2.5, 1e-12);
}

TEST(GavelPrograms, MaxMinOfTheWorkedExample) {
  const Fluid fluid = worked();
  const Filled filled = fill(fluid, las_rule(fluid));
  EXPECT_NEAR(filled.first, 12.0 / 11, 1e-9);
  const std::vector<double> rates = effective_rates(fluid, filled.shares);
  EXPECT_NEAR(rates[0], 20.0 / 11, 1e-7);
  EXPECT_NEAR(rates[1], 16.0 / 11, 1e-7);
  EXPECT_NEAR(rates[2], 12.0 / 11, 1e-7);
  expect_legal(fluid, filled.shares);
}

TEST(GavelPrograms, WaterFillingGoesOnAfterTheFirstBottleneck) {
  const Fluid fluid = fluid_of({1, 1}, {{4, 0}, {4, 0}, {1, 2}});
  const Filled filled = fill(fluid, las_rule(fluid));
  EXPECT_NEAR(filled.first, 1.5, 1e-9);
  EXPECT_NEAR(filled.level[0], 1.5, 1e-7);
  EXPECT_NEAR(filled.level[1], 1.5, 1e-7);
  EXPECT_NEAR(filled.level[2], 2, 1e-7);  // alone on the second type
  expect_legal(fluid, filled.shares);
}

TEST(GavelPrograms, StoppedEarlyTheRestIsSharedOutForTheSum) {
  const Fluid fluid = fluid_of({1, 1}, {{4, 0}, {4, 0}, {1, 2}});
  FillRule rule = las_rule(fluid);
  rule.max_levels = 1;
  EXPECT_NEAR(fill(fluid, rule).level[2], 2, 1e-7);
}

TEST(GavelPrograms, LargestThroughput) {
  const Fluid fluid = worked();
  const std::vector<double> worth{4, 1, 3, 1, 2, 1};
  EXPECT_NEAR(worth_of(fluid, worth), 5, 1e-9);
  EXPECT_NEAR(maximise(fluid, worth).of_class(0, 0), 1, 1e-9);
}

TEST(GavelPrograms, GreedyOnOneTypeIsTheProgramsAnswer) {
  Rng rng{5};
  for (int round = 0; round < 30; ++round) {
    Fluid one = fluid_of({static_cast<double>(1 + rng.below(9))}, {});
    std::vector<double> worth;
    for (int i = 0; i < 8; ++i) {
      one.classes.push_back({.rates = {1},
                             .gpus = static_cast<double>(1 + rng.below(4)),
                             .count = static_cast<double>(1 + rng.below(3))});
      worth.push_back(static_cast<double>(1 + rng.below(100)));
    }
    Fluid two = one;  // a second type that nobody can use
    two.gpus.push_back(1);
    std::vector<double> wide;
    for (std::size_t i = 0; i < worth.size(); ++i) {
      two.classes[i].rates.push_back(0);
      wide.insert(wide.end(), {worth[i], 0});
    }
    EXPECT_NEAR(worth_of(one, worth), worth_of(two, wide), 1e-6);
  }
}

TEST(GavelPrograms, MakespanOfTheWorkedExample) {
  const Fluid fluid = worked();
  const Filled filled = fill(fluid, {.value = {1.0 / 400, 1.0 / 300, 1.0 / 100}});
  EXPECT_NEAR(1 / filled.first, 175, 1e-6);
  // agnostic: everybody a third of each type
  const std::vector<double> equal = equal_rates(fluid);
  EXPECT_NEAR(std::max({400 / equal[0], 300 / equal[1], 100 / equal[2]}), 240, 1e-9);
}

TEST(GavelPrograms, FinishTimeFairnessOfTheWorkedExample) {
  const std::vector<FinishTerms> terms{{60, 400, 300}, {0, 300, 225}, {30, 100, 130}};
  const Fluid fluid = worked();
  const Shares fair = fair_finish(fluid, terms);
  EXPECT_NEAR(largest_ratio(fluid, terms, fair), 0.930575, 1e-6);
  const std::vector<double> rates = effective_rates(fluid, fair);
  for (std::size_t i = 0; i < terms.size(); ++i)
    EXPECT_LE((terms[i].elapsed + terms[i].left / rates[i]) / terms[i].isolated, 0.930576);
  expect_legal(fluid, fair);
}

TEST(GavelPrograms, IsolatedShareOfAGangIsSmaller) {
  Fluid fluid = fluid_of({4}, {{1}, {1}});
  fluid.classes[1].gpus = 4;
  // of two jobs each has two GPUs of its own and needs one, or four
  EXPECT_NEAR(isolated_rate(fluid, fluid.classes[0], 2), 1, 1e-12);
  EXPECT_NEAR(isolated_rate(fluid, fluid.classes[1], 2), 0.5, 1e-12);
}

TEST(GavelPrograms, WorkPerDollar) {
  const std::vector<double> prices{3, 1};
  // job 0 on type 0 gives 4/3 per dollar, everything else at most 1
  EXPECT_NEAR(ratio_of(worked(), prices), 4.0 / 3, 1e-9);
  // one job at a time: which type it should be on
  for (std::size_t type = 0; type < 2; ++type)
    EXPECT_NEAR(ratio_of(fluid_of({1, 1}, {{type == 0 ? 4.0 : 2.0, 1}}), prices),
                type == 0 ? 4.0 / 3 : 1, 1e-9);
  const Shares third = best_ratio(fluid_of({1, 1}, {{2, 1}}), prices);
  EXPECT_NEAR(third.of_class(0, 0), 0, 1e-9);  // .667 there, 1 on type 1
}

TEST(GavelPrograms, PromisedRatesComeBeforeTheRatio) {
  const std::vector<double> prices{3, 1};
  const std::vector<double> floors{0, 0, 2};  // only all of type 0 gives that
  const Fluid fluid = worked();
  const Shares best = best_ratio(fluid, prices, floors);
  EXPECT_NEAR(effective_rates(fluid, best)[2], 2, 1e-6);
  expect_legal(fluid, best);
}

TEST(GavelPrograms, WhatCannotBePromisedFallsShortByTheLeastInSum) {
  const Fluid fluid = fluid_of({1}, {{1}, {1}});
  const std::vector<double> wanted{0.5, 1};
  const std::vector<double> rates = reachable(fluid, wanted);
  EXPECT_NEAR(rates[0], 0.5, 1e-6);  // half of the device is all that the first wants
  EXPECT_NEAR(rates[1], 0.5, 1e-6);
  const std::vector<double> modest{0.5, 0.25};
  EXPECT_NEAR(reachable(fluid, modest)[1], 0.25, 1e-6);
}

TEST(GavelPrograms, AHierarchyGivesWhatAJobCannotUseToItsSiblings) {
  // Four devices; two users of equal weight. User A has one job, user B three: A's job can use one
  // device of A's two, so B's three jobs get one each.
  Fluid fluid = fluid_of({4}, {{1}, {1}});
  fluid.classes[1].count = 3;
  FillRule rule{.value = {1, 1}};
  rule.reweigh = [](const std::vector<bool>& frozen, std::vector<double>& weight) {
    weight = {frozen[0] ? 0 : 1.0, frozen[1] ? 0 : 1.0 / 3};
  };
  const Filled filled = fill(fluid, rule);
  EXPECT_NEAR(filled.level[0], 1, 1e-9);
  EXPECT_NEAR(filled.level[1], 1, 1e-9);
  // with two devices only, A's job has one and B's jobs share the other
  fluid.gpus = {2};
  EXPECT_NEAR(fill(fluid, rule).level[1], 1.0 / 3, 1e-9);
}

TEST(GavelPrograms, OneTypeInClosedFormIsTheProgramsAnswer) {
  Rng rng{7};
  for (int round = 0; round < 40; ++round) {
    Fluid one = fluid_of({static_cast<double>(2 + rng.below(12))}, {});
    FillRule rule;
    for (int i = 0; i < 6; ++i) {
      one.classes.push_back({.rates = {1.0 + static_cast<double>(rng.below(5))},
                             .gpus = static_cast<double>(1 + rng.below(4)),
                             .count = static_cast<double>(1 + rng.below(3))});
      rule.value.push_back(1.0 / static_cast<double>(1 + rng.below(9)));
      rule.weight.push_back(static_cast<double>(1 + rng.below(3)));
    }
    Fluid two = one;  // the same devices called two types
    two.gpus = {one.gpus[0] / 2, one.gpus[0] / 2};
    for (FluidClass& same : two.classes) same.rates.push_back(same.rates[0]);
    const Filled a = fill(one, rule);
    const Filled b = fill(two, rule);
    expect_legal(one, a.shares);
    expect_legal(two, b.shares);
    for (std::size_t i = 0; i < rule.value.size(); ++i)
      EXPECT_NEAR(a.level[i], b.level[i], 1e-5 * a.level[i]) << "round " << round << " class " << i;
  }
}

/// Nobody can be raised without lowering somebody who is no better off: the definition of max-min.
TEST(GavelPrograms, FinishTimeFairnessOnOneTypeIsTheProgramsAnswer) {
  Rng rng{11};
  for (int round = 0; round < 40; ++round) {
    Fluid one = fluid_of({static_cast<double>(2 + rng.below(12))}, {});
    std::vector<FinishTerms> terms;
    for (int i = 0; i < 6; ++i) {
      one.classes.push_back({.rates = {1.0 + static_cast<double>(rng.below(5))},
                             .gpus = static_cast<double>(1 + rng.below(4)),
                             .count = static_cast<double>(1 + rng.below(3))});
      terms.push_back({.elapsed = static_cast<double>(rng.below(100)),
                       .left = static_cast<double>(1 + rng.below(400)),
                       .isolated = static_cast<double>(50 + rng.below(300))});
    }
    Fluid two = one;  // the same devices called two types
    two.gpus = {one.gpus[0] / 2, one.gpus[0] / 2};
    for (FluidClass& same : two.classes) same.rates.push_back(same.rates[0]);
    const Shares a = fair_finish(one, terms);
    const Shares b = fair_finish(two, terms);
    expect_legal(one, a);
    const double rho = largest_ratio(two, terms, b);
    EXPECT_NEAR(largest_ratio(one, terms, a), rho, 1e-5 * rho) << "round " << round;
  }
}

TEST(GavelPrograms, WaterFillingIsLexicographicallyFair) {
  Rng rng{11};
  for (int round = 0; round < 40; ++round) {
    Fluid fluid = fluid_of({1.0 + static_cast<double>(rng.below(3)), 2}, {});
    for (int i = 0; i < 5; ++i) {
      fluid.classes.push_back(
          {.rates = {static_cast<double>(rng.below(5)), 0.5 + static_cast<double>(rng.below(3))},
           .gpus = static_cast<double>(1 + rng.below(2))});
    }
    const FillRule rule = las_rule(fluid);
    const Filled filled = fill(fluid, rule);
    expect_legal(fluid, filled.shares);
    for (std::size_t who = 0; who < fluid.classes.size(); ++who) {
      LevelProgram program{fluid, rule.value};
      for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
        program.set_weight(i, i == who ? 1 : 0);
        // those above may fall as far as its own level
        program.set_base(i, std::min(filled.level[i], filled.level[who]) * (1 - 1e-7));
      }
      const auto level = program.solve();
      ASSERT_TRUE(level);
      EXPECT_LT(level->z, 1e-4 * filled.level[who] + 1e-6) << "round " << round << " job " << who;
    }
  }
}

TEST(GavelPrograms, AClassIsAsGoodAsItsJobsOneByOne) {
  Fluid apart = fluid_of({3, 2}, {{4, 1}, {4, 1}, {4, 1}, {2, 1}, {2, 1}, {3, 2}});
  Fluid together = fluid_of({3, 2}, {{4, 1}, {2, 1}, {3, 2}});
  together.classes[0].count = 3;
  together.classes[1].count = 2;
  const Filled a = fill(apart, las_rule(apart));
  const Filled b = fill(together, las_rule(together));
  EXPECT_NEAR(a.level[0], b.level[0], 1e-6);
  EXPECT_NEAR(a.level[3], b.level[1], 1e-6);
  EXPECT_NEAR(a.level[5], b.level[2], 1e-6);
}

TEST(GavelPrograms, SharingADeviceRaisesTheLevel) {
  // one device, two jobs; alone each could run half of the time, beside each other at 0.8 always
  Fluid fluid = fluid_of({1}, {{1}, {1}});
  fluid.pairs.push_back({.first = 0, .second = 1, .first_rates = {0.8}, .second_rates = {0.8}});
  const Filled filled = fill(fluid, {.value = {1, 1}});
  EXPECT_NEAR(filled.first, 0.8, 1e-9);
  EXPECT_NEAR(filled.shares.of_pair(0, 0), 1, 1e-6);
  expect_legal(fluid, filled.shares);
}

TEST(GavelPrograms, WhoCanRunNowhereDoesNotHoldTheOthersBack) {
  const Fluid fluid = fluid_of({1, 1}, {{0, 0}, {1, 1}, {1, 0}});
  const Filled filled = fill(fluid, {.value = {1, 1, 1}});
  EXPECT_EQ(filled.level[0], 0);
  EXPECT_NEAR(filled.level[1], 1, 1e-6);
  EXPECT_NEAR(filled.level[2], 1, 1e-6);
}

}  // namespace
}  // namespace berth::gavel
