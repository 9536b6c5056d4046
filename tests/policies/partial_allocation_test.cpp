// The partial-allocation auction on curves: worked examples, brute force, what it promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "policies/common/partial_allocation.h"

namespace berth {
namespace {

using testing::ElementsAre;

/// V = ideal / (elapsed + work / g) for 1..most GPUs, in steps of `unit`.
BidCurve curve_of(double elapsed, double work, double ideal, int most, int unit = 1) {
  BidCurve curve{{0, 0.0}};
  for (int g = unit; g <= most; g += unit) curve.push_back({g, ideal / (elapsed + work / g)});
  return curve;
}

std::vector<int> gpus_of(const std::vector<BidCurve>& bidders, const RowChoice& rows) {
  std::vector<int> gpus;
  for (std::size_t i = 0; i < bidders.size(); ++i) gpus.push_back(bidders[i][rows[i]].gpus);
  return gpus;
}

/// The auction and the leftovers, without outsiders: GPUs in the end.
struct Round {
  std::vector<int> chosen, kept, final;
  std::vector<double> parts;
  int unsold = 0;
};
Round hold(const std::vector<BidCurve>& bidders, int gpus) {
  const auto auction = hold_auction(bidders, gpus);
  Round round{gpus_of(bidders, auction.rows), {}, {}, auction.parts, 0};
  RowChoice rows;
  int left = gpus;
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    rows.push_back(row_kept(bidders[i], auction.rows[i], auction.parts[i]));
    left -= bidders[i][rows[i]].gpus;
    ids.push_back(static_cast<std::uint32_t>(i));
  }
  round.kept = gpus_of(bidders, rows);
  round.unsold = hand_out(bidders, ids, rows, left);
  round.final = gpus_of(bidders, rows);
  return round;
}

TEST(PartialAllocation, TwoLinearAppsShareFourGpus) {
  const std::vector<BidCurve> bidders{curve_of(0, 8, 10, 4), curve_of(0, 16, 10, 4)};
  const Round round = hold(bidders, 4);
  EXPECT_THAT(round.chosen, ElementsAre(2, 2));
  EXPECT_NEAR(round.parts[0], 0.5, 1e-12);  // V_B(2) / V_B(4)
  EXPECT_NEAR(round.parts[1], 0.5, 1e-12);
  EXPECT_THAT(round.kept, ElementsAre(1, 1));
  EXPECT_THAT(round.final, ElementsAre(2, 2));  // B at rho 1.6, then a tie at 0.8: A
}

TEST(PartialAllocation, AppsWithHistory) {
  const auto bidders = [](int most) {
    return std::vector<BidCurve>{curve_of(10, 40, 20, most), curve_of(30, 20, 20, most)};
  };
  EXPECT_NEAR(bidders(4)[0][3].value, 6.0 / 7, 1e-12);
  EXPECT_NEAR(bidders(4)[1][3].value, 6.0 / 11, 1e-12);
  const Round four = hold(bidders(4), 4);
  EXPECT_THAT(four.chosen, ElementsAre(3, 1));  // 12/35 against 1/3 for two each
  EXPECT_NEAR(four.parts[0], 7.0 / 10, 1e-12);
  EXPECT_NEAR(four.parts[1], 6.0 / 7, 1e-12);
  EXPECT_THAT(four.kept, ElementsAre(2, 0));
  EXPECT_THAT(four.final, ElementsAre(2, 2));  // B has nothing, then rho 2.5 against 1.5
  const Round eight = hold(bidders(8), 8);
  EXPECT_THAT(eight.chosen, ElementsAre(5, 3));
  EXPECT_NEAR(eight.parts[0], 39.0 / 44, 1e-12);
  EXPECT_NEAR(eight.parts[1], 5.0 / 6, 1e-12);
  EXPECT_THAT(eight.kept, ElementsAre(4, 2));
  EXPECT_THAT(eight.final, ElementsAre(4, 4));
}

TEST(PartialAllocation, ThreeApps) {
  const std::vector<BidCurve> bidders{curve_of(10, 40, 20, 6), curve_of(30, 20, 20, 6),
                                      curve_of(0, 60, 60, 6)};
  for (const auto& auction :
       {hold_auction_greedily(bidders, 6), hold_auction_exactly(bidders, 6)}) {
    EXPECT_THAT(gpus_of(bidders, auction.rows), ElementsAre(2, 1, 3));
    EXPECT_NEAR(std::exp(log_welfare(bidders, auction.rows)), 4.0 / 5, 1e-12);
    EXPECT_NEAR(auction.parts[0], 3.0 / 5, 1e-12);
    EXPECT_NEAR(auction.parts[1], 3.0 / 4, 1e-12);
    EXPECT_NEAR(auction.parts[2], 8.0 / 15, 1e-12);
  }
  const Round round = hold(bidders, 6);
  EXPECT_THAT(round.kept, ElementsAre(1, 0, 1));
  EXPECT_THAT(round.final, ElementsAre(2, 3, 1));
}

TEST(PartialAllocation, OneBidderGetsAllItWants) {
  const Round round = hold({curve_of(5, 10, 7, 3)}, 8);
  EXPECT_THAT(round.kept, ElementsAre(3));
  EXPECT_EQ(round.parts[0], 1.0);  // of an empty product
  EXPECT_EQ(round.unsold, 5);
}

// A part below its gang leaves a bidder nothing; the leftovers reach it.
TEST(PartialAllocation, GangsAreNotCut) {
  const std::vector<BidCurve> bidders{curve_of(0, 8, 10, 4, 2), curve_of(0, 16, 10, 4, 2)};
  const Round round = hold(bidders, 4);
  EXPECT_THAT(round.chosen, ElementsAre(2, 2));
  EXPECT_THAT(round.kept, ElementsAre(0, 0));
  EXPECT_THAT(round.final, ElementsAre(2, 2));
}

TEST(PartialAllocation, WithTooFewGpusTheFirstInLineTakePart) {
  EXPECT_THAT(who_can_take_part(std::vector<std::int32_t>{1, 1, 1, 1}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(who_can_take_part(std::vector<std::int32_t>{4, 2, 0, 3, 1}, 5),
              ElementsAre(0, 2, 4));  // 2 and 3 do not fit beside the 4, 0 costs nothing
}

TEST(PartialAllocation, AnInconsistentBidIsMadeMonotone) {
  BidCurve curve{{0, 0.0}, {1, 3.0}, {2, 2.0}, {3, 4.0}};
  make_monotone(curve);
  EXPECT_EQ(curve[2].value, 3.0);
  EXPECT_EQ(curve[3].value, 4.0);
  // nobody is sold a GPU that adds nothing
  EXPECT_THAT(gpus_of({curve}, hold_auction({{curve}}, 2).rows), ElementsAre(1));
}

// --- against brute force ---

double brute_force(const std::vector<BidCurve>& bidders, int gpus, std::size_t absent,
                   std::size_t from = 0) {
  if (from == bidders.size()) return 1;
  if (from == absent) return brute_force(bidders, gpus, absent, from + 1);
  double best = 0;
  for (const BidRow& row : bidders[from]) {
    if (row.gpus <= gpus)
      best = std::max(best, row.value * brute_force(bidders, gpus - row.gpus, absent, from + 1));
  }
  return best;
}

struct Drawn {
  std::vector<BidCurve> bidders;
  int gpus = 0;
};

/// Concave or any curves; all can have something at once.
Drawn draw(Rng& rng, bool concave) {
  Drawn drawn;
  const std::size_t n = 1 + rng.below(4);
  drawn.gpus = static_cast<int>(n * (concave ? 1 : 3) + rng.below(6));
  for (std::size_t i = 0; i < n; ++i) {
    const int unit = concave ? 1 : 1 + static_cast<int>(rng.below(3));
    if (concave) {
      drawn.bidders.push_back(
          curve_of(static_cast<double>(rng.below(50)), 1 + static_cast<double>(rng.below(100)),
                   1 + static_cast<double>(rng.below(50)), 1 + static_cast<int>(rng.below(9))));
    } else {
      BidCurve curve{{0, rng.below(2) == 0 ? 0.0 : 0.5}};
      for (int g = unit; g <= 9; g += unit) curve.push_back({g, 0.1 + 5 * rng.uniform()});
      make_monotone(curve);
      drawn.bidders.push_back(curve);
    }
  }
  return drawn;
}

void expect_optimal(const Drawn& drawn, const PartialAllocation& auction) {
  const std::size_t n = drawn.bidders.size();
  int sold = 0;
  double product = 1;
  for (std::size_t i = 0; i < n; ++i) {
    sold += drawn.bidders[i][auction.rows[i]].gpus;
    product *= drawn.bidders[i][auction.rows[i]].value;
  }
  ASSERT_LE(sold, drawn.gpus);
  ASSERT_NEAR(product, brute_force(drawn.bidders, drawn.gpus, n), 1e-9 * product);
  for (std::size_t i = 0; i < n; ++i) {
    const double others = product / drawn.bidders[i][auction.rows[i]].value;
    const double part = others / brute_force(drawn.bidders, drawn.gpus, i);
    ASSERT_GT(auction.parts[i], 0);
    ASSERT_LE(auction.parts[i], 1);
    ASSERT_NEAR(auction.parts[i], auction.rows[i] == 0 ? 1 : part, 1e-9);
  }
}

TEST(PartialAllocation, EqualsBruteForce) {
  Rng rng{7};
  for (int round = 0; round < 400; ++round) {
    const Drawn concave = draw(rng, true);
    expect_optimal(concave, hold_auction_greedily(concave.bidders, concave.gpus));
    expect_optimal(concave, hold_auction_exactly(concave.bidders, concave.gpus));
    const Drawn any = draw(rng, false);
    expect_optimal(any, hold_auction(any.bidders, any.gpus));
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(PartialAllocation, NothingIsLostAndNobodyIsOverserved) {
  Rng rng{9};
  for (int round = 0; round < 300; ++round) {
    const Drawn drawn = draw(rng, round % 2 == 0);
    const Round result = hold(drawn.bidders, drawn.gpus);
    int sum = result.unsold;
    for (std::size_t i = 0; i < result.final.size(); ++i) {
      ASSERT_GE(result.final[i], result.kept[i]);
      sum += result.final[i];
    }
    ASSERT_EQ(sum, drawn.gpus);
    for (std::size_t i = 0; i < result.final.size(); ++i) {  // what is unsold helps nobody
      const auto next =
          std::ranges::upper_bound(drawn.bidders[i], result.final[i], {}, &BidRow::gpus);
      if (next != drawn.bidders[i].end()) {
        ASSERT_GT(next->gpus - result.final[i], result.unsold);
      }
    }
  }
}

TEST(PartialAllocation, IdenticalAppsDifferByAtMostOneUnit) {
  for (int gpus = 3; gpus <= 20; ++gpus) {
    for (int unit = 1; unit <= 2; ++unit) {
      if (gpus < 3 * unit) continue;
      const std::vector<BidCurve> bidders(3, curve_of(10, 40, 20, 20, unit));
      const Round round = hold(bidders, gpus);
      const auto [low, high] = std::ranges::minmax(round.final);
      EXPECT_LE(high - low, unit) << gpus << " GPUs";
    }
  }
}

// Before rounding, an app's own true value of what it keeps is never larger with another bid.
TEST(PartialAllocation, TellingTheTruthIsTheBestBid) {
  Rng rng{11};
  for (int round = 0; round < 3000; ++round) {
    Drawn drawn;
    drawn.gpus = 2 + static_cast<int>(rng.below(6));
    const auto any_curve = [&] {
      BidCurve curve{{0, 0.0}};
      for (int g = 1; g <= drawn.gpus; ++g) curve.push_back({g, 0.1 + 5 * rng.uniform()});
      make_monotone(curve);
      return curve;
    };
    drawn.bidders = {any_curve(), any_curve()};
    const auto keeps = [&](const PartialAllocation& auction) {
      return auction.parts[0] * drawn.bidders[0][auction.rows[0]].value;
    };
    const double honest = keeps(hold_auction_exactly(drawn.bidders, drawn.gpus));
    std::vector<BidCurve> false_bids = drawn.bidders;
    false_bids[0] = any_curve();
    ASSERT_LE(keeps(hold_auction_exactly(false_bids, drawn.gpus)), honest * (1 + 1e-9))
        << "round " << round;
  }
}

// Values proportional to GPUs are homogeneous of degree one: a bidder keeps at least 1/e. n (n - 1)
// GPUs are shared evenly by n and by n - 1; where the split is uneven, whole GPUs may cost a bit
// more.
TEST(PartialAllocation, LinearAppsKeepAtLeastOneOverE) {
  for (int n = 2; n <= 20; ++n) {
    const std::vector<BidCurve> bidders(static_cast<std::size_t>(n),
                                        curve_of(0, 10, 10, n * (n - 1)));
    for (const double part : hold_auction(bidders, n * (n - 1)).parts) {
      EXPECT_NEAR(part, std::pow((n - 1.0) / n, n - 1), 1e-9);
      EXPECT_GE(part, std::exp(-1.0));
    }
  }
}

}  // namespace
}  // namespace berth
