// Random lives: everything that can go wrong does, in an order that only the seed knows, and then
// every job has to be over, once, with what it used on its account.
// In eight parts, which may run side by side; each has to meet everything there is to meet.
//   BERTH_SEEDS=N   so many lives instead of the default; BERTH_FIRST_SEED=S begins there
//   BERTH_POLICY=P  all of them under this policy, as with BERTH_SEED=S
//   BERTH_SEED=S    only this one, with its last events: how a failure is looked at
#include <gtest/gtest.h>

#include <unistd.h>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

#include "policies/registry.h"
#include "support/random_life.h"
#include "support/sanitized.h"

namespace berth::test {
namespace {

constexpr std::uint64_t kDefaultLives = kIsSanitized ? 1000 : 10'000;
constexpr std::uint64_t kParts = 8;
constexpr std::uint64_t kLivesForEverything = 1000;  // in a part: then nothing may be missing

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::optional<std::string> policy_from_outside() {
  const char* name = std::getenv("BERTH_POLICY");
  return name == nullptr ? std::nullopt : std::optional<std::string>{name};
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

std::uint64_t living_seed = 0;
/// A broken invariant of the program itself ends the process: the seed must not be lost with it.
void tell_seed(int) {
  char text[96];
  const auto end =
      fmt::format_to_n(text, sizeof text, "replay: BERTH_SEED={} lives_test\n", living_seed);
  static_cast<void>(!::write(STDERR_FILENO, text, end.size));
}

/// Everything needed to see it happen again.
std::string account_of(const LifeSettings& settings, const LifeReport& first) {
  const LifeReport again = live_through(settings);
  const LifeSettings small = shrunk(settings);
  const LifeReport report = live_through(small, KeepLog::Yes);
  std::string text;
  for (const std::string& line : report.log) text += line + "\n";
  text += "smallest life that goes wrong: " + to_text(small);
  for (const std::string& violation : report.violations) text += "VIOLATED " + violation + "\n";
  text += "the whole life: " + to_text(settings);
  for (const std::string& violation : first.violations) text += "VIOLATED " + violation + "\n";
  if (again.digest != first.digest) text += "VIOLATED the same seed gave another life\n";
  return text + fmt::format("version " BERTH_VERSION
                            ", digest {:016x}\nreplay: BERTH_SEED={} BERTH_POLICY={} lives_test\n",
                            first.digest, settings.seed, settings.policy);
}

constexpr std::array kRecordKinds = {"life", "submit", "intent", "started",
                                     "wish", "end",    "change", "setting"};
/// Faults that may come after a record of any kind. The others come with their records: a shim is
/// late after an intent; recovery writes that it lives, and ends.
constexpr std::array kAtAnyTime = {"kill",        "power",   "controller", "disk",     "full-disk",
                                   "late-events", "cancels", "holds",      "requeues", "suspends",
                                   "policies",    "nodes",   "changes",    "shares",   "repeats",
                                   "clock-jumps", "absurd",  "late-wakes"};
constexpr std::array kWithTheirRecords =
    std::to_array<std::pair<const char*, const char*>>({{"refusals", "intent"},
                                                        {"late-claims", "intent"},
                                                        {"in-recovery", "life"},
                                                        {"in-recovery", "end"},
                                                        {"shim-deaths", "intent"},
                                                        {"shim-deaths", "started"},
                                                        {"stubborn", "wish"},
                                                        {"flaky", "intent"},
                                                        {"twice-told", "intent"},
                                                        {"twice-told", "end"},
                                                        {"slow-passes", "submit"},
                                                        {"slow-passes", "intent"},
                                                        {"slow-passes", "started"},
                                                        {"slow-passes", "end"}});

/// What all lives together have met.
struct Tally {
  std::uint64_t lives = 0, deaths = 0, faults = 0, jobs = 0, records = 0;
  double seconds = 0;
  std::map<std::string, std::uint64_t> deaths_at;
  LiveWorld::Strikes struck;
  std::array<std::uint64_t, 4> found{};
  std::set<std::string> policies;

  void add(const LifeSettings& settings, const LifeReport& report) {
    ++lives;
    deaths += static_cast<std::uint64_t>(report.lives - 1);
    jobs += report.jobs;
    records += report.records;
    seconds += report.seconds;
    for (const auto& [where, count] : report.deaths_at) deaths_at[where] += count;
    for (const auto& [pair, count] : report.struck) {
      struck[pair] += count;
      faults += count;
    }
    for (std::size_t i = 0; i < found.size(); ++i) found[i] += report.found[i];
    policies.insert(settings.policy);
  }
  void expect(const std::string& fault, const std::string& record) const {
    EXPECT_TRUE(struck.contains({fault, record})) << "no " << fault << " after a record " << record;
  }
  void expect_everything() const {
    for (const char* point :
         {"store.appended", "store.committing", "store.committed", "world.publishing",
          "supervisor.written", "supervisor.signalled", "supervisor.launched", "any time", "disk"})
      EXPECT_TRUE(deaths_at.contains(point)) << "nobody died at " << point;
    for (const char* fault : kAtAnyTime) {
      for (const char* record : kRecordKinds) expect(fault, record);
    }
    for (const auto& [fault, record] : kWithTheirRecords) expect(fault, record);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_GT(found[i], 0U) << "recovery never met case " << i;
    EXPECT_EQ(policies.size(), policy_registry().size());
  }
  [[nodiscard]] std::string text(double cpu) const {
    constexpr double kYear = 365.25 * 86'400;
    return fmt::format(
        "lives: {} lives, {} policies, {:.2f} simulated years, {} jobs, {} records, {} faults, "
        "{} deaths; recovery found {} alive, {} ended, {} lost, {} void; {} points, {} pairs; "
        "{:.1f} s CPU, {:.0f} times as fast as real time\n",
        lives, policies.size(), seconds / kYear, jobs, records, faults, deaths, found[0], found[1],
        found[2], found[3], deaths_at.size(), struck.size(), cpu, seconds / std::max(cpu, 1e-3));
  }
};

class Lives : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Lives, EveryJobEndsOnceWhateverHappens) {
  if (std::getenv("BERTH_SEED") != nullptr) GTEST_SKIP() << "one seed is replayed";
  std::signal(SIGABRT, tell_seed);
  const std::uint64_t count = number_from("BERTH_SEEDS", kDefaultLives);
  const std::uint64_t first = number_from("BERTH_FIRST_SEED", 1);
  const std::uint64_t end = first + count * (GetParam() + 1) / kParts;
  const double begun = cpu_seconds();
  Tally tally;
  for (std::uint64_t seed = first + count * GetParam() / kParts; seed < end; ++seed) {
    living_seed = seed;
    const LifeSettings settings = draw_life(seed, policy_from_outside());
    const LifeReport report = live_through(settings);
    ASSERT_TRUE(report.violations.empty()) << account_of(settings, report);
    if (seed % 16 == 0) {  // the same life again, to the byte
      ASSERT_EQ(live_through(draw_life(seed, policy_from_outside())).digest, report.digest)
          << "replay: BERTH_SEED=" << seed << " lives_test";
    }
    tally.add(settings, report);
  }
  fmt::print("{}", tally.text(cpu_seconds() - begun));
  if (tally.lives >= kLivesForEverything && !policy_from_outside()) tally.expect_everything();
}
INSTANTIATE_TEST_SUITE_P(Part, Lives, ::testing::Range<std::uint64_t>(0, kParts));

TEST(OneLife, IsReplayed) {
  const std::uint64_t seed = number_from("BERTH_SEED", 0);
  if (seed == 0) GTEST_SKIP() << "BERTH_SEED names none";
  living_seed = seed;
  std::signal(SIGABRT, tell_seed);
  const LifeSettings settings = draw_life(seed, policy_from_outside());
  const LifeReport report = live_through(settings);
  fmt::print("{}digest {:016x}\n", to_text(settings), report.digest);
  EXPECT_TRUE(report.violations.empty()) << account_of(settings, report);
}

}  // namespace
}  // namespace berth::test
