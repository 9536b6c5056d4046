// The incremental policies against their plain references, on random traces: with counting
// placement equal finish times and preemptions, job by job; on nodes equal actions.
#include <gtest/gtest.h>

#include "support/naive_policies.h"
#include "support/random_scenario.h"
#include "support/run.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

void expect_same(const Scenario& scenario, Policy& reference, std::uint64_t seed) {
  const Outcome expected = run_with(scenario, reference);
  const Outcome got = run(scenario);
  ASSERT_EQ(got.finish, expected.finish) << scenario.policy << " seed " << seed;
  ASSERT_EQ(got.preemptions, expected.preemptions) << scenario.policy << " seed " << seed;
}

/// Gangs that are not to be spread, cores that run out, jobs that are not to be preempted.
Scenario on_devices(std::uint64_t seed, int max_jobs) {
  Scenario scenario =
      random_scenario(seed, {.max_jobs = max_jobs, .max_gpus = 5, .many_nodes = true});
  Rng rng = Rng{seed}.fork("cores");
  const std::vector<std::string> known{"consolidated", "best-fit", "skew", "first-fit"};
  scenario.placement = known[seed % known.size()];
  if (seed % 3 != 0) scenario.node_cpus = 8;
  for (JobSpec& job : scenario.jobs) {
    job.cpus = static_cast<int>(rng.below(7)) * job.gpus / 2;
    if (rng.below(2) == 0) job.deadline = job.submit + static_cast<double>(rng.below(60));
    job.preemptible = seed % 2 == 0 || rng.below(5) > 0;
  }
  return scenario;
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
                         [](const auto& row) { return suite_name(row.param.policy); });

struct RankWalkCase {
  std::string policy;
  NaiveRankWalk::Key key;
  double quantum;
};

class RankWalk : public ::testing::TestWithParam<RankWalkCase> {};

// On nodes: the same devices in the same order, to the last bit.
TEST_P(RankWalk, EqualsTheFullWalkWhereJobsSitOnDevices) {
  int moves = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Scenario scenario = on_devices(seed, seed % 10 == 0 ? 60 : 14);
    scenario.policy = GetParam().policy;
    if (GetParam().quantum > 0)
      scenario.settings = {{"quantum", fmt::format("{}", GetParam().quantum)}};
    if (seed % 3 == 0) scenario.sim.costs.resume = std::chrono::seconds{2};
    if (seed % 5 == 0) scenario.sim.costs.preempt = std::chrono::milliseconds{1500};
    if (seed % 4 == 0) scenario.sim.costs.migrate = std::chrono::seconds{1};
    NaiveRankWalk reference{GetParam().key, seconds_to_duration(GetParam().quantum)};
    const Outcome expected = run_with(scenario, reference);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    // Nobody new is there after a refusal: least attained service does not look again then.
    if (GetParam().quantum > 0 && !expected.rejected.empty()) continue;
    const Outcome got = run(scenario);
    ASSERT_EQ(got.finish, expected.finish) << scenario.policy << " seed " << seed;
    ASSERT_EQ(got.digest, expected.digest) << scenario.policy << " seed " << seed;
    for (const int each : got.migrations) moves += each;
  }
  EXPECT_GT(moves, 0);  // somebody had to make way, and went elsewhere
}

INSTANTIATE_TEST_SUITE_P(
    All, RankWalk,
    ::testing::Values(RankWalkCase{"srtf", NaiveRankWalk::Key::WorkLeft, 0},
                      RankWalkCase{"srsf", NaiveRankWalk::Key::WorkLeftGpus, 0},
                      RankWalkCase{"las", NaiveRankWalk::Key::Attained, 7},
                      RankWalkCase{"las-2d", NaiveRankWalk::Key::AttainedGpus, 7},
                      RankWalkCase{"edf", NaiveRankWalk::Key::Deadline, 0}),
    [](const auto& row) { return suite_name(row.param.policy); });

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

TEST_P(TiresiasProperty, EqualsTheReferencePassWhereJobsSitOnDevices) {
  int moves = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Scenario scenario = on_devices(seed, seed % 10 == 0 ? 50 : 12);
    scenario.policy = "tiresias-l";
    const std::vector<double> thresholds =
        seed % 2 == 0 ? std::vector<double>{12} : std::vector<double>{6, 20};
    scenario.settings = {{"thresholds", seed % 2 == 0 ? "12" : "6,20"},
                         {"promote_knob", GetParam()}};
    const double knob =
        GetParam() == "off" ? std::numeric_limits<double>::infinity() : std::stod(GetParam());
    NaiveTiresias reference{thresholds, knob};
    const Outcome expected = run_with(scenario, reference);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    const Outcome got = run(scenario);
    ASSERT_EQ(got.finish, expected.finish) << "seed " << seed;
    ASSERT_EQ(got.preemptions, expected.preemptions) << "seed " << seed;
    ASSERT_EQ(got.migrations, expected.migrations) << "seed " << seed;
    for (const int each : got.migrations) moves += each;
  }
  EXPECT_GT(moves, 0);  // somebody had to make way, and went elsewhere
}

INSTANTIATE_TEST_SUITE_P(Knob, TiresiasProperty, ::testing::Values("off", "1", "2"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace berth::test
