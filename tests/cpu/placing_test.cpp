// `--cpu aware` chooses where jobs start: by GPUs and cores together, beside any policy.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "cpu/cpu_tuner.h"
#include "perf/cpu_allocation.h"
#include "support/cpu_models.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test::cpu_placing_tests {
namespace {

/// f(C) of the worked examples.
double f(double cores, int theta) {
  return std::min(1.0, (std::log(cores) + 0.2 * cores) / (std::log(theta) + 0.2 * theta));
}

/// Servers of 4 GPUs and 24 cores.
Scenario servers(int count, const std::vector<std::string>& models, double duration = 1000) {
  Scenario scenario;
  scenario.cluster = std::to_string(count) + "x4";
  scenario.placement = "best-fit";
  scenario.node_cpus = 24;
  scenario.profiles = cpu_poster_models();
  scenario.effects = {.sharing = false, .cpu = true};
  for (const std::string& model : models)
    scenario.jobs.push_back({.duration = duration, .model = model});
  return scenario;
}

/// The server each job first started on.
class FirstServers final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (begins_stretch(action.kind)) server.try_emplace(action.job, action.slices.front().node);
    preempted_ += action.kind == ActionKind::Preempt ? 1 : 0;
  }
  [[nodiscard]] std::vector<std::uint32_t> in_order() const {
    std::vector<std::uint32_t> all;
    for (const auto& [job, node] : server) all.push_back(node.value);
    return all;
  }
  std::map<JobId, NodeId> server;
  int preempted_ = 0;
};

Outcome run_cpu(Scenario scenario, std::string_view mode, const CpuTunerOptions& options = {},
                Observer* observer = nullptr) {
  auto tuner = make_cpu_tuner(mode, options);
  EXPECT_TRUE(tuner.has_value());
  scenario.tuner = tuner->get();
  return run(scenario, observer);
}

constexpr CpuTunerOptions kWithoutPlacing{.place = false};
constexpr CpuTunerOptions kPatient{.wait = std::chrono::seconds{60}};

// Because best fit by GPUs alone puts the four on one server, which has 24 of the 88 cores they
// want.
TEST(CpuPlacing, HungryJobsSpreadOverServersWithIdleCores) {
  const Scenario mix = servers(4, {"OverFeat", "OverFeat", "OverFeat", "OverFeat", "LanguageModel",
                                   "LanguageModel", "LanguageModel", "LanguageModel"});
  const Outcome aware = run_cpu(mix, "aware");
  for (std::size_t i = 0; i < mix.jobs.size(); ++i) EXPECT_NEAR(aware.finish[i], 1000, 1e-3);
  const Outcome stay = run_cpu(mix, "aware", kWithoutPlacing);
  const Outcome role = run_cpu(mix, "role");
  EXPECT_NEAR(stay.finish[0], 1000 / f(6, 22), 1e-3);
  EXPECT_NEAR(role.finish[0], 1000 / f(4, 22), 1e-3);
  EXPECT_LT(aware.sum_jct, stay.sum_jct);
  EXPECT_LT(stay.sum_jct, role.sum_jct);
}

// Three servers; columns are what is left of GPUs and cores, the larger one counts, the least wins.
//   GoogLeNet 11      all empty                                                  -> 0
//   LanguageModel 1   0: 2/4, 12/24 = .5      1: 3/4, 23/24 = .96                -> 0
//   OverFeat 22       0: 12 < 22              1: 3/4, 2/24 = .75                 -> 1
//   DeepSpeech 3      0: 1/4, 9/24 = .375     1: 2 < 3       2: .875             -> 0
//   LanguageModel 1   0: 0/4, 8/24 = .33      1: 2/4, 1/24 = .5                  -> 0
//   LanguageModel 1   0: no GPU               1: .5          2: .96              -> 1
TEST(CpuPlacing, TakesTheLeastDominantRestOfTheServersWithItsCores) {
  FirstServers seen;
  const Outcome outcome = run_cpu(servers(3, {"GoogLeNet", "LanguageModel", "OverFeat",
                                              "DeepSpeech", "LanguageModel", "LanguageModel"}),
                                  "aware", {}, &seen);
  EXPECT_EQ(seen.in_order(), (std::vector<std::uint32_t>{0, 0, 1, 0, 0, 1}));
  for (const double finish : outcome.finish) EXPECT_NEAR(finish, 1000, 1e-3);
}

