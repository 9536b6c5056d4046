// T0: the protocol has no violation and no dead end, and each rule is needed: without it the
// explorer finds what breaks, by the way that specs call shortest. Numbers of states are those of
// this model; they are here so that a change of it does not go unseen.
#include "store/protocol_model.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace berth::test {
namespace {

const std::string kUpToAck = "submit 0 · fsync · ack 0 · ";
const std::string kUpToClaim = kUpToAck + "intent 0.1 · fsync · spawn 0 · shim 0 claims · ";
const std::string kSecondTry = "intent 0.2 · fsync · spawn 0 · shim 0 claims";

TEST(Protocol, IsSafeAndAlwaysGetsDone) {
  const Exploration found = explore({});
  for (const std::string& trace : found.broken) EXPECT_EQ(trace, "");
  EXPECT_EQ(found.stuck, 0U) << found.stuck_trace;
  EXPECT_EQ(found.states, 173'541U);
  EXPECT_EQ(found.crash_transitions, 52'566U);
  fmt::print("model: {} states, {} crash transitions, {} stuck\n", found.states,
             found.crash_transitions, found.stuck);
}

struct Case {
  const char* name;
  Mutant mutant;
  std::vector<int> breaks;
  std::string trace;  // to the first of them
};

class MutantTest : public ::testing::TestWithParam<Case> {};

TEST_P(MutantTest, IsFoundByTheShortestWay) {
  const Exploration found = explore({.mutant = GetParam().mutant});
  std::vector<int> broken;
  for (int i = 1; i <= 4; ++i)
    if (!found.broken[static_cast<std::size_t>(i - 1)].empty()) broken.push_back(i);
  EXPECT_EQ(broken, GetParam().breaks);
  EXPECT_EQ(found.broken[static_cast<std::size_t>(GetParam().breaks.front() - 1)],
            GetParam().trace);
}

INSTANTIATE_TEST_SUITE_P(
    All, MutantTest,
    ::testing::Values(
        Case{"M1", Mutant::AckBeforeSync, {1}, "submit 0 · ack 0 · power loss · recover"},
        Case{"M2",
             Mutant::SpawnThenLog,
             {2, 3, 4},
             kUpToAck + "spawn 0 · shim 0 claims · kill -9 · recover · spawn 0 · shim 0 claims"},
        Case{"M3",
             Mutant::NoTombstone,
             {2, 3, 4},
             kUpToAck + "intent 0.1 · fsync · spawn 0 · kill -9 · recover · shim 0 claims · " +
                 kSecondTry},
        Case{"M4", Mutant::FreeAtSignal, {2, 3, 4}, kUpToClaim + "preempt 0 · " + kSecondTry},
        Case{"M5",
             Mutant::RequeueNotAdopt,
             {2, 3, 4},
             kUpToClaim + "kill -9 · recover · " + kSecondTry},
        Case{"M6",
             Mutant::SpawnBeforeSync,
             {2, 3, 4},
             kUpToAck + "intent 0.1 · spawn 0 · shim 0 claims · controller power loss · recover · "
                        "intent 0.2 · spawn 0 · shim 0 claims"},
        Case{"M7",
             Mutant::EndAckBeforeSync,
             {4},
             kUpToClaim + "job 0 ends · write end 0 · ack end 0 · power loss · recover"}),
    [](const auto& row) { return row.param.name; });

// Safety alone does not see this one: a tombstone outlives the journal's memory of the attempt.
TEST(Protocol, NumbersFromTheJournalLeadIntoADeadEnd) {
  const Exploration found = explore({.mutant = Mutant::NumberFromJournal});
  for (const std::string& trace : found.broken) EXPECT_EQ(trace, "");
  EXPECT_EQ(found.stuck_trace, kUpToAck + "intent 0.1 · kill -9 · recover · power loss");
  EXPECT_EQ(found.stuck, 728U);
}

// A harness that kills only the daemon, or only the whole machine, is blind to M6.
TEST(Protocol, WithoutAControllersPowerLossAnUnsyncedIntentLooksSafe) {
  const Exploration found =
      explore({.mutant = Mutant::SpawnBeforeSync, .has_controller_power_loss = false});
  for (const std::string& trace : found.broken) EXPECT_EQ(trace, "");
  EXPECT_EQ(found.states, 502'021U);
}

}  // namespace
}  // namespace berth::test
