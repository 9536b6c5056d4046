// Themis without an engine: rho, splitting an app's GPUs, bids, placement, time fractions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "policies/common/equal_share.h"
#include "policies/themis/fairness.h"
#include "policies/themis/ftf_rounds.h"
#include "policies/themis/job_times.h"
#include "policies/themis/market.h"
#include "policies/themis/placed_auction.h"

namespace berth::themis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Time at(double seconds) { return seconds_to_time(seconds); }

/// Work in GPU-seconds and one slowdown for all.
class Linear final : public JobTimes {
 public:
  explicit Linear(std::vector<double> work, double slowdown = 1)
      : work_(std::move(work)), slowdown_(slowdown) {}
  [[nodiscard]] double seconds(std::size_t job, std::int32_t gpus) const override {
    return work_[job] * slowdown_ / gpus;
  }

 private:
  std::vector<double> work_;
  double slowdown_;
};

TEST(ActiveApps, AveragesOverTheLifeOfAnApp) {
  ActiveApps apps;
  apps.change(at(0), 2);
  const double then = apps.integral(at(100));
  EXPECT_EQ(apps.average(at(100), then, at(100)), 2);  // no time has passed
  apps.change(at(400), 2);
  EXPECT_DOUBLE_EQ(apps.average(at(100), then, at(700)), 3);  // 2 for 300 s, 4 for 300 s
}

// 1000 iterations of 2 s, up to 4 of 8 GPUs; 700 left after 600 s, on 2 GPUs at slowdown 1.25.
TEST(Fairness, RhoOfOneJob) {
  const double alone = Linear{{2000}}.seconds(0, std::min(8, 4));
  const double ideal = alone * 3;
  EXPECT_DOUBLE_EQ(ideal, 1500);
  const Linear times{{1400}, 1.25};
  const AppSplit split{{{.unit = 1, .most = 4, .held = 2}}, times};
  EXPECT_DOUBLE_EQ((600 + split.seconds_left()) / ideal, 59.0 / 60);
  EXPECT_DOUBLE_EQ(make_bid(split, 600, ideal, 0).curve[0].value, 60.0 / 59);
  // Bids are for what it would have then: on 3 GPUs it would need 1400 x 1.25 / 3 s more.
  EXPECT_DOUBLE_EQ(make_bid(split, 600, ideal, 1).curve[1].value, 1500 / (600 + 1750.0 / 3));
}

TEST(Fairness, GpusBeyondWhatAJobCanUseAreNoGain) {
  const Linear times{{1400}};
  EXPECT_EQ(make_bid(AppSplit{{{.unit = 1, .most = 4}}, times}, 0, 100, 8).curve.size(), 5U)
      << "rows for 0 to 4";
}

TEST(Slowdown, ByClassIsThatOfVggOrResnet) {
  std::vector<double> close;
  std::vector<double> anywhere;
  for (const Level level : {Level::Nvlink, Level::Server, Level::Rack, Level::CrossRack}) {
    close.push_back(class_slowdown(LocalityLabel::Strict, level));
    anywhere.push_back(class_slowdown(LocalityLabel::Any, level));
  }
  EXPECT_THAT(close, ElementsAre(1, 1.2, 1.6, 2.2));
  EXPECT_THAT(anywhere, ElementsAre(1, 1, 1.1, 1.2));
}

TEST(AppSplit, OneUnitEachThenTheLongest) {
  const Linear times{{12, 30, 6}};
  AppSplit split{{{1, 8, 0}, {1, 8, 0}, {1, 8, 0}}, times};
  EXPECT_EQ(split.seconds_left(), kInfinite);
  std::vector<std::size_t> order;
  std::vector<double> left;
  for (int i = 0; i < 6; ++i) {
    order.push_back(*split.next(8));
    split.give(order.back());
    left.push_back(split.seconds_left());
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 1, 1, 0));
  // in turn on 1: 48; on 2: 24; then the longest: 30, 15, and 12 of the first; 10 of the second
  EXPECT_THAT(left, ElementsAre(48, 24, 30, 15, 12, 10));
}