// Two servers, one with OverFeat (22), one with AlexNet and DeepSpeech (19 + 3): neither has the 19
// that another AlexNet wants. Allocating both on trial says where the jobs together gain more.
TEST(CpuPlacing, WithoutEnoughCoresTheGreatestObjectiveDecides) {
  const auto table = [](int theta) {
    std::vector<double> speeds{0};
    for (int cores = 1; cores <= 24; ++cores) speeds.push_back(f(cores, theta));
    return speeds;
  };
  const auto overfeat = table(22), alexnet = table(19), deepspeech = table(3);
  const auto gain = [&](std::vector<CpuGang> gangs) {
    CpuAllocator allocator{CpuObjective::FairFloor};
    std::vector<std::int32_t> cores(gangs.size());
    EXPECT_TRUE(allocator.allocate({24, 4}, gangs, cores));
    const double before = cpu_objective(gangs, cores);
    gangs.push_back({.speeds = alexnet});
    cores.push_back(0);
    EXPECT_TRUE(allocator.allocate({24, 4}, gangs, cores));
    return cpu_objective(gangs, cores) - before;
  };
  const double beside_overfeat = gain({{.speeds = overfeat}});
  const double beside_two = gain({{.speeds = alexnet}, {.speeds = deepspeech}});
  ASSERT_GT(std::abs(beside_overfeat - beside_two), 0.01);
  FirstServers seen;
  const Outcome outcome =
      run_cpu(servers(2, {"OverFeat", "AlexNet", "DeepSpeech", "AlexNet"}), "aware", {}, &seen);
  ASSERT_EQ(seen.in_order().size(), 4U);
  EXPECT_EQ(seen.in_order()[0], 0U);
  EXPECT_EQ(seen.in_order()[1], 1U);
  EXPECT_EQ(seen.in_order()[2], 1U);
  EXPECT_EQ(seen.in_order()[3], beside_overfeat > beside_two ? 0U : 1U);
  EXPECT_EQ(outcome.start[3], 0);  // nobody waits unless told to
}

TEST(CpuPlacing, AJobWaitsForCoresForAMinuteAtMost) {
  Scenario scenario = servers(1, {"OverFeat", "OverFeat"});
  scenario.jobs[1].submit = 10;
  EXPECT_EQ(run_cpu(scenario, "aware", kPatient).start[1], 70);
  EXPECT_EQ(run_cpu(scenario, "aware").start[1], 10);
  // A server comes free before.
  scenario.jobs[0].duration = 40;
  const Outcome outcome = run_cpu(scenario, "aware", kPatient);
  EXPECT_EQ(outcome.start[1], 40);
  EXPECT_NEAR(outcome.finish[1], 1040, 1e-3);
}

// Or a queue of them would wait a minute one after the other.
TEST(CpuPlacing, AllJobsShareOnePatience) {
  Scenario scenario = servers(1, {"OverFeat", "OverFeat", "OverFeat", "OverFeat"});
  for (std::size_t i = 1; i < 4; ++i) scenario.jobs[i].submit = 10.0 * static_cast<double>(i);
  const Outcome outcome = run_cpu(scenario, "aware", kPatient);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(outcome.start[i], 70) << i;
}

// GPUs are there for B, only cores are not: that is no reason to stop A.
TEST(CpuPlacing, NobodyIsStoppedForCores) {
  Scenario scenario = servers(1, {"OverFeat", "OverFeat"});
  scenario.jobs[1].submit = 10;
  scenario.jobs[1].priority = 9;
  for (const PolicyEntry& entry : policy_registry()) {
    const PolicyTraits traits = traits_of(entry);
    if (!traits.preempts || traits.shares_devices) continue;
    FirstServers seen;
    scenario.policy = entry.name;
    const Outcome outcome = run_cpu(scenario, "aware", kPatient, &seen);
    EXPECT_EQ(outcome.preemptions[0], 0) << entry.name;
  }
}

