// The parts of A_online without the engine: windows, configurations, the batch step by prices and
// exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/rng.h"
#include "policies/aonline/batch.h"
#include "policies/aonline/windows.h"
#include "policies/common/elastic.h"

namespace berth::aonline {
namespace {

TEST(AonlineWindows, DoubleUpToTheLongest) {
  const WindowRule rule{.growth = 2, .longest = 4};
  const Window second = rule.after(Window{});
  EXPECT_EQ(second, (Window{2, 2}));
  EXPECT_EQ(rule.after(second), (Window{4, 4}));
  EXPECT_EQ(rule.after({4, 4}), (Window{8, 4}));
  EXPECT_EQ((WindowRule{.growth = 1.5, .longest = 64}.after({3, 3})), (Window{6, 5}));
}

TEST(AonlineConfigurations, SizesDoubleBetweenTheEnds) {
  EXPECT_EQ(doubling_sizes({1, 8}, 3), (std::vector<std::int32_t>{1, 2, 3, 4, 8}));
  EXPECT_EQ(doubling_sizes({3, 6}, 3), (std::vector<std::int32_t>{3, 4, 6}));
  EXPECT_EQ(doubling_sizes({4, 4}, 4), (std::vector<std::int32_t>{4}));
}

TEST(AonlineConfigurations, WhatNothingBeatsIsKept) {
  const std::vector<Configuration> ways{{0, 1, 4, 0}, {0, 2, 2, 0}, {0, 3, 2, 0}, {1, 3, 2, 0}};
  // Three GPUs for two slots are no better than two GPUs for two; another type is another matter.
  EXPECT_EQ(unbeaten(ways), (std::vector<Configuration>{ways[0], ways[1], ways[3]}));
  EXPECT_EQ(unbeaten({ways[0], ways[0]}).size(), 1U);
  EXPECT_EQ(unbeaten({{0, 2, 2, 1}, {0, 2, 2, 0}}), (std::vector<Configuration>{{0, 2, 2, 0}}));
}

struct Released {
  std::int64_t release = 0;
  BatchJob job;
};

/// a, b, c, d of the worked example.
std::vector<Released> example() {
  return {{0, {.weight = 3, .ways = {{0, 1, 2, 0}, {0, 2, 1, 0}}}},
          {0, {.weight = 6, .ways = {{0, 2, 2, 0}, {0, 4, 1, 0}}}},
          {1, {.weight = 5, .ways = {{0, 4, 2, 0}}}},
          {1, {.weight = 1, .ways = {{0, 1, 1, 0}}}}};
}

/// Completion times of jobs planned window by window on 4 GPUs.
std::vector<std::int64_t> run_windows(const std::vector<Released>& jobs,
                                      const BatchOptions& options) {
  std::vector<std::int64_t> done(jobs.size(), 0);
  const WindowRule rule;
  for (Window window; std::ranges::count(done, 0) > 0; window = rule.after(window)) {
    std::vector<BatchJob> batch;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (done[i] > 0 || jobs[i].release > window.start) continue;
      batch.push_back(jobs[i].job);
      who.push_back(i);
    }
    const BatchPlan plan = plan_batch(Room{{4}, 0, window.length}, batch, options);
    for (std::size_t k = 0; k < who.size(); ++k) {
      if (const auto& choice = plan.choices[k])
        done[who[k]] = window.start + choice->start + batch[k].ways[choice->way].slots;
    }
  }
  return done;
}

TEST(AonlineBatch, WorkedExampleExactly) {
  // b in [1, 2) weighs 6 against 4 for a and d; c in [2, 4); a and d in [4, 5): 15 + 12 + 20 + 5 =
  // 52.
  EXPECT_EQ(run_windows(example(), {}), (std::vector<std::int64_t>{5, 2, 4, 5}));
}

TEST(AonlineBatch, WorkedExampleByPrices) {
  // a and d in [1, 2), b in [2, 3), c in [4, 6): 6 + 2 + 18 + 30 = 56.
  EXPECT_EQ(run_windows(example(), {.exact_jobs = 0, .steps = 0}),
            (std::vector<std::int64_t>{2, 3, 6, 2}));
}

TEST(AonlineBatch, EqualWeightsTakeTheSmallerSumOfCompletionTimes) {
  // Two jobs of one GPU in two slots, or two GPUs in one: both done after slots 1 and 2 is 3,
  // side by side it is 4.
  const BatchJob job{.weight = 1, .ways = {{0, 1, 2, 0}, {0, 2, 1, 0}}};
  const BatchPlan plan = plan_batch(Room{{2}, 0, 2}, {job, job}, {});
  EXPECT_DOUBLE_EQ(plan.weight, 2);
  EXPECT_EQ(plan.completions, 3);
}

TEST(AonlineBatch, ChoosesTheTypeOnWhichItIsDoneAndLeavesTheRareOneFree) {
  // The first runs on either type, equally long; the second only on type 1.
  const BatchJob either{.weight = 1, .ways = {{0, 2, 1, 0}, {1, 2, 1, 0}}};
  const BatchJob only{.weight = 1, .ways = {{1, 2, 1, 0}}};
  for (const std::size_t exact : {0U, 8U}) {
    const BatchPlan plan =
        plan_batch(Room{{2, 2}, 0, 1}, {either, only}, {.exact_jobs = exact, .steps = 1000});
    EXPECT_DOUBLE_EQ(plan.weight, 2) << exact;
    EXPECT_EQ(plan.choices[0], (Choice{0, 0})) << exact;
  }
}

TEST(AonlineBatch, ParameterServersAreAResourceOfTheirOwn) {
  const BatchJob job{.weight = 1, .ways = {{0, 1, 1, 2}}};
  for (const std::size_t exact : {0U, 8U}) {  // room for one parameter server pair at a time
    const BatchPlan plan =
        plan_batch(Room{{4}, 2, 2}, {job, job, job}, {.exact_jobs = exact, .steps = 1000});
    EXPECT_DOUBLE_EQ(plan.weight, 2) << exact;
    EXPECT_EQ(plan.completions, 3) << exact;
  }
}

TEST(AonlineBatch, WhatIsStillHeldFromBeforeIsPlannedAround) {
  Room room{{4}, 0, 4};
  room.occupy({0, 3, 2, 0});
  room.occupy({0, 4, 1, 0});  // a late job: over its cells, more is held than there is
  const BatchJob job{.weight = 1, .ways = {{0, 2, 1, 0}}};
  for (const std::size_t exact : {0U, 8U}) {
    const BatchPlan plan = plan_batch(room, {job}, {.exact_jobs = exact, .steps = 1000});
    EXPECT_EQ(plan.choices[0], (Choice{0, 2})) << exact;
  }
}

std::vector<BatchJob> random_batch(Rng& rng, std::size_t jobs) {
  std::vector<BatchJob> batch(jobs);
  for (BatchJob& job : batch) {
    job.weight = 1 + static_cast<double>(rng.below(9));
    const auto work = 1 + static_cast<std::int64_t>(rng.below(8));
    for (const std::int64_t gpus : {1, 2, 4}) {
      if (rng.below(3) > 0 || job.ways.empty())
        job.ways.push_back(
            {static_cast<std::uint32_t>(rng.below(2)), gpus, (work + gpus - 1) / gpus, 0});
    }
  }
  return batch;
}

void expect_legal(const BatchPlan& plan, const std::vector<BatchJob>& batch, const Room& empty) {
  Room room = empty;
  double weight = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!plan.choices[i]) continue;
    weight += batch[i].weight;
    const Configuration& way = batch[i].ways[plan.choices[i]->way];
    ASSERT_GE(plan.choices[i]->start, 0);
    ASSERT_LE(plan.choices[i]->start + way.slots, room.slots()) << "inside the window";
    room.take(way, plan.choices[i]->start);
  }
  for (std::size_t r = 0; r < room.resources(); ++r) {
    for (std::int64_t t = 0; t < room.slots(); ++t) ASSERT_GE(room.free(r, t), 0) << "capacity";
  }
  EXPECT_DOUBLE_EQ(weight, plan.weight);
}

