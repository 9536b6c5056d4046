// The arbiter's auction and the rules of migration, without a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "policies/agents/auction.h"
#include "policies/common/migration.h"

namespace berth::agents {
namespace {

using testing::ElementsAre;

double rho(double elapsed, double work, double speed, double ideal) {
  return (elapsed + work / speed) / ideal;
}

// Four free GPUs. X holds none; Y holds two and may add to them.
std::vector<Bidder> x_and_y() {
  const Bidder x{1e6,
                 {{1, rho(600, 7200, 1, 1800)},
                  {2, rho(600, 7200, 1.9, 1800)},
                  {4, rho(600, 7200, 3.6, 1800)}}};
  const Bidder y{rho(300, 2400, 1.8, 1200),
                 {{1, rho(300, 2400, 2.6, 1200)},
                  {2, rho(300, 2400, 3.2, 1200)},
                  {4, rho(300, 2400, 4.2, 1200)}}};
  return {x, y};
}

TEST(Auction, WorkedExample) {
  const auto bidders = x_and_y();
  EXPECT_NEAR(bidders[0].bids[0].badness, 4.3333, 5e-5);
  EXPECT_NEAR(bidders[0].bids[1].badness, 2.4386, 5e-5);
  EXPECT_NEAR(bidders[0].bids[2].badness, 1.4444, 5e-5);
  EXPECT_NEAR(bidders[1].badness_now, 1.3611, 5e-5);
  EXPECT_NEAR(bidders[1].bids[0].badness, 1.0192, 5e-5);
  EXPECT_NEAR(bidders[1].bids[1].badness, 0.8750, 5e-5);
  // X4/Y0: 1.4444 * 1.3611 = 1.9660 < X2/Y2: 2.4386 * 0.8750 = 2.1338
  EXPECT_THAT(solve_exactly(bidders, 4), ElementsAre(2U, std::nullopt));
  // greedy alone ends at X2/Y2; the pairwise pass finds the better split
  EXPECT_THAT(solve_greedily(bidders, 4), ElementsAre(2U, std::nullopt));
}

std::vector<Bidder> random_bidders(Rng& rng, std::size_t count) {
  std::vector<Bidder> bidders(count);
  for (Bidder& bidder : bidders) {
    bidder.badness_now = 1 + static_cast<double>(rng.below(1000)) / 100;
    double badness = bidder.badness_now;
    std::int32_t gpus = 0;
    for (std::size_t i = 1 + rng.below(kMaxBids); i > 0; --i) {
      gpus += static_cast<std::int32_t>(1 + rng.below(4));
      badness *= 0.5 + static_cast<double>(rng.below(499)) / 1000;
      bidder.bids.push_back({gpus, badness});
    }
  }
  return bidders;
}

double brute_force(const std::vector<Bidder>& bidders, std::int32_t gpus) {
  std::function<double(std::size_t, std::int32_t)> best = [&](std::size_t i, std::int32_t left) {
    if (i == bidders.size()) return 0.0;
    double most = best(i + 1, left);
    for (const Bid& bid : bidders[i].bids) {
      if (bid.gpus <= left)
        most = std::max(
            most, std::log(bidders[i].badness_now / bid.badness) + best(i + 1, left - bid.gpus));
    }
    return most;
  };
  return best(0, gpus);
}

TEST(AuctionProperty, ExactIsExactAndGreedyIsFeasibleAndClose) {
  Rng rng(9);
  double exact_sum = 0;
  double greedy_sum = 0;
  for (int round = 0; round < 300; ++round) {
    const auto bidders = random_bidders(rng, 1 + rng.below(6));
    const auto gpus = static_cast<std::int32_t>(rng.below(25));
    const Choice exact = solve_exactly(bidders, gpus);
    const Choice greedy = solve_greedily(bidders, gpus);
    EXPECT_LE(gpus_sold(bidders, exact), gpus);
    EXPECT_LE(gpus_sold(bidders, greedy), gpus);
    EXPECT_NEAR(welfare(bidders, exact), brute_force(bidders, gpus), 1e-9);
    EXPECT_LE(welfare(bidders, greedy), welfare(bidders, exact) + 1e-9);
    exact_sum += welfare(bidders, exact);
    greedy_sum += welfare(bidders, greedy);
  }
  EXPECT_GT(greedy_sum, 0.95 * exact_sum);
}

TEST(AuctionProperty, ManyBiddersNeverOversell) {
  Rng rng(10);
  for (int round = 0; round < 20; ++round) {
    const auto bidders = random_bidders(rng, 60);
    const Choice choice = solve_auction(bidders, 40);
    EXPECT_LE(gpus_sold(bidders, choice), 40);
    for (std::size_t i = 0; i < bidders.size(); ++i) {
      if (!choice[i]) continue;
      EXPECT_LT(bidders[i].bids[*choice[i]].badness,
                bidders[i].badness_now);  // nobody is made worse
    }
  }
}

// A winner pays for what it keeps from others: nothing where there is enough for all.
TEST(Auction, TheHiddenPaymentIsTheHarmDoneToOthers) {
  const auto bidders = x_and_y();
  const auto enough = payments(bidders, 8, solve_auction(bidders, 8));
  EXPECT_THAT(enough, ElementsAre(1, 1));
  const Choice choice = solve_auction(bidders, 4);
  const auto scarce = payments(bidders, 4, choice);
  // Y alone would have taken all four: rho 0.7262 instead of 1.3611
  EXPECT_NEAR(scarce[0], 0.72619 / 1.36111, 1e-4);
  EXPECT_EQ(scarce[1], 1);
}

TEST(Auction, SameInputSameAnswer) {
  Rng rng(11);
  const auto bidders = random_bidders(rng, 40);
  EXPECT_EQ(solve_auction(bidders, 50), solve_auction(bidders, 50));
}

}  // namespace
}  // namespace berth::agents

