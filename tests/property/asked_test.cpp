// Asking changes nothing. A scheduler may be asked at any moment (`berth why` causes a pass), and a
// policy that starts somebody only because somebody asked has missed the moment by itself: a free
// device stood beside a job that might have had it. So every policy decides alike whether or not it
// is asked in between, in a world in which estimates are wrong both ways, jobs outlive them, and no
// clock is in step with another.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support/policy_suite.h"
#include "support/registry_scenario.h"
#include "support/run.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

/// What happened, one line for each action.
class Log final : public Observer {
 public:
  struct Line {
    Time at;
    ActionKind kind;
    std::string text;
    friend bool operator==(const Line&, const Line&) = default;
  };
  void append(Time now, const Action& action) override {
    std::string where;
    for (const Slice& slice : action.slices)
      where += fmt::format(" {}:{:x}", slice.node.value, slice.devices);
    lines.push_back(
        {now, action.kind,
         fmt::format("{:.6f} {} job {} pool {} gpus {}{}", to_seconds(now), to_string(action.kind),
                     action.job.value + 1, action.pool.value, action.gpus, where)});
  }
  [[nodiscard]] bool has(Time at, bool (*is)(ActionKind)) const {
    return std::ranges::any_of(lines,
                               [&](const Line& line) { return line.at == at && is(line.kind); });
  }
  void instant_done(Time) override { ++passes; }
  std::vector<Line> lines;
  std::size_t passes = 0;
};

double odd(Rng& rng) { return static_cast<double>(rng.below(1'000'000)) * 1e-6; }

/// Times of no common step; limits from a tenth to three times the truth; some run on for long.
Scenario unkind_scenario(const std::string& policy, std::uint64_t seed) {
  Rng rng = Rng{seed}.fork("unkind");
  Scenario scenario = scenario_for(policy, seed);
  scenario.open = true;
  scenario.estimator = seed % 4 == 0 ? "history" : seed % 4 == 1 ? "oracle:1" : "limit";
  // What runs for real is resized only if it says that it may be.
  for (std::size_t i = 0; i < scenario.jobs.size(); i += 2) {
    JobSpec& job = scenario.jobs[i];
    if (job.gpus_max == 0 && job.gpu_milli == 1000 && job.gpus > 0) job.gpus_max = 2 * job.gpus;
  }
  const double stretch = seed % 3 == 0 ? 1 : 20;
  for (JobSpec& job : scenario.jobs) {
    job.submit = job.submit * stretch + odd(rng);
    job.duration = job.duration * stretch + odd(rng);
    job.estimate = job.duration * std::vector<double>{0.1, 0.5, 0.9, 1, 1.2, 3}[rng.below(6)];
    if (job.deadline > 0) job.deadline = job.deadline * stretch + odd(rng);
  }
  return scenario;
}

std::vector<Time> random_instants(Rng rng, double until, std::size_t count) {
  std::set<Time> instants;
  for (std::size_t i = 0; i < count; ++i) instants.insert(seconds_to_time(until * odd(rng)));
  return {instants.begin(), instants.end()};
}

class LookedAt : public ::testing::TestWithParam<std::string> {};

TEST_P(LookedAt, DecidesTheSameWhetherOrNotItIsAsked) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario scenario = unkind_scenario(GetParam(), seed);
    Log alone;
    const Outcome expected = run(scenario, &alone);
    scenario.asked =
        random_instants(Rng{seed}.fork("asked"), expected.makespan, 4 * scenario.jobs.size() + 10);
    Log asked;
    ASSERT_EQ(run(scenario, &asked).digest, expected.digest) << "seed " << seed;
    ASSERT_EQ(asked.lines, alone.lines) << "seed " << seed;
  }
}

/// Runs with and without events that change nothing, up to the first difference. If that is a start
/// on devices that were free before, the policy has let them stand idle: the line of the log.
std::string start_it_had_missed(Scenario scenario, std::uint64_t seed) {
  Log alone;
  const double makespan = run(scenario, &alone).makespan;
  scenario.jobs.push_back({.submit = makespan + 1000, .user = "stranger"});
  scenario.asked =
      random_instants(Rng{seed}.fork("looked"), makespan, 4 * scenario.jobs.size() + 10);
  scenario.looks_are_events = true;
  Log looked;
  static_cast<void>(run(scenario, &looked));
  const auto differs = std::ranges::mismatch(alone.lines, looked.lines).in2;
  if (differs == looked.lines.end()) return {};
  const Time at = differs->at;
  const auto frees = [](ActionKind kind) {
    return ends_stretch(kind) || changes_devices(kind) || kind == ActionKind::Kill;
  };
  const bool was_looked = std::ranges::binary_search(scenario.asked, at);
  if (!was_looked || !looked.has(at, begins_stretch) || looked.has(at, frees)) return {};
  return differs->text;
}

TEST_P(LookedAt, StartsNobodyOnlyBecauseSomebodyLooked) {
  std::vector<std::string> missed;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::string start = start_it_had_missed(unkind_scenario(GetParam(), seed), seed);
    if (!start.empty()) missed.push_back(fmt::format("seed {}: {}", seed, start));
  }
  EXPECT_EQ(missed, std::vector<std::string>{});
}

// Being there in time is no licence to look all the time: a few passes for each job, however long
// some outlive their estimates.
TEST(Overruns, DoNotKeepAPolicyBusy) {
  for (const char* policy : {"easy", "conservative"}) {
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
      const Scenario scenario = unkind_scenario(policy, seed);
      Log log;
      static_cast<void>(run(scenario, &log));
      ASSERT_LE(log.passes, 12 * scenario.jobs.size() + 20) << policy << " seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, LookedAt, ::testing::ValuesIn(all_policies()), kByName);

}  // namespace
}  // namespace berth::test