TEST(AppSplit, TakesWholeUnitsUpToTheMost) {
  const Linear times{{100, 10}};
  AppSplit split{{{4, 8, 0}, {2, 2, 0}}, times};
  EXPECT_EQ(split.next(3), 1U);  // the first one's gang does not fit
  EXPECT_EQ(split.next(1), std::nullopt);
  split.give(0);
  split.give(0);
  split.give(1);
  EXPECT_EQ(split.next(100), std::nullopt);  // both have their most
  EXPECT_EQ(split.gpus(), 10);
}

// Three jobs one after another, where more for one shortens nothing: bids never fall.
TEST(AppBid, IsMonotoneAndNamesTheJobOfEachUnit) {
  const Linear times{{12, 30, 6}};
  const AppBid bid = make_bid(AppSplit{{{1, 8, 0}, {1, 8, 0}, {1, 8, 0}}, times}, 2, 100, 4);
  EXPECT_THAT(bid.jobs, ElementsAre(0, 1, 2, 1));
  ASSERT_EQ(bid.curve.size(), 5U);
  EXPECT_EQ(bid.curve[0].value, 0);
  EXPECT_DOUBLE_EQ(bid.curve[2].value, 100.0 / 26);
  EXPECT_DOUBLE_EQ(bid.curve[3].value, 100.0 / 26);  // 30 s on one each is no better than in turn
  EXPECT_DOUBLE_EQ(bid.curve[4].value, 100.0 / 17);
}

TEST(Filter, ShowsOffersToTheWorstOff) {
  EXPECT_EQ(bidders_among(10, 0.8), 2U);
  EXPECT_EQ(bidders_among(10, 0.7), 3U);
  EXPECT_EQ(bidders_among(10, 0), 10U);
  EXPECT_EQ(bidders_among(10, 0.95), 1U);
  EXPECT_EQ(bidders_among(1, 0.99), 1U);
}

TEST(Market, RanksThoseWithoutGpusByTimeAndTheOthersByRho) {
  Market market;
  market.enter(AppId{0}, {.unit = 4, .since = at(20)});
  market.enter(AppId{1}, {.unit = 1, .rho = 1.5});
  market.enter(AppId{2}, {.unit = 2, .rho = 2.5});
  market.enter(AppId{3}, {.unit = 4, .since = at(10)});
  EXPECT_EQ(market.size(), 4U);
  EXPECT_EQ(market.smallest(), 1);
  EXPECT_EQ(market.waiting().begin()->second, AppId{3});
  EXPECT_EQ(market.hungry().begin()->second, AppId{2});
  market.set_starving(AppId{0});
  EXPECT_EQ(market.first_starving(), AppId{0});
  market.leave(AppId{0});
  market.leave(AppId{0});  // it is not in any more
  EXPECT_EQ(market.first_starving(), std::nullopt);
  EXPECT_EQ(market.size(), 3U);
}

TEST(Market, DrawsOnlyThoseWhomSoManyGpusHelp) {
  Market market;
  for (std::uint32_t i = 0; i < 6; ++i)
    market.enter(AppId{i}, {.unit = i < 3 ? 1 : 4, .since = at(i)});
  market.leave(AppId{1});
  Rng rng{1};
  std::vector<int> drawn(6);
  for (int i = 0; i < 200; ++i) ++drawn[market.draw(3, rng)->value];
  EXPECT_GT(drawn[0], 60);
  EXPECT_GT(drawn[2], 60);
  EXPECT_EQ(drawn[0] + drawn[2], 200);
  EXPECT_EQ(market.draw(0, rng), std::nullopt);
}

// --- placement ---

/// V = g / S with S = `spread` on more than one machine.
class Spread final : public PlacedValues {
 public:
  explicit Spread(std::vector<double> spread) : spread_(std::move(spread)) {}
  [[nodiscard]] double value(std::size_t bidder, std::span<const Piece> pieces) const override {
    return gpus_in(pieces) / (pieces.size() > 1 ? spread_[bidder] : 1);
  }