/// Every configuration and start of every job.
void try_everything(const std::vector<BatchJob>& batch, std::size_t i, Room& room, BatchPlan& now,
                    BatchPlan& best) {
  if (i == batch.size()) {
    if (now.weight > best.weight ||
        (now.weight == best.weight && now.completions < best.completions))
      best = now;
    return;
  }
  try_everything(batch, i + 1, room, now, best);
  for (const Configuration& way : batch[i].ways) {
    room.for_each_start(way, [&](std::int64_t start) {
      room.take(way, start);
      now.weight += batch[i].weight;
      now.completions += start + way.slots;
      try_everything(batch, i + 1, room, now, best);
      now.completions -= start + way.slots;
      now.weight -= batch[i].weight;
      room.give(way, start);
    });
  }
}

TEST(AonlineBatch, TheExactStepEqualsTryingEverything) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng{seed};
    const auto batch = random_batch(rng, 2 + rng.below(3));
    Room room{{2, 3}, 0, 1 + static_cast<std::int64_t>(rng.below(4))};
    const BatchPlan ours = plan_batch(room, batch, {.exact_jobs = 8, .steps = 1'000'000});
    BatchPlan now, best;
    try_everything(batch, 0, room, now, best);
    ASSERT_DOUBLE_EQ(ours.weight, best.weight) << "seed " << seed;
    ASSERT_EQ(ours.completions, best.completions) << "seed " << seed;
    expect_legal(ours, batch, room);
  }
}

TEST(AonlineBatch, PricesGiveLegalPlansThatLeaveNobodyOutWhoFits) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng{seed};
    const auto batch = random_batch(rng, 3 + rng.below(20));
    const Room empty{{3, 4}, 0, 1 + static_cast<std::int64_t>(rng.below(10))};
    const BatchPlan plan = plan_by_prices(empty, batch);
    expect_legal(plan, batch, empty);
    Room room = empty;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (plan.choices[i]) room.take(batch[i].ways[plan.choices[i]->way], plan.choices[i]->start);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      for (std::size_t w = 0; w < batch[i].ways.size(); ++w) {
        const Configuration& way = batch[i].ways[w];
        if (!plan.choices[i]) {
          ASSERT_FALSE(room.earliest(way, 0)) << "seed " << seed << ", job " << i;
        } else if (plan.choices[i]->way == w) {  // compact: nobody could start earlier as he is
          room.give(way, plan.choices[i]->start);
          ASSERT_EQ(room.earliest(way, 0), plan.choices[i]->start) << "seed " << seed;
          room.take(way, plan.choices[i]->start);
        }
      }
    }
  }
}

TEST(AonlineBatch, TheSearchEndsAtItsNumberOfStepsWithSomethingAtLeastAsGood) {
  Rng rng{7};
  const auto batch = random_batch(rng, 8);
  const Room room{{3, 4}, 0, 8};
  const BatchPlan prices = plan_by_prices(room, batch);
  for (const std::int64_t steps : {0, 10, 100, 10'000}) {
    const BatchPlan plan = plan_batch(room, batch, {.exact_jobs = 8, .steps = steps});
    EXPECT_GE(plan.weight, prices.weight);
    expect_legal(plan, batch, room);
  }
}

}  // namespace
}  // namespace berth::aonline
