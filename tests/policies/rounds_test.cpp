// Rounds on a grid, and wake-ups that come when they come.
#include "base/rounds.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace berth::rounds_tests {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::seconds;

constexpr Time at(Duration since) { return kTimeZero + since; }

TEST(Grid, CountsPeriodsFromTimeZero) {
  constexpr Grid grid{seconds{10}};
  static_assert(grid.at(at(seconds{0})) == 0 && grid.from(at(seconds{0})) == 0);
  static_assert(grid.at(at(seconds{19})) == 1 && grid.from(at(seconds{19})) == 2);
  static_assert(grid.at(at(seconds{20})) == 2 && grid.from(at(seconds{20})) == 2);
  static_assert(grid.at(at(microseconds{-1})) == -1 && grid.from(at(microseconds{-1})) == 0);
  static_assert(grid.at_or_before(at(seconds{19})) == at(seconds{10}));
  static_assert(grid.at_or_after(at(seconds{19})) == at(seconds{20}));
  static_assert(grid.at_or_after(at(seconds{20})) == at(seconds{20}));
  static_assert(grid.after(at(seconds{20})) == at(seconds{30}));
}

TEST(Rounds, AskForNothingUntilSomethingStirs) {
  const Rounds rounds{seconds{10}};
  EXPECT_TRUE(rounds.is_settled());
  EXPECT_FALSE(rounds.is_due(at(hours{1})));
  EXPECT_EQ(rounds.wakeup(at(hours{1})), std::nullopt);
}

TEST(Rounds, AreHeldOnTheNextGridPointAfterSomethingStirred) {
  Rounds rounds{seconds{10}};
  rounds.stir(at(seconds{13}));
  EXPECT_FALSE(rounds.is_due(at(seconds{13})));
  EXPECT_EQ(rounds.wakeup(at(seconds{13})), at(seconds{20}));
  rounds.stir(at(seconds{15}));  // more happens: still that one
  EXPECT_FALSE(rounds.is_due(at(seconds{19})));
  EXPECT_TRUE(rounds.is_due(at(seconds{20})));
  rounds.hold(at(seconds{20}));
  EXPECT_FALSE(rounds.is_due(at(seconds{20})));
  EXPECT_EQ(rounds.wakeup(at(seconds{20})), at(seconds{30}));
}

TEST(Rounds, OnAGridPointWhatHappensIsDealtWithAtOnce) {
  Rounds rounds{seconds{10}};
  rounds.stir(at(seconds{20}));
  EXPECT_TRUE(rounds.is_due(at(seconds{20})));
}

TEST(Rounds, AreDueHoweverLateTheWakeupComesAndHeldOnce) {
  for (const Duration late :
       {Duration{microseconds{1}}, Duration{seconds{3}}, Duration{hours{5}} + seconds{4}}) {
    Rounds rounds{seconds{10}};
    rounds.stir(at(seconds{13}));
    const Time now = at(seconds{20}) + late;
    EXPECT_TRUE(rounds.is_due(now));
    // It stands for the last grid point that has come, whose period is under way.
    EXPECT_EQ(rounds.coming(now), rounds.grid().at_or_before(now));
    rounds.hold(now);
    EXPECT_FALSE(rounds.is_due(now)) << "what passed unseen is not made up for";
    EXPECT_EQ(rounds.wakeup(now), rounds.grid().after(now)) << "back on the grid";
    EXPECT_EQ(rounds.coming(now), rounds.grid().at_or_before(now)) << "the round that is held";
    EXPECT_EQ(rounds.coming(now + microseconds{1}), rounds.grid().after(now));
  }
}

TEST(Rounds, BetweenTwoOfThemTheNextOneComes) {
  Rounds rounds{seconds{10}};
  rounds.stir(at(seconds{13}));
  EXPECT_EQ(rounds.number(at(seconds{13})), 2);
  EXPECT_EQ(rounds.number(at(seconds{20})), 2);
  EXPECT_EQ(rounds.number(at(seconds{21})), 2) << "late: the one that begins";
  rounds.hold(at(seconds{21}));
  EXPECT_EQ(rounds.number(at(seconds{21})), 2);
  EXPECT_EQ(rounds.number(at(seconds{22})), 3);
}

TEST(Rounds, SettledTheyRestAndGoingOnSkipsThePresent) {
  Rounds rounds{seconds{10}};
  rounds.stir(at(seconds{20}));
  rounds.hold(at(seconds{20}));
  rounds.settle();
  EXPECT_EQ(rounds.wakeup(at(seconds{20})), std::nullopt);
  rounds.go_on(at(seconds{20}));
  EXPECT_EQ(rounds.wakeup(at(seconds{20})), at(seconds{30}));
  rounds.hold_until(at(seconds{30}), at(seconds{70}));
  EXPECT_EQ(rounds.wakeup(at(seconds{30})), at(seconds{70}));
  rounds.stir(at(seconds{41}));
  EXPECT_EQ(rounds.wakeup(at(seconds{41})), at(seconds{50})) << "something happened before";
}

TEST(Rounds, WithoutAPeriodAreDueWheneverSomethingStirs) {
  Rounds rounds{Duration::zero()};
  rounds.stir(at(seconds{13}));
  EXPECT_TRUE(rounds.is_due(at(seconds{13})));
  rounds.hold(at(seconds{13}));
  EXPECT_FALSE(rounds.is_due(at(seconds{13})));
}

/// The naive answer: a list of all grid points that something has stirred.
TEST(Rounds, WithAnExactClockAreThoseOfTheNaiveList) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng{seed};
    const auto period = static_cast<std::int64_t>(1 + rng.below(20));
    Rounds rounds{Duration{period}};
    bool is_wanted = false;
    for (std::int64_t now = 0; now < 500; ++now) {
      const bool happens = rng.below(8) == 0;
      if (happens) rounds.stir(Time{Duration{now}});
      is_wanted = is_wanted || happens;
      const bool expected = is_wanted && now % period == 0;
      ASSERT_EQ(rounds.is_due(Time{Duration{now}}), expected) << "seed " << seed << " at " << now;
      if (!expected) continue;
      is_wanted = rng.below(2) == 0;
      rounds.hold(Time{Duration{now}});
      if (!is_wanted) rounds.settle();
    }
  }
}

TEST(Rounds, HeldLateNeverComeTwiceForOneGridPoint) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng{seed};
    Rounds rounds{seconds{7}};
    Time now = kTimeZero;
    std::int64_t last = -1;
    rounds.stir(now);
    for (int i = 0; i < 300; ++i) {
      const auto wakeup = rounds.wakeup(now);
      ASSERT_TRUE(wakeup && *wakeup > now);
      const bool is_early = rng.below(3) == 0;
      const std::uint64_t late = rng.below(rng.below(20) == 0 ? 20'000'000'000 : 2'000'000);
      now = is_early ? now + (*wakeup - now) / 2 : *wakeup + Duration{std::int64_t(late)};
      if (!rounds.is_due(now)) continue;
      ASSERT_GT(rounds.number(now), last);
      last = rounds.number(now);
      rounds.hold(now);
    }
    EXPECT_GT(last, 100);
  }
}

}  // namespace
}  // namespace berth::rounds_tests
