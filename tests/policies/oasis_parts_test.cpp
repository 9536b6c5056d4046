// The parts of OASiS without the engine: prices, the cheapest schedule, admission.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/rng.h"
#include "policies/oasis/cheapest.h"
#include "policies/oasis/offline.h"
#include "policies/oasis/price_book.h"
#include "policies/oasis/price_range.h"
#include "policies/oasis/utility.h"
#include "policies/oasis_instances.h"

namespace berth::oasis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// One worker server of 4 GPUs and one parameter server machine of 4 cores for three slots; prices
/// between 1/12 and 12.
struct SmallMarket {
  PriceBook gpus{{{4}}, 3};
  PriceBook cores{{{4}}, 3};
  SmallMarket() {
    const std::vector<double> high{12};
    gpus.set_range(1.0 / 12, high);
    cores.set_range(1.0 / 12, high);
  }
  [[nodiscard]] Market market() const { return {&gpus, &cores}; }
  void accept(const Schedule& schedule) {
    gpus.promise(schedule.workers, Amounts{1});
    cores.promise(schedule.helpers, Amounts{1});
  }
  [[nodiscard]] std::vector<std::int64_t> promised(const PriceBook& book) const {
    return {book.promised(0, 0, 0), book.promised(0, 0, 1), book.promised(0, 0, 2)};
  }
};

/// Two worker-slots on at most two workers, one parameter server for two of them.
Demand two_workers() {
  return {.units = 2,
          .workers_for = linear_workers(1, 2),
          .worker = {1},
          .servers = {},
          .helper = {1},
          .workers_per_helper = 2};
}

TEST(OasisUtility, IsHalfAtTheTargetAndNothingFarBehindADeadline) {
  const Utility soft{.value = 10, .steepness = 0.5, .target = 4};
  EXPECT_DOUBLE_EQ(soft.at(4), 5);
  EXPECT_NEAR(soft.at(0), 10 / (1 + std::exp(-2.0)), 1e-12);
  const Utility flat{.value = 7, .steepness = 0, .target = 3};
  EXPECT_DOUBLE_EQ(flat.at(0), 3.5);
  EXPECT_DOUBLE_EQ(flat.at(1000), 3.5);
  const Utility deadline{.value = 10, .steepness = 5, .target = 3};
  EXPECT_GT(deadline.at(2), 9.9);
  EXPECT_GT(deadline.at(4), 0);         // 10 / (1 + e^5) = 0.067
  EXPECT_DOUBLE_EQ(deadline.at(5), 0);  // e^-10 is less than a thousandth
}

TEST(OasisPrices, RiseFromTheCheapestToTheDearest) {
  SmallMarket small;
  const std::vector<double> expected{1.0 / 12, 0.28868, 1, 3.46410, 12};
  for (std::int64_t promised = 0; promised <= 4; ++promised) {
    EXPECT_NEAR(small.gpus.price(0, 0, 0), expected[static_cast<std::size_t>(promised)], 1e-5);
    EXPECT_EQ(small.gpus.room(0, 0, Amounts{1}), 4 - promised);
    if (promised < 4) small.gpus.promise(std::vector<Hold>{{0, 0, 1}}, Amounts{1});
  }
  EXPECT_NEAR(small.gpus.price(0, 0, 1), 1.0 / 12, 1e-12);  // another slot, another price
}

