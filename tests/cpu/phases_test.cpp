// Jobs that validate now and then want more cores for as long as they do.
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/cpu_tuner.h"
#include "sim/phases.h"
#include "support/cpu_models.h"
#include "support/run.h"

namespace berth::test::cpu_phases_tests {
namespace {

double f(double cores, int theta) {
  return std::min(1.0, (std::log(cores) + 0.2 * cores) / (std::log(theta) + 0.2 * theta));
}

/// Trains with 3 cores for 100 s, then validates with 12 for 50 s.
Profile validating_model() {
  Profile profile = cpu_model("V", 3);
  profile.validation = {.every_seconds = 100, .seconds = 50, .cpu = cpu_model("", 12).cpu};
  return profile;
}

Scenario one_server(const std::vector<std::string>& beside, double duration = 1000) {
  Scenario scenario;
  scenario.cluster = "1x4";
  scenario.placement = "best-fit";
  scenario.node_cpus = 24;
  scenario.profiles = cpu_poster_models();
  scenario.profiles.add(validating_model());
  scenario.effects = {.sharing = false, .cpu = true};
  scenario.jobs.push_back({.duration = duration, .model = "V"});
  for (const std::string& model : beside)
    scenario.jobs.push_back({.duration = 100'000, .model = model});
  return scenario;
}

/// Cores of the first job, whenever they are set.
class CoresOfFirst final : public Observer {
 public:
  void append(Time now, const Action& action) override {
    if (action.job != JobId{0} || ends_stretch(action.kind)) return;
    seen.emplace_back(to_seconds(now), action.terms.cores_milli);
  }
  std::vector<std::pair<double, int>> seen;
};

Outcome run_cpu(Scenario scenario, std::string_view mode, const CpuTunerOptions& options = {},
                Observer* observer = nullptr) {
  auto tuner = make_cpu_tuner(mode, options);
  EXPECT_TRUE(tuner.has_value());
  scenario.tuner = tuner->get();
  return run(scenario, observer);
}

// 1000 s of work: 6 x (100 + 50) and 100 more of training; 300 s of it validate.
double finish_with(double cores) { return 700 + 300 / f(cores, 12); }

TEST(CpuPhases, LeftOverCoresAreLentForThePhase) {
  CoresOfFirst cores;
  const Outcome outcome = run_cpu(one_server({"LanguageModel"}), "aware", {}, &cores);
  EXPECT_NEAR(outcome.finish[0], 1000, 1e-3);
  ASSERT_GE(cores.seen.size(), 5U);
  const std::vector<std::pair<double, int>> begin(cores.seen.begin(), cores.seen.begin() + 5);
  EXPECT_EQ(begin, (std::vector<std::pair<double, int>>{
                       {0, 3000}, {100, 12'000}, {150, 3000}, {250, 12'000}, {300, 3000}}));
}

TEST(CpuPhases, WithoutLendingItValidatesWithTheCoresItTrainsWith) {
  const Outcome outcome = run_cpu(one_server({"LanguageModel"}), "aware", {.lend = false});
  EXPECT_NEAR(outcome.finish[0], finish_with(3), 1e-3);
}

TEST(CpuPhases, NobodyGivesCoresUpForAPhase) {
  // OverFeat holds the other 21 cores: nothing is left over.
  const Outcome outcome = run_cpu(one_server({"OverFeat"}), "aware");
  EXPECT_NEAR(outcome.finish[0], finish_with(3), 1e-3);
}

TEST(CpuPhases, FixedQuotasKnowNoPhases) {
  EXPECT_NEAR(run_cpu(one_server({}), "bind").finish[0], finish_with(6), 1e-3);
  EXPECT_NEAR(run_cpu(one_server({}), "role").finish[0], finish_with(4), 1e-3);
  EXPECT_NEAR(run_cpu(one_server({}), "shared").finish[0], 1000, 1e-3);  // takes what it wants
}

TEST(CpuPhases, WithoutAnEffectOfCoresThereAreNoPhases) {
  Scenario scenario = one_server({});
  scenario.effects = {.sharing = false, .device = true};
  CoresOfFirst cores;
  const Outcome outcome = run(scenario, &cores);
  EXPECT_NEAR(outcome.finish[0], 1000, 1e-3);
  EXPECT_EQ(cores.seen.size(), 1U);
}

// The phase follows from the work done, so that a stop in the middle of one costs nothing but time.
TEST(CpuPhases, AStoppedJobGoesOnInItsPhase) {
  Scenario scenario = one_server({});
  scenario.policy = "srtf";
  scenario.cluster = "1x1";
  scenario.node_cpus = 6;
  scenario.jobs.push_back({.submit = 120, .duration = 30, .model = "LanguageModel"});
  // Validates at six cores from 100 on, is away from 120 to 150.
  const Outcome outcome = run_cpu(scenario, "bind");
  EXPECT_EQ(outcome.preemptions[0], 1);
  EXPECT_NEAR(outcome.finish[0], finish_with(6) + 30, 1e-3);
}

TEST(CpuPhases, WherePhasesEnd) {
  ProfileSet profiles;
  const ProfileId model = profiles.add(validating_model());
  Phases phases{2, profiles};
  const auto s = [](double seconds) { return seconds_to_duration(seconds); };
  EXPECT_EQ(phases.begin(JobId{0}, model, s(0)), Phase::Training);
  EXPECT_EQ(phases.left(JobId{0}, s(30)), s(70));
  EXPECT_EQ(phases.next(JobId{0}), Phase::Validation);
  EXPECT_EQ(phases.left(JobId{0}, s(100)), s(50));
  EXPECT_EQ(phases.next(JobId{0}), Phase::Training);
  EXPECT_EQ(phases.left(JobId{0}, s(150)), s(100));
  EXPECT_EQ(phases.begin(JobId{0}, model, s(420)), Phase::Validation);  // 300 + 120
  EXPECT_EQ(phases.left(JobId{0}, s(420)), s(30));
  EXPECT_EQ(phases.begin(JobId{1}, ProfileSet::fallback(), s(5)), Phase::Training);
  EXPECT_FALSE(phases.left(JobId{1}, s(5)).has_value());
}

}  // namespace
}  // namespace berth::test::cpu_phases_tests
