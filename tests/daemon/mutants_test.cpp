// Protocols that are wrong on purpose. A harness that does not notice them proves nothing: each has
// to be caught within a bounded number of random lives.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "support/random_life.h"

namespace berth::test {
namespace {

struct Mutant {
  const char* name;
  const char* rule;
  StoreMutant store = StoreMutant::None;
  HostMutant host = HostMutant::None;
};

constexpr std::uint64_t kMostLives = 200;

class Mutants : public ::testing::TestWithParam<Mutant> {};

TEST_P(Mutants, IsCaught) {
  const Mutant& mutant = GetParam();
  for (std::uint64_t seed = 1; seed <= kMostLives; ++seed) {
    // Simple policies: what is wrong is below them, and they are fast.
    LifeSettings settings = draw_life(seed, seed % 2 == 0 ? "easy" : "srtf");
    ASSERT_EQ(live_through(settings).violations, std::vector<std::string>{}) << "without it";
    settings.host.mutant = mutant.host;
    const LifeReport report = live_through(settings, KeepLog::No, mutant.store);
    if (report.violations.empty()) continue;
    fmt::print("mutant: {} ({}) caught after {} lives: {}\n", mutant.name, mutant.rule, seed,
               report.violations.front());
    return;
  }
  FAIL() << mutant.name << " survived " << kMostLives << " lives";
}

INSTANTIATE_TEST_SUITE_P(
    Protocol, Mutants,
    ::testing::Values(
        Mutant{"M1", "a submit is acknowledged before it is synced", StoreMutant::SubmitUnsynced},
        Mutant{"M2", "spawned, then written down", StoreMutant::IntentLate},
        Mutant{"M3", "no tombstone in recovery", StoreMutant::None, HostMutant::NoTombstone},
        Mutant{"M4", "devices are free when the signal is sent", StoreMutant::None,
               HostMutant::EndsOnSignal},
        Mutant{"M5", "recovery does not adopt", StoreMutant::None, HostMutant::NoAdoption},
        Mutant{"M6", "spawned before the intent is synced", StoreMutant::IntentUnsynced},
        Mutant{"M7", "an end is told before it is synced", StoreMutant::EndUnsynced}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace berth::test