TEST(CpuPlacing, EveryPolicyStartsItsJobsWithinAMinuteOfWhenItWouldHave) {
  for (const PolicyEntry& entry : policy_registry()) {
    SCOPED_TRACE(entry.name);
    Scenario scenario = servers(1, {"OverFeat", "OverFeat", "GoogLeNet"});
    scenario.jobs[1].submit = 10;
    scenario.jobs[2].submit = 25;
    scenario.policy = entry.name;
    CpuTunerOptions options = cpu_options_for(**make_policy(entry.name));
    const Outcome aware = run_cpu(scenario, "aware", options);
    options.place = false;
    const Outcome stay = run_cpu(scenario, "aware", options);
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
      EXPECT_LE(aware.start[i], stay.start[i] + 60) << "job " << i;
  }
}

TEST(CpuPlacing, AGangStaysTogether) {
  Scenario scenario = servers(3, {"OverFeat"});
  scenario.jobs.push_back({.gpus = 3, .duration = 1000, .model = "Bi-Att-Flow"});
  FirstServers seen;
  const Outcome outcome = run_cpu(scenario, "aware", {}, &seen);
  // Three workers of eight cores fill a server of their own.
  EXPECT_EQ(seen.in_order(), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_NEAR(outcome.finish[1], 1000, 1);
}

// A mix that wants as many cores as there are, on random arrivals: by GPUs alone best fit starves
// some servers and leaves cores idle on others.
TEST(CpuPlacing, BeatsRoleAndItselfWithoutPlacingOnAHungryMix) {
  Scenario scenario = servers(8, {});
  Rng rng{17};
  double now = 0;
  const char* const models[] = {"AlexNet",       "OverFeat",      "LanguageModel", "WaveNet",
                                "LanguageModel", "LanguageModel", "DeepSpeech",    "LanguageModel"};
  for (int i = 0; i < 120; ++i) {
    now += 120.0 + static_cast<double>(rng.below(240));
    scenario.jobs.push_back({.submit = now,
                             .duration = 1800.0 + static_cast<double>(rng.below(3600)),
                             .model = models[rng.below(8)]});
  }
  const CpuTunerOptions options = cpu_options_for(**make_policy("fifo"));
  CpuTunerOptions stay_put = options;
  stay_put.place = false;
  const Outcome aware = run_cpu(scenario, "aware", options);
  const Outcome stay = run_cpu(scenario, "aware", stay_put);
  const Outcome role = run_cpu(scenario, "role");
  EXPECT_LT(aware.sum_jct, stay.sum_jct);
  EXPECT_LT(aware.sum_jct, 0.8 * role.sum_jct);
}

TEST(CpuPlacing, TheSameRunsGiveTheSameBytesUnderEveryPlacement) {
  for (const PlacementInfo& info : placements()) {
    if (info.name == "count") continue;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(info.name + ", seed " + std::to_string(seed));
      Scenario scenario = random_scenario(seed, {.many_nodes = true});
      scenario.policy = "srtf";
      scenario.placement = info.name;
      scenario.node_cpus = 16;
      scenario.profiles = cpu_poster_models();
      scenario.effects = {.sharing = false, .cpu = true};
      const char* const models[] = {"AlexNet", "GoogLeNet", "LanguageModel", "no such model"};
      for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        scenario.jobs[i].model = models[i % 4];
        scenario.jobs[i].duration *= 100;
      }
      const CpuTunerOptions options = cpu_options_for(**make_policy("srtf"));
      const Outcome once = run_cpu(scenario, "aware", options);
      EXPECT_EQ(run_cpu(scenario, "aware", options).digest, once.digest);
      for (const JobState state : once.state)
        EXPECT_TRUE(state == JobState::Completed || state == JobState::Rejected);
    }
  }
}

}  // namespace
}  // namespace berth::test::cpu_placing_tests
