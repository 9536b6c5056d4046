// T2: the scheduler is killed at every named point of a busy day, by each kind of crash, and begun
// again on what is left: no job lost, none twice at once, no device over its limit, every job ends
// as it does on a calm day. Then it is killed again at each point of that recovery.
//   BERTH_ALL_PAIRS=N   pairs of all kinds after every Nth point, not only after the first 200
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "support/busy_day.h"

namespace berth::test {
namespace {

constexpr std::uint64_t kFirstPoints = 200;  // with each point of the recovery from them
constexpr int kRandomPairs = 700;            // beyond, of each kind of crash

TEST(CrashPoints, TheCalmDayEndsCleanly) {
  const CalmDay calm = calm_day();
  EXPECT_EQ(calm.violations, std::vector<std::string>{});
  EXPECT_EQ(calm.ends.size(), 38U);
  EXPECT_GT(calm.points, kFirstPoints);
  EXPECT_EQ(std::ranges::count(calm.ends, LiveState::Completed, &Ends::value_type::second), 35);
  EXPECT_EQ(calm.ends.at("stubborn#0"), LiveState::Cancelled);
  EXPECT_EQ(calm.ends.at("limited#0"), LiveState::TimedOut);
  EXPECT_EQ(calm.ends.at("fails#0"), LiveState::Failed);
}

class EveryPoint : public ::testing::TestWithParam<CrashKind> {
 protected:
  /// Whether it came inside the recovery.
  bool crash_twice(const CrashPair& pair) {
    const SecondCrash crash = twice_disturbed_day(pair, calm_);
    EXPECT_EQ(crash.wrong, std::vector<std::string>{})
        << "point " << pair.first << " then " << pair.second;
    return crash.in_recovery;
  }
  const CalmDay calm_ = calm_day();
};

TEST_P(EveryPoint, OneCrashAnywhereLosesNothing) {
  for (std::uint64_t point = 1; point <= calm_.points; ++point)
    ASSERT_EQ(disturbed_day(point, GetParam(), calm_), std::vector<std::string>{})
        << "point " << point << " of " << calm_.points;
  fmt::print("points: {} single crashes\n", calm_.points);
}

// Dying again while recovering, and recovering from that.
TEST_P(EveryPoint, ACrashInsideTheRecoveryLosesNothing) {
  const char* asked = std::getenv("BERTH_ALL_PAIRS");
  const std::uint64_t every =
      asked == nullptr ? 1 : std::max(1ULL, std::strtoull(asked, nullptr, 10));
  const bool all = asked != nullptr;
  const std::uint64_t points = all ? calm_.points : std::min(calm_.points, kFirstPoints);
  std::uint64_t pairs = 0, longest = 0;
  for (std::uint64_t first = 1; first <= points; first += every) {
    for (std::uint64_t second = 1, inside = 1; inside != 0; ++second) {
      inside = 0;
      for (std::uint64_t kind = 0; kind < 3; ++kind) {
        if (!all && kind != (first + second) % 3) continue;  // each kind in turn
        if (crash_twice({first, second, GetParam(), static_cast<CrashKind>(kind)})) ++inside;
        ++pairs;
        if (HasFailure()) return;
      }
      longest = std::max(longest, second);
    }
  }
  Rng rng{7 + static_cast<std::uint64_t>(GetParam())};
  for (int i = 0; i < (all ? 0 : kRandomPairs); ++i, ++pairs) {
    crash_twice({points + 1 + rng.below(calm_.points - points), 1 + rng.below(longest), GetParam(),
                 static_cast<CrashKind>(rng.below(3))});
    if (HasFailure()) return;
  }
  fmt::print("points: {} pairs of crashes, up to {} points into the recovery\n", pairs, longest);
  EXPECT_GT(longest, 8U);
}

INSTANTIATE_TEST_SUITE_P(Crash, EveryPoint,
                         ::testing::Values(CrashKind::Kill, CrashKind::Power,
                                           CrashKind::Controller),
                         [](const auto& row) {
                           switch (row.param) {
                             case CrashKind::Kill: return "kill";
                             case CrashKind::Power: return "power";
                             case CrashKind::Controller: return "controller";
                           }
                           return "?";
                         });

}  // namespace
}  // namespace berth::test
