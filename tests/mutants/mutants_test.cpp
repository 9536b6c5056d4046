// Protocols that are wrong on purpose (table.cmake): each has to be caught within 1,000 random
// lives, or else by the busy day with a crash at every point. This program is linked with copies of
// the sources in which the mistakes can be switched on.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "support/busy_day.h"
#include "support/mutant.h"
#include "support/random_life.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

constexpr std::array kMutants = std::to_array<Mutant>({
#include "mutant_table.inc"
});
constexpr std::uint64_t kMostLives = 1000;

/// Simple policies: what is wrong is below them, and they are fast.
LifeSettings draw(std::uint64_t seed) {
  constexpr std::array kPolicies = {"easy", "srtf", "gandiva", "las-2d"};
  // The lives of which it is known that they catch the mutants are older than slow passes.
  return without(draw_life(seed, kPolicies[seed % kPolicies.size()]), FaultClass::SlowPasses);
}

/// How a mutant was caught; nothing: it was not.
std::optional<std::string> caught_in_a_life(int progress) {
  for (std::uint64_t seed = 1; seed <= kMostLives; ++seed) {
    static_cast<void>(!::write(progress, ".", 1));
    const LifeReport report = live_through(draw(seed));
    if (!report.violations.empty()) return report.violations.front();
  }
  return std::nullopt;
}

std::optional<std::string> caught_on_the_busy_day(const CalmDay& calm) {
  if (!calm.violations.empty()) return calm.violations.front();
  for (const CrashKind kind : {CrashKind::Kill, CrashKind::Power, CrashKind::Controller}) {
    for (std::uint64_t point = 1; point <= calm.points; ++point) {
      const auto wrong = disturbed_day(point, kind, calm);
      if (!wrong.empty()) return fmt::format("point {}: {}", point, wrong.front());
    }
  }
  return std::nullopt;
}

/// What a process of its own has said: a mistake may end it, or make it go round in circles.
struct Said {
  std::string text;
  int status = 0;
};
template <class Work>
Said said_by_a_process(Work work) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const rlimit seconds{.rlim_cur = 120, .rlim_max = 120};  // of the processor
    const rlimit nothing{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_CPU, &seconds);
    ::setrlimit(RLIMIT_CORE, &nothing);
    static_cast<void>(!std::freopen("/dev/null", "w", stderr));
    std::string text;
    try {
      text = work(ends[1]);
    } catch (const std::exception& error) {
      text = fmt::format("the program itself: {}", error.what());
    }
    static_cast<void>(!::write(ends[1], text.data(), text.size()));
    ::_exit(0);
  }
  ::close(ends[1]);
  Said said;
  std::array<char, 4096> buffer{};
  for (ssize_t got; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    said.text.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, &said.status, 0), child);
  return said;
}

std::string how_it_died(int status) {
  if (!WIFSIGNALED(status)) return {};
  const int signal = WTERMSIG(status);
  return signal == SIGXCPU || signal == SIGKILL
             ? "L1: it went round in circles"
             : fmt::format("a check of the program itself (signal {})", signal);
}

class Mutants : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Mutants, IsCaught) {
  const Mutant& mutant = kMutants[GetParam() - 1];
  const std::string survives = mutant.survives;  // because of this
  const CalmDay calm = calm_day();
  ASSERT_EQ(calm.violations, std::vector<std::string>{}) << "without it";
  const auto wrong = [&] { active_mutant = static_cast<int>(GetParam()); };
  // Each life writes a dot before it begins, then what was found.
  const Said lives = said_by_a_process([&](int progress) {
    wrong();
    return caught_in_a_life(progress).value_or("");
  });
  const std::size_t lived = std::min(lives.text.find_first_not_of('.'), lives.text.size());
  const std::string found = lives.text.substr(lived) + how_it_died(lives.status);
  if (!found.empty()) {
    fmt::print("mutant: {} ({}) caught in life {}: {}\n", mutant.name, mutant.rule, lived, found);
    ASSERT_EQ(survives, "") << "it is on the list of those that survive";
    return;
  }
  ASSERT_EQ(lived, kMostLives);
  const Said day = said_by_a_process([&](int) {
    wrong();
    return caught_on_the_busy_day(calm).value_or("");
  });
  const std::string seen = day.text + how_it_died(day.status);
  if (seen.empty() && !survives.empty()) {
    fmt::print("mutant: {} ({}) survived: {}\n", mutant.name, mutant.rule, survives);
    return;
  }
  ASSERT_FALSE(seen.empty()) << mutant.name << " (" << mutant.rule << ") survived " << kMostLives
                             << " lives and the busy day";
  fmt::print("mutant: {} ({}) caught on the busy day: {}\n", mutant.name, mutant.rule, seen);
  ASSERT_EQ(survives, "") << "it is on the list of those that survive";
}

INSTANTIATE_TEST_SUITE_P(Protocol, Mutants, ::testing::Range<std::size_t>(1, kMutants.size() + 1),
                         [](const auto& row) { return suite_name(kMutants[row.param - 1].name); });

// Otherwise it would not be the mistake that is caught.
TEST(MutantsBase, WithoutAMistakeNothingIsCaught) {
  for (std::uint64_t seed = 1; seed <= kMostLives; ++seed)
    ASSERT_EQ(live_through(draw(seed)).violations, std::vector<std::string>{}) << seed;
}

// A failure has to be small enough to be understood.
// Of several that are made smaller some are as small as can be; all are smaller, still fail, and
// fail for the mistake alone.
TEST(MutantsBase, AFailureIsMadeSmallerAndStillFails) {
  constexpr int kFailures = 4;
  std::uint64_t seed = 0;
  bool is_smallest = false, is_short = false;
  for (int i = 0; i < kFailures; ++i) {
    active_mutant = 1;
    while (live_through(draw(++seed)).violations.empty()) {
    }
    const LifeSettings whole = draw(seed);
    const LifeSettings small = shrunk(whole);
    const LifeReport report = live_through(small, KeepLog::Yes);
    active_mutant = 0;
    ASSERT_FALSE(report.violations.empty());
    EXPECT_FALSE(report.log.empty());
    EXPECT_LE(small.jobs.size(), whole.jobs.size());
    EXPECT_LE(small.strikes.size(), whole.strikes.size());
    EXPECT_LT(small.classes.count(), whole.classes.count());
    ASSERT_FALSE(small.strikes.empty());
    EXPECT_TRUE(live_through(small).violations.empty()) << "without the mistake";
    // One crash is enough.
    is_smallest = is_smallest || (small.strikes.size() <= 2 && small.jobs.size() <= 2);
    // Half as long it would end before the last crash that it needs.
    is_short = is_short || small.days / 2 * 86'400 < small.strikes.back().at;
  }
  EXPECT_TRUE(is_smallest);
  EXPECT_TRUE(is_short);
}

}  // namespace
}  // namespace berth::test