TEST(OasisPrices, AReleaseTakesBackExactlyWhatWasPromised) {
  SmallMarket small;
  const double before = small.gpus.price(0, 0, 1);
  const std::vector<Hold> holds{{0, 0, 1}, {1, 0, 3}};
  small.gpus.promise(holds, Amounts{1});
  EXPECT_GT(small.gpus.price(0, 0, 1), before);
  small.gpus.release(holds, Amounts{1});
  EXPECT_EQ(small.gpus.price(0, 0, 1), before);
  EXPECT_EQ(small.promised(small.gpus), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(OasisPrices, SlotsThatAreOverMakeRoomForNewOnes) {
  SmallMarket small;
  const std::vector<Hold> holds{{0, 0, 4}, {1, 0, 2}};
  small.gpus.promise(holds, Amounts{1});
  small.gpus.advance(1);
  EXPECT_EQ(small.gpus.promised(0, 0, 1), 2);
  EXPECT_EQ(small.gpus.promised(0, 0, 3), 0);  // lies where slot 0 lay
  EXPECT_EQ(small.gpus.end_slot(), 4);
  small.gpus.release(holds, Amounts{1});  // of slot 0 nothing is left to release
  EXPECT_EQ(small.gpus.promised(0, 0, 3), 0);
  small.gpus.advance(100);
  EXPECT_EQ(small.gpus.promised(0, 0, 100), 0);
}

TEST(OasisPrices, ALostServerHasNoRoomAndNoPrice) {
  SmallMarket small;
  small.gpus.set_capacity(0, 0, 0);
  EXPECT_EQ(small.gpus.room(0, 0, Amounts{1}), 0);
  EXPECT_EQ(small.gpus.price(0, 0, 0), kInfinite);
}

TEST(OasisPriceRange, FollowsTheJobsSeen) {
  // Three jobs of two worker-slots, worth 12 at once and 4 in the last slot, on 4 GPUs for 3 slots:
  // 1 / eta = 2 / 12, the cheapest price 2/12 x 4/2 / 4 = 1/12, the dearest 12.
  PriceRange range{1, 12};
  EXPECT_FALSE(range.is_known());
  EXPECT_TRUE(range.see({.best = 12, .worst = 4, .work = 2}, Amounts{1}));
  EXPECT_FALSE(range.see({.best = 12, .worst = 4, .work = 2}, Amounts{1}));
  EXPECT_NEAR(range.low(), 1.0 / 12, 1e-12);
  EXPECT_DOUBLE_EQ(range.high()[0], 12);
  EXPECT_NEAR(range.alpha(), 4.96981, 1e-5);
  EXPECT_NEAR(2 * range.alpha(), 9.93963, 1e-5);
  EXPECT_TRUE(range.see({.best = 1, .worst = 0.1, .work = 4}, Amounts{1}));  // only widens
  EXPECT_DOUBLE_EQ(range.high()[0], 12);
  EXPECT_NEAR(range.low(), 2.0 / 12 * 0.1 / 4 / 4, 1e-12);
}

TEST(OasisAdmission, WorkedExample) {
  SmallMarket small;
  struct Row {
    std::vector<double> worth;
    std::int64_t finish;
    double cost;
    double payoff;
    std::vector<std::int64_t> gpus, cores;  // promised afterwards
  };
  const std::vector<Row> rows{
      {{12, 8, 4}, 0, 0.25, 11.75, {2, 0, 0}, {1, 0, 0}},
      {{12, 8, 4}, 0, 2.28868, 9.71132, {4, 0, 0}, {2, 0, 0}},
      {{12, 8, 4}, 1, 0.25, 7.75, {4, 2, 0}, {2, 1, 0}},
      {{2, 1, 0.2}, 2, 0.25, -0.05, {4, 2, 0}, {2, 1, 0}},  // refused; slot 1 would give -1.28868
      {{2, 1, 0.4}, 2, 0.25, 0.15, {4, 2, 2}, {2, 1, 1}},
  };
  for (const Row& row : rows) {
    const auto best = best_schedule(small.market(), two_workers(), finish_of(row.worth));
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(best->finish, row.finish);
    EXPECT_NEAR(best->cost, row.cost, 1e-5);
    EXPECT_NEAR(best->payoff(), row.payoff, 1e-5);
    if (best->payoff() > 0) small.accept(*best);
    EXPECT_EQ(small.promised(small.gpus), row.gpus);
    EXPECT_EQ(small.promised(small.cores), row.cores);
  }
}

// Two workers beside three of four would cost 2 x 3.46410 = 6.93, less than the 12 they are worth.
TEST(OasisAdmission, APriceDoesNotReplaceTheCapacity) {
  SmallMarket small;
  small.gpus.promise(std::vector<Hold>{{0, 0, 3}}, Amounts{1});
  EXPECT_NEAR(2 * small.gpus.price(0, 0, 0), 6.93, 5e-3);
  EXPECT_FALSE(best_schedule(small.market(), two_workers(), finish_of({12})).has_value());
}

TEST(OasisAdmission, TheSecondBestSlotsOfTheExample) {
  SmallMarket small;
  const auto payoff = [&](std::vector<double> worth) {
    return best_schedule(small.market(), two_workers(), finish_of(worth))->payoff();
  };
  small.gpus.promise(std::vector<Hold>{{0, 0, 2}}, Amounts{1});
  small.cores.promise(std::vector<Hold>{{0, 0, 1}}, Amounts{1});
  EXPECT_NEAR(payoff({8.0, 8.0}), 7.75, 1e-5);  // J2 in slot 1: 8 - 0.25
  small.gpus.promise(std::vector<Hold>{{0, 0, 2}, {1, 0, 2}}, Amounts{1});
  small.cores.promise(std::vector<Hold>{{0, 0, 1}, {1, 0, 1}}, Amounts{1});
  EXPECT_NEAR(payoff({2.0, 1.0}), -1.28868, 1e-5);  // J4 in slot 1: 1 - 2.28868
}

/// Prices 1, 0.5, 0.25 per worker and 4, 1, 2 workers free in slots 0, 1, 2: three servers, each
/// full but in its own slot. A worker takes 3, prices go from 1/12 by a factor of 16: at half
/// promised 3 x 1/12 x 4 = 1, at a quarter 0.5, at nothing 0.25.
PriceBook example_prices() {
  PriceBook book{{{24}, {4}, {6}}, 3};
  const std::vector<double> high{16.0 / 12};
  book.set_range(1.0 / 12, high);
  const std::vector<std::int64_t> promised{12, 1, 0};
  for (std::uint32_t server = 0; server < 3; ++server) {
    for (std::int64_t slot = 0; slot < 3; ++slot) {
      const bool own = slot == static_cast<std::int64_t>(server);
      const std::int64_t amount = own ? promised[server] : book.capacity(server, 0);
      book.promise(std::vector<Hold>{{slot, server, amount}}, Amounts{1});
    }
  }
  return book;
}

TEST(OasisCheapest, TableOfTheWorkedExample) {
  const PriceBook book = example_prices();
  const auto rows = cost_table({&book, nullptr}, workers_only(4, 3, 3), 0, 3);
  const std::vector<std::vector<double>> expected{
      {0, 1, 2, 3, kInfinite}, {0, 0.5, 1.5, 2.5, 3.5}, {0, 0.25, 0.5, 1, 2}};
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t t = 0; t < rows.size(); ++t) {
    for (std::size_t d = 0; d <= 4; ++d) {
      if (expected[t][d] == kInfinite) {
        EXPECT_EQ(rows[t][d], kInfinite);
      } else {
        EXPECT_NEAR(rows[t][d], expected[t][d], 1e-12) << "slot " << t << ", units " << d;
      }
    }
  }
}

TEST(OasisCheapest, TakesTheFinishThatPaysBest) {
  const PriceBook book = example_prices();
  for (const auto way : {best_by_table, best_by_units}) {
    const auto best = way({&book, nullptr}, workers_only(4, 3, 3), finish_of({0.5, 0.5, 0.5}));
    ASSERT_TRUE(best.has_value());  // worth less than it costs, but that is for others to judge
    EXPECT_NEAR(best->payoff(), -1.5, 1e-12);
    const auto early = way({&book, nullptr}, workers_only(4, 3, 3), finish_of({10, 10}));
    EXPECT_NEAR(early->payoff(), 6.5, 1e-12);
    const auto late = way({&book, nullptr}, workers_only(4, 3, 3), finish_of({10, 10, 9}));
    EXPECT_NEAR(late->payoff(), 7.0, 1e-12);
    EXPECT_EQ(late->finish, 2);
    EXPECT_EQ(late->workers, (std::vector<Hold>{{0, 0, 1}, {1, 1, 1}, {2, 2, 2}}));
  }
}

TEST(OasisCheapest, EqualPricesAreTakenEarly) {
  PriceBook book{{{2}, {2}}, 4};
  const std::vector<double> flat{1};
  book.set_range(1, flat);
  const std::vector<Hold> early{{0, 0, 2}, {0, 1, 1}, {1, 0, 2}};
  for (const auto way : {best_by_table, best_by_units}) {
    const auto best = way({&book, nullptr}, workers_only(5, 3), finish_of({9, 9, 9, 9}));
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(best->finish, 1);
    EXPECT_EQ(best->workers, early);
    EXPECT_DOUBLE_EQ(best->cost, 5);
  }
}

TEST(OasisCheapest, WorkThatFitsInNoSlotWorthAnythingHasNoSchedule) {
  const PriceBook book = example_prices();
  EXPECT_FALSE(best_schedule({&book, nullptr}, workers_only(9, 3, 3), finish_of({9, 9, 9})));
  EXPECT_FALSE(best_schedule({&book, nullptr}, workers_only(4, 3, 3), finish_of({9, 0, 0})));
}

TEST(OasisCheapest, ChunksAreRoundedUpToWorkersAndHelpers) {
  EXPECT_EQ(linear_workers(0.4, 2), (std::vector<std::int64_t>{0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(linear_workers(1.0 / 3, 1), (std::vector<std::int64_t>{0, 1, 1, 1}));
  Demand demand = two_workers();
  demand.workers_per_helper = 1.5;
  EXPECT_EQ(demand.helpers_for(0), 0);
  EXPECT_EQ(demand.helpers_for(1), 1);
  EXPECT_EQ(demand.helpers_for(3), 2);
  EXPECT_EQ(demand.helpers_for(4), 3);
  demand.workers_per_helper = 0.5;  // never more of them than workers
  EXPECT_EQ(demand.helpers_for(3), 3);
}

TEST(OasisCheapest, UnitsByPriceEqualTheTable) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng{seed};
    const std::int64_t slots = 1 + static_cast<std::int64_t>(rng.below(8));
    const PriceBook book = random_book(rng, slots);
    const Demand demand = workers_only(1 + static_cast<std::int64_t>(rng.below(12)),
                                       1 + static_cast<std::int64_t>(rng.below(5)));
    ASSERT_TRUE(demand.is_linear());
    const Finish finish = finish_of(falling(rng, slots, 60));
    const auto table = best_by_table({&book, nullptr}, demand, finish);
    const auto units = best_by_units({&book, nullptr}, demand, finish);
    ASSERT_EQ(table.has_value(), units.has_value()) << "seed " << seed;
    if (!table) continue;
    ++found;
    ASSERT_EQ(table->finish, units->finish) << "seed " << seed;
    ASSERT_NEAR(table->cost, units->cost, 1e-9) << "seed " << seed;
    std::int64_t held = 0;
    for (const Hold& hold : units->workers) held += hold.units;
    ASSERT_EQ(held, demand.units) << "seed " << seed;
  }
  EXPECT_GT(found, 200);
}

/// Every split of the work over the slots, by brute force.
double cheapest_by_trying(const Market& market, const Demand& demand, std::int64_t slot,
                          std::int64_t end, std::int64_t left) {
  if (left == 0) return 0;
  if (slot == end) return kInfinite;
  double best = kInfinite;
  const auto most = static_cast<std::int64_t>(demand.workers_for.size()) - 1;
  for (std::int64_t d = 0; d <= std::min(left, most); ++d) {
    const Demand part{.units = d,
                      .workers_for = demand.workers_for,
                      .worker = demand.worker,
                      .servers = {},
                      .helper = demand.helper,
                      .workers_per_helper = demand.workers_per_helper};
    const double here = d == 0 ? 0 : cost_table(market, part, slot, slot + 1)[0].back();
    best = std::min(best, here + cheapest_by_trying(market, demand, slot + 1, end, left - d));
  }
  return best;
}

TEST(OasisCheapest, TheTableWithParameterServersEqualsTryingEverything) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng{seed};
    const PriceBook gpus = random_book(rng, 4);
    const PriceBook cores = random_book(rng, 4);
    Demand demand = workers_only(1 + static_cast<std::int64_t>(rng.below(6)), 3);
    demand.helper = {1};
    demand.workers_per_helper = 1 + rng.uniform();
    const Market market{&gpus, &cores};
    const auto rows = cost_table(market, demand, 0, 4);
    const double expected = cheapest_by_trying(market, demand, 0, 4, demand.units);
    if (expected == kInfinite) {
      EXPECT_EQ(rows[3].back(), kInfinite) << "seed " << seed;
    } else {
      EXPECT_NEAR(rows[3].back(), expected, 1e-9) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace berth::oasis