 private:
  std::vector<double> spread_;
};

OfferMap offer_of(std::vector<std::int32_t> free, std::vector<std::uint32_t> racks = {}) {
  racks.resize(free.size());
  return OfferMap{free, racks};
}

TEST(PlacedAuction, AMachineEachIsWorthMoreThanCounting) {
  OfferMap offer = offer_of({2, 2});
  const std::vector<PlacedBidder> bidders{{{1, 2, 3, 4}, {}}, {{1, 2, 3, 4}, {}}};
  const Spread values{{2, 1}};
  const auto auction = hold_placed_auction(bidders, values, offer);
  EXPECT_THAT(auction.pieces[0], ElementsAre(Piece{0, 2}));  // product 4; P on the first machine
  EXPECT_THAT(auction.pieces[1], ElementsAre(Piece{1, 2}));
  EXPECT_NEAR(auction.parts[0], 0.5, 1e-12);  // V_Q(2) / V_Q(4)
  EXPECT_NEAR(auction.parts[1], 1.0, 1e-12);  // P gains nothing from Q's GPUs
  EXPECT_EQ(offer.free(), 4);
  // so does the heap, as it places the larger number afresh: P leaves the machine where it met Q
  const auto greedy = hold_placed_auction_greedily(bidders, values, offer);
  EXPECT_NEAR(values.value(0, greedy.pieces[0]) * values.value(1, greedy.pieces[1]), 4, 1e-12);
  EXPECT_EQ(offer.free(), 4);
}

// Of equally good choices the one in which everybody stays where it is.
TEST(PlacedAuction, NobodyMovesForNothing) {
  OfferMap offer = offer_of({2, 2});
  const std::vector<PlacedBidder> bidders{{{2}, {1}}, {{2}, {0}}};
  const Spread values{{2, 2}};
  for (const auto& auction : {hold_placed_auction(bidders, values, offer),
                              hold_placed_auction_greedily(bidders, values, offer)}) {
    EXPECT_THAT(auction.pieces[0], ElementsAre(Piece{1, 2}));
    EXPECT_THAT(auction.pieces[1], ElementsAre(Piece{0, 2}));
  }
}

// An app may need more than the least that would help it: then not all who were invited fit.
TEST(PlacedAuction, ServesWhomItCanWhereNotAllBiddersFit) {
  OfferMap offer = offer_of({4, 4});
  const std::vector<PlacedBidder> bidders{{{4, 8}, {}}, {{8}, {}}};
  const Spread values{{2, 2}};
  const auto auction = hold_placed_auction(bidders, values, offer);
  EXPECT_THAT(auction.pieces[0], ElementsAre(Piece{0, 4}));
  EXPECT_THAT(auction.pieces[1], IsEmpty());
  EXPECT_EQ(offer.free(), 8);
}

TEST(OfferMap, TightestMachineThenTightestRackThenFewestMachines) {
  OfferMap offer = offer_of({4, 2, 3, 1, 4, 4}, {0, 0, 0, 1, 1, 1});
  EXPECT_THAT(offer.best_fit(2), ElementsAre(Piece{1, 2}));
  EXPECT_THAT(offer.best_fit(3), ElementsAre(Piece{2, 3}));
  EXPECT_THAT(offer.best_fit(5), ElementsAre(Piece{0, 4}, Piece{1, 1}));  // both racks have 9
  EXPECT_EQ(gpus_in(offer.best_fit(12)), 12);
  EXPECT_THAT(offer.near(std::vector<std::uint32_t>{2}, 5), ElementsAre(Piece{1, 2}, Piece{2, 3}));
  offer.take(offer.best_fit(3));
  EXPECT_EQ(offer.free_on(2), 0);
  EXPECT_EQ(offer.free(), 15);
}

TEST(OfferMap, GivesUpTheLeastLocalFirst) {
  EXPECT_THAT(most_local({{0, 1}, {1, 4}, {2, 2}}, 5), ElementsAre(Piece{1, 4}, Piece{2, 1}));
  EXPECT_THAT(most_local({{0, 1}, {1, 1}}, 1), ElementsAre(Piece{0, 1}));
  EXPECT_THAT(most_local({{0, 1}}, 0), IsEmpty());
}

