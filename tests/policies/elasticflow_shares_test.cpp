// ElasticFlow's shares: the worked examples, and the step function against slot by slot.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/rng.h"
#include "policies/elasticflow/shares.h"

namespace berth::elasticflow {
namespace {

const SpeedCurve kCurve{{1, 2, 4, 8}, {1, 1.8, 3, 4.4}};
constexpr double kSlot = 100;

std::int64_t gpus_of(const std::optional<Share>& share) {
  return share ? kCurve.gpus[share->size] : 0;
}

TEST(Shares, AreTheFewestGpusThatMeetTheDeadline) {
  const FreeGpus free{8};
  const auto needs = [&](std::int64_t slots) {
    return gpus_of(free.share({&kCurve, 1000, slots}, kSlot));
  };
  EXPECT_EQ(needs(10), 1);
  EXPECT_EQ(needs(6), 2);
  EXPECT_EQ(needs(4), 4);
  EXPECT_EQ(needs(3), 8);
  EXPECT_EQ(needs(2), 0);
}

TEST(Shares, FollowWhatIsFree) {
  // With four at most: 180 + 180 + 300 + 300 = 960 of 1000.
  const FreeGpus free{{{2, 2}, {2, 8}}};
  const auto share = free.share({&kCurve, 1000, 4}, kSlot);
  ASSERT_TRUE(share.has_value());
  EXPECT_EQ(gpus_of(share), 8);
  EXPECT_EQ(share->stretches, (std::vector<Stretch>{{2, 2}, {2, 8}}));
}

TEST(Shares, AreTakenInOrderOfDeadline) {
  FreeGpus free{8};
  for (int job = 0; job < 2; ++job) {
    const auto share = free.share({&kCurve, 1000, 4}, kSlot);
    ASSERT_EQ(gpus_of(share), 4);
    ASSERT_TRUE(free.try_take(*share));
  }
  EXPECT_EQ(free.now(), 0);
  const auto small = free.share({&kCurve, 500, 6}, kSlot);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->stretches, (std::vector<Stretch>{{4, 0}, {2, 4}}));
  EXPECT_FALSE(free.share({&kCurve, 1000, 6}, kSlot).has_value());  // 880 with all eight
}

TEST(Shares, LeaveARestAfterSomeSlots) {
  const Share share{.size = 2, .stretches = {{4, 0}, {2, 4}, {3, 2}}};
  EXPECT_EQ(share.after(5).stretches, (std::vector<Stretch>{{1, 4}, {3, 2}}));
  EXPECT_TRUE(share.after(9).stretches.empty());
  EXPECT_NEAR(share.work(kCurve, kSlot), 2 * 300 + 3 * 180, 1e-3);
  FreeGpus few{2};
  EXPECT_FALSE(few.try_take(share));
  EXPECT_EQ(few.now(), 2);
}

TEST(Shares, CostMoreGpuTimeTheWiderTheyAre) {
  const std::vector<double> published{10, 11.111, 13.333, 18.182};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(kCurve.gpus[i] * 1000 / kCurve.speed[i] / kSlot, published[i], 5e-4);
}

TEST(Growth, GoesToWhomItSavesMost) {
  std::vector<Grower> jobs{{.curve = &kCurve, .base = 0, .size = 1},
                           {.curve = &kCurve, .base = 1, .size = 2}};
  EXPECT_NEAR(gain_of_growth(jobs[0]), 0.8, 1e-12);
  EXPECT_NEAR(gain_of_growth(jobs[1]), 0.6667, 1e-4);
  EXPECT_EQ(grow(jobs, 1), 0);
  EXPECT_EQ(jobs[0].size, 2U);
  EXPECT_NEAR(gain_of_growth(jobs[0]), 0.6, 1e-12);
  EXPECT_EQ(grow(jobs, 4), 0);  // b to four, then a to four
  EXPECT_EQ(jobs[0].size, 3U);
  EXPECT_EQ(jobs[1].size, 3U);
}

TEST(Growth, StartsWaitingJobsBeforeItDoublesOthers) {
  const SpeedCurve linear{{1, 2, 4}, {1, 2, 4}};
  std::vector<Grower> jobs{{.curve = &linear, .base = 0, .size = 1},
                           {.curve = &linear, .base = 0, .size = 0}};
  EXPECT_EQ(grow(jobs, 1), 0);
  EXPECT_EQ(jobs[1].size, 1U);
  EXPECT_EQ(grow(jobs, 100), 94);  // both as large as they may be
}

// Slot by slot, as the definition says.
std::optional<std::vector<std::int64_t>> share_by_slot(const SpeedCurve& curve, double work,
                                                       std::size_t slots,
                                                       const std::vector<std::int64_t>& free) {
  for (const std::int32_t k : curve.gpus) {
    std::vector<std::int64_t> used;
    double left = work;
    for (std::size_t t = 0; t < slots && left > 1e-6; ++t) {
      const std::int64_t most = std::min<std::int64_t>(k, free[t]);
      const std::int64_t here =
          most == 0 ? 0
                    : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
      used.push_back(here);
      if (here > 0)
        left -= kSlot * curve.speed[static_cast<std::size_t>(
                            std::countr_zero(static_cast<std::uint64_t>(here)))];
    }
    if (left <= 1e-6) return used;
  }
  return std::nullopt;
}

TEST(Shares, AreThoseOfEverySingleSlot) {
  Rng rng{9};
  for (int round = 0; round < 200; ++round) {
    FreeGpus steps{16};
    std::vector<std::int64_t> slots(60, 16);
    for (int job = 0; job < 12; ++job) {
      const double work = 50 + static_cast<double>(rng.below(3000));
      const std::size_t deadline = 1 + rng.below(50);
      const auto share = steps.share({&kCurve, work, static_cast<std::int64_t>(deadline)}, kSlot);
      const auto expected = share_by_slot(kCurve, work, deadline, slots);
      ASSERT_EQ(share.has_value(), expected.has_value()) << "round " << round;
      if (!share) continue;
      std::vector<std::int64_t> used;
      for (const Stretch& one : share->stretches)
        used.insert(used.end(), static_cast<std::size_t>(one.slots), one.gpus);
      ASSERT_EQ(used, *expected) << "round " << round;
      for (std::size_t t = 0; t < used.size(); ++t) slots[t] -= used[t];
      ASSERT_TRUE(steps.try_take(*share));
      std::vector<std::int64_t> left;
      for (const Stretch& one : steps.steps())
        left.insert(left.end(), static_cast<std::size_t>(std::min<std::int64_t>(one.slots, 60)),
                    one.gpus);
      left.resize(60);
      ASSERT_EQ(left, slots);
    }
  }
}

}  // namespace
}  // namespace berth::elasticflow
