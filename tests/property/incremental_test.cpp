// The incremental policies against their plain references, on random traces with counting
// placement: equal finish times, equal preemptions, job by job.
#include <gtest/gtest.h>

#include "support/naive_policies.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

void expect_same(const Scenario& scenario, Policy& reference, std::uint64_t seed) {
  const Outcome expected = run_with(scenario, reference);
  const Outcome got = run(scenario);
  ASSERT_EQ(got.finish, expected.finish) << scenario.policy << " seed " << seed;
  ASSERT_EQ(got.preemptions, expected.preemptions) << scenario.policy << " seed " << seed;
}

struct WalkCase {
  std::string policy;
  NaiveWalk::Key key;
  double quantum;
};

class Walk : public ::testing::TestWithParam<WalkCase> {};

TEST_P(Walk, EqualsTheFullWalkOfAllJobs) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = seed % 10 == 0 ? 60 : 12});
    scenario.policy = GetParam().policy;
    if (GetParam().quantum > 0)
      scenario.settings = {{"quantum", fmt::format("{}", GetParam().quantum)}};
    if (seed % 3 == 0) scenario.sim.costs.resume = std::chrono::seconds{2};
    if (seed % 5 == 0) scenario.sim.costs.preempt = std::chrono::milliseconds{1500};
    NaiveWalk reference{GetParam().key, seconds_to_duration(GetParam().quantum)};
    expect_same(scenario, reference, seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Walk,
                         ::testing::Values(WalkCase{"srtf", NaiveWalk::Key::WorkLeft, 0},
                                           WalkCase{"srsf", NaiveWalk::Key::WorkLeftGpus, 0},
                                           WalkCase{"las", NaiveWalk::Key::Attained, 7},
                                           WalkCase{"las-2d", NaiveWalk::Key::AttainedGpus, 7}),
                         [](const auto& row) {
                           std::string name = row.param.policy;
                           std::erase(name, '-');
                           return name;
                         });

TEST(EasyProperty, EqualsAScanOfTheQueue) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = seed % 10 == 0 ? 80 : 14});
    scenario.policy = "easy";
    scenario.estimator = seed % 2 == 0 ? "oracle" : "oracle:1";
    NaiveEasy reference;
    expect_same(scenario, reference, seed);
    if (HasFatalFailure()) return;
  }
}

// With exact estimates a promise to the head is kept: jobs that jump never delay it.
TEST(EasyProperty, TheHeadStartsNoLaterThanPromised) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 25});
    scenario.policy = "easy";
    NaiveEasy reference;
    static_cast<void>(run_with(scenario, reference));
    const Outcome got = run(scenario);
    for (const auto& [head, shadow] : reference.promises) {
      const std::size_t job = given_order(scenario, head);
      ASSERT_LE(got.start[job], to_seconds(shadow)) << "seed " << seed << " job " << job + 1;
    }
  }
}

class TiresiasProperty : public ::testing::TestWithParam<std::string> {};

TEST_P(TiresiasProperty, EqualsTheReferencePass) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = seed % 10 == 0 ? 50 : 9});
    scenario.policy = "tiresias-l";
    const std::vector<double> thresholds =
        seed % 2 == 0 ? std::vector<double>{12} : std::vector<double>{6, 20};
    scenario.settings = {{"thresholds", seed % 2 == 0 ? "12" : "6,20"},
                         {"promote_knob", GetParam()}};
    const double knob =
        GetParam() == "off" ? std::numeric_limits<double>::infinity() : std::stod(GetParam());
    NaiveTiresias reference{thresholds, knob};
    expect_same(scenario, reference, seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Knob, TiresiasProperty, ::testing::Values("off", "1", "2"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace berth::test