TEST(PlacedAuction, SellsNoGpuTwiceAndStaysNearTheBestProduct) {
  Rng rng{3};
  double lost = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int32_t> free;
    const std::size_t machines = 2 + rng.below(2);
    for (std::size_t i = 0; i < machines; ++i) {
      free.push_back(1 + static_cast<std::int32_t>(rng.below(3)));
    }
    while (std::accumulate(free.begin(), free.end(), 0) > kExactGpus)
      --*std::ranges::max_element(free);
    OfferMap offer = offer_of(free);
    std::vector<PlacedBidder> bidders(2);
    for (PlacedBidder& bidder : bidders) {
      for (std::int32_t k = 1; k <= 8; ++k) bidder.sizes.push_back(k);
    }
    const Spread values{{1 + rng.uniform() * 2, 1 + rng.uniform() * 2}};
    const auto product = [&](const PlacedAllocation& auction) {
      std::vector<std::int32_t> used(free.size());
      double all_values = 1;
      for (std::size_t i = 0; i < bidders.size(); ++i) {
        all_values *= values.value(i, auction.pieces[i]);
        for (const Piece& piece : auction.pieces[i]) used[piece.machine] += piece.gpus;
        EXPECT_GT(auction.parts[i], 0);
        EXPECT_LE(auction.parts[i], 1);
      }
      for (std::size_t m = 0; m < free.size(); ++m) EXPECT_LE(used[m], free[m]);
      return all_values;
    };
    const double exact = product(hold_placed_auction(bidders, values, offer));
    const double greedy = product(hold_placed_auction_greedily(bidders, values, offer));
    ASSERT_LE(greedy, exact + 1e-9);
    ASSERT_GT(greedy, 0);
    lost += 1 - greedy / exact;
  }
  EXPECT_LT(lost / 300, 0.2);
}

// --- time fractions ---

TEST(TimeFractions, WorkedExample) {
  const std::vector<FairShareJob> jobs{{0, 6, 12, 1}, {6, 2.4, 8, 1}};
  const TimeFractions result = fair_time_fractions(jobs, 1);
  EXPECT_NEAR(result.rho, 1.25, 1e-9);
  EXPECT_NEAR(result.fractions[0], 0.4, 1e-9);
  EXPECT_NEAR(result.fractions[1], 0.6, 1e-9);
}

TEST(TimeFractions, NobodyGetsMoreThanAllTheTimeAndAllFit) {
  Rng rng{5};
  for (int round = 0; round < 200; ++round) {
    std::vector<FairShareJob> jobs;
    for (std::uint64_t i = 0; i < 1 + rng.below(12); ++i) {
      jobs.push_back({rng.uniform() * 100, 1 + rng.uniform() * 100, 1 + rng.uniform() * 200,
                      1 + static_cast<std::int32_t>(rng.below(8))});
    }
    const auto result = fair_time_fractions(jobs, 8);
    double sum = 0;
    double worst = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_GT(result.fractions[i], 0);
      ASSERT_LE(result.fractions[i], 1);
      sum += result.fractions[i] * jobs[i].gpus;
      worst =
          std::max(worst, (jobs[i].elapsed + jobs[i].left / result.fractions[i]) / jobs[i].ideal);
    }
    ASSERT_LE(sum, 8 + 1e-9);
    ASSERT_NEAR(worst, result.rho, 1e-6 * result.rho);
  }
}

TEST(TimeFractions, IsolatedRateIsThatOfAnEqualShare) {
  EXPECT_EQ(isolated_rate(8, 2, 4), 1);
  EXPECT_EQ(isolated_rate(8, 2, 2), 1);
  EXPECT_EQ(isolated_rate(8, 4, 8), 0.25);
  EXPECT_EQ(isolated_rate(8, 3, 4), 0.75);  // rounded up to 3 of 4
}

}  // namespace
}  // namespace berth::themis
