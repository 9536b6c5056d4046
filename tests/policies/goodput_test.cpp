// Goodput: the table of the specification by exhaustive search, the fifty points against it, and
// the seven parameters learnt from what was seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policies/common/restart_factor.h"
#include "policies/goodput/batch_choice.h"
#include "policies/goodput/goodput_tables.h"
#include "policies/goodput/round_clock.h"
#include "support/goodput.h"

namespace berth::test {
namespace {

using namespace goodput;

struct TableRow {
  double phi;
  Gang gang;
  std::int32_t m;
  double throughput, efficiency, goodput, speedup;
};

TEST(Goodput, TheTableByExhaustiveSearch) {
  const std::vector<TableRow> rows{
      {1000, {1, 1}, 158, 431.694, .9741, 420.5102, 1},
      {1000, {1, 2}, 113, 816.6991, .9201, 751.4165, 1.7869},
      {1000, {1, 4}, 81, 1518.6017, .8520, 1293.7936, 3.0767},
      {1000, {2, 8}, 88, 2700.1933, .6620, 1787.4519, 4.2507},
      {1000, {4, 16}, 77, 4639.454, .5054, 2344.6703, 5.5758},
      {10000, {1, 1}, 256, 455.516, .9875, 449.8309, 1},
      {10000, {1, 4}, 253, 1818.4506, .9197, 1672.4725, 3.7180},
      {10000, {2, 8}, 228, 3491.3583, .8566, 2990.5681, 6.6482},
      {10000, {4, 16}, 191, 6582.7222, .7757, 5106.45, 11.3519},
  };
  for (const TableRow& row : rows) {
    SCOPED_TRACE(fmt::format("phi {} ({}, {})", row.phi, row.gang.nodes, row.gang.gpus));
    const BatchChoice best = exhaustive(row.gang, row.phi);
    EXPECT_EQ(best.per_step, row.m);
    EXPECT_EQ(best.extra_steps, 0);
    const double total = best.per_step * row.gang.gpus;
    EXPECT_NEAR(total / kParams.iteration_seconds(row.gang, best.per_step, 0), row.throughput,
                1e-3);
    EXPECT_NEAR(statistical_efficiency(row.phi, 128, total), row.efficiency, 5e-5);
    EXPECT_NEAR(best.goodput, row.goodput, 1e-3);
    EXPECT_NEAR(best.goodput / exhaustive({1, 1}, row.phi).goodput, row.speedup, 5e-5);
    // The fifty points lose at most 0.4 %.
    EXPECT_GE(fifty(row.gang, row.phi).goodput, row.goodput * 0.996);
    EXPECT_LE(fifty(row.gang, row.phi).goodput, row.goodput * (1 + 1e-6));
  }
}

TEST(Goodput, EfficiencyFallsWithTheBatch) {
  EXPECT_NEAR(statistical_efficiency(1000, 128, 1024), 0.557312, 1e-6);
  // Nobody measured it: only the first batch counts.
  EXPECT_DOUBLE_EQ(statistical_efficiency(0, 128, 1024), 0.125);
  EXPECT_DOUBLE_EQ(statistical_efficiency(std::nan(""), 128, 1024), 0.125);
}

TEST(Goodput, WithoutNoiseTheFirstBatchIsBest) {
  for (const std::int32_t gpus : {1, 2, 4, 8, 16}) {
    const BatchChoice best = fifty({gpus > 4 ? 2 : 1, gpus}, 0);
    EXPECT_EQ(best.extra_steps, 0);
    EXPECT_EQ(best.per_step, (128 + gpus - 1) / gpus);
  }
}

TEST(Goodput, NeverFallsWithMoreGpusWhenSynchronisingIsFree) {
  ThroughputParams free = kParams;
  free.alpha_local = free.alpha_node = free.beta_local = free.beta_node = 0;
  for (const double phi : {100.0, 1000.0, 30000.0}) {
    double before = 0;
    for (std::int32_t gpus = 1; gpus <= 12; ++gpus) {
      const double now = exhaustive({1, gpus}, phi, free).goodput;
      EXPECT_GE(now, before) << gpus << " GPUs, phi " << phi;
      before = now;
    }
  }
}

TEST(Goodput, SubBatchesWhereMemoryIsShort) {
  BatchRange range = kRange;
  range.most_per_step = 32;  // M0 = 128 on one GPU takes four sub-batches
  const auto seconds = [](std::int32_t m, std::int32_t s) {
    return kParams.iteration_seconds({1, 1}, m, s);
  };
  const BatchChoice one = best_batch(range, 1, 100, seconds);
  EXPECT_EQ(one.per_step, 32);
  EXPECT_GE(one.extra_steps, 3);
  range.accumulates = false;
  EXPECT_FALSE(best_batch(range, 1, 100, seconds).is_valid()) << "one GPU cannot hold M0";
  EXPECT_TRUE(best_batch(range, 4, 100, seconds).is_valid());
}

TEST(Goodput, OneGpuBeyondTheFirstBatchTakesTwoSubBatches) {
  BatchRange range = kRange;
  range.two_on_one = true;
  const auto seconds = [](std::int32_t m, std::int32_t s) {
    return kParams.iteration_seconds({1, 1}, m, s);
  };
  const BatchChoice best = best_batch(range, 1, 1e9, seconds);
  EXPECT_GE(best.extra_steps, 1);
  EXPECT_GT(best.per_gpu(), 128);
}

TEST(Goodput, MoreGpusThanTheLargestBatchHasSamplesForCannotBeUsed) {
  BatchRange range = kRange;
  range.least_per_step = 512;
  EXPECT_FALSE(best_batch(range, 9, 100, [](auto, auto) { return 1.0; }).is_valid());
}

TEST(RestartFactor, OfTheSpecification) {
  EXPECT_NEAR(restart_factor(600, 1, 30), 0.904762, 1e-6);
  EXPECT_EQ(restart_factor(10, 1, 30), 0);
}

std::vector<StepTimes> shown(std::vector<Gang> gangs, std::vector<double> sizes) {
  std::vector<StepTimes> seen;
  for (const Gang& gang : gangs) {
    for (const double m : sizes)
      seen.push_back({gang, m, kParams.grad_seconds(m), kParams.optimizer_step_seconds(gang, m)});
  }
  return seen;
}

TEST(ThroughputFit, ExplainsNoiseFreeTimes) {
  const auto seen = shown({{1, 1}, {1, 2}, {1, 4}, {2, 8}, {4, 16}}, {32, 64, 128});
  EXPECT_NEAR(fit_loss(kParams, seen), .0011, 5e-5);
  const ThroughputParams fit = fit_throughput(seen, Rng{1});
  EXPECT_LT(fit_loss(fit, seen), .0024);
  for (const StepTimes& step : seen) {
    EXPECT_NEAR(fit.grad_seconds(step.per_step) / step.accumulate_seconds, 1, .004);
    EXPECT_NEAR(fit.optimizer_step_seconds(step.gang, step.per_step) / step.optimizer_seconds, 1,
                .004);
  }
}

TEST(ThroughputFit, IsOptimisticAboutWhatNobodySaw) {
  // One GPU: synchronising is free; one size: half of the time is fixed.
  const ThroughputParams one = fit_throughput(shown({{1, 1}}, {64}), Rng{1});
  EXPECT_EQ(one.sync_seconds({1, 4}), 0);
  EXPECT_EQ(one.sync_seconds({2, 8}), 0);
  EXPECT_NEAR(one.alpha_grad, kParams.grad_seconds(64) / 2, 1e-12);
  // One node: several are believed to be a tenth slower; two GPUs: no growth beyond.
  const ThroughputParams two = fit_throughput(shown({{1, 1}, {1, 2}}, {32, 64}), Rng{1});
  EXPECT_NEAR(two.sync_seconds({2, 2}), 1.1 * two.sync_seconds({1, 2}), 1e-12);
  EXPECT_EQ(two.sync_seconds({1, 4}), two.sync_seconds({1, 2}));
  EXPECT_GT(two.sync_seconds({1, 2}), 0);
}

TEST(ThroughputFit, DependsOnNothingButWhatWasSeenAndTheSeed) {
  const auto seen = shown({{1, 1}, {1, 2}, {2, 8}}, {32, 64});
  EXPECT_EQ(fit_throughput(seen, Rng{7}).alpha_node, fit_throughput(seen, Rng{7}).alpha_node);
}

TEST(RoundClock, LooksLessOftenWhileNothingHappens) {
  RoundClock clock(std::chrono::seconds{60});
  EXPECT_FALSE(clock.is_due(seconds_to_time(0)));
  clock.stir(seconds_to_time(70));
  EXPECT_EQ(clock.next(), seconds_to_time(120));
  clock.rest(seconds_to_time(120), true, 32);
  EXPECT_EQ(clock.next(), seconds_to_time(180));
  clock.rest(seconds_to_time(180), false, 32);
  EXPECT_EQ(clock.next(), seconds_to_time(300));
  clock.rest(seconds_to_time(300), false, 32);
  EXPECT_EQ(clock.next(), seconds_to_time(540));
  clock.stir(seconds_to_time(360));
  EXPECT_TRUE(clock.is_due(seconds_to_time(360)));
}

Table table_of(const RateModel& rates, const Subject& subject, double phi) {
  return believed_table(rates, subject, noise_step(rates, subject, phi));
}

// A job whose batch may not change has its own divided over the GPUs, whole samples each.
TEST(GoodputTable, AFixedBatchIsDividedOverTheGpus) {
  const Cluster cluster = *parse_cluster_short("2x4");
  const RateModel rates(ProfileSet{}, cluster, Effects{});
  const Table table =
      table_of(rates, {.profile = ProfileSet::fallback(), .pool = PoolId{0}, .wanted = 2}, 0);
  EXPECT_EQ(table.best(1, false).per_gpu(), 64);  // 2 x 32
  EXPECT_EQ(table.best(4, false).per_gpu(), 16);
  EXPECT_EQ(table.best(3, false).per_gpu(), 22);
  EXPECT_GT(table.goodput(4, false), table.goodput(2, false));
  EXPECT_FALSE(table.best(0, false).is_valid());
}

// Where only a sub-batch is limited the total goes up to 32 times the first one.
TEST(GoodputTable, WithoutALimitTheBatchGrowsThirtyTwoFold) {
  ProfileSet profiles;
  profiles.edit(ProfileSet::fallback()).batch_limits = {8, 64, 0};
  const RateModel rates(profiles, *parse_cluster_short("2x4"), Effects{});
  const BatchRange range =
      batch_range(rates, {.profile = ProfileSet::fallback(), .pool = PoolId{0}});
  EXPECT_EQ(range.first, 32);
  EXPECT_EQ(range.most_total, 1024);
}

TEST(GoodputTable, KnownLimitsLetTheBatchGrow) {
  ProfileSet profiles;
  profiles.edit(ProfileSet::fallback()).batch_limits = {8, 64, 1024};
  const Cluster cluster = *parse_cluster_short("2x4");
  const RateModel rates(profiles, cluster, Effects{});
  const Subject subject{.profile = ProfileSet::fallback(), .pool = PoolId{0}};
  const std::int32_t quiet = table_of(rates, subject, 10).best(4, false).per_gpu();
  const std::int32_t noisy = table_of(rates, subject, 1e6).best(4, false).per_gpu();
  EXPECT_EQ(quiet, 8) << "where a sample in a large batch is worth little, M0 = 32 is kept";
  EXPECT_GT(noisy, 64) << "beyond what one sub-batch holds";
  EXPECT_LE(4 * noisy, 1024);
  Subject fixed = subject;
  fixed.adaptation = Adaptation::Fixed;
  EXPECT_EQ(table_of(rates, fixed, 1e6).best(4, false).per_gpu(), 8);
}

}  // namespace
}  // namespace berth::test