namespace berth {
namespace {

bool moves(double left, double now, double there, double cost) {
  return should_migrate({left, now, there, cost}, {});
}

TEST(Migration, WorkedExamples) {
  EXPECT_TRUE(moves(600, 1.27, 1, 60));    // 762 against 660
  EXPECT_FALSE(moves(300, 1.27, 1, 60));   // 381 against 360: 5.5 %
  EXPECT_FALSE(moves(7200, 1.05, 1, 60));  // 7560 against 7260: 4.0 %
  EXPECT_TRUE(moves(7200, 1.4, 1, 120));   // 10080 against 7320
  EXPECT_FALSE(moves(100, 1.25, 1, 0));    // 20 % but only 25 s
}

TEST(Migration, WithoutAPredictionAJobRunsAsLongAgain) {
  EXPECT_EQ(seconds_left_or_age(std::nullopt, 500), 500);
  EXPECT_EQ(seconds_left_or_age(20.0, 500), 20);
}

TEST(Defragmentation, EmptiesTheCheapestServerIfItPays) {
  const std::vector<EmptyingChoice> choices{
      {.id = 1,
       .tenants = {{JobId{1}, 2, 60}, {JobId{2}, 1, 60, true}},
       .tenants_fit_elsewhere = true},  // 180 GPU-seconds
      {.id = 2, .tenants = {{JobId{3}, 1, 10}}, .tenants_fit_elsewhere = false},
      {.id = 3, .tenants = {{JobId{4}, 4, 60}}, .tenants_fit_elsewhere = true}};
  const auto decision = choose_to_empty(choices, 100, 4);  // 400 > 2 * 180
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->id, 1U);
  EXPECT_THAT(decision->moves, testing::ElementsAre(JobId{2}, JobId{1}));  // small, free ones first
  EXPECT_FALSE(choose_to_empty(choices, 90, 4));  // 360 is not more than 360
  EXPECT_FALSE(choose_to_empty({}, 1000, 4));
}

TEST(Defragmentation, PairsThatHurtEachOtherPart) {
  EXPECT_TRUE(should_part(1.25, 1.3));
  EXPECT_FALSE(should_part(1.25, 1.1));
}

}  // namespace
}  // namespace berth
