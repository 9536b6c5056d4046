#include <gtest/gtest.h>

#include "support/cpu_models.h"
#include "support/run.h"

namespace berth::test {
namespace {

/// Speed in proportion to cores up to `theta` of them.
Profile linear_model(std::string name, std::int32_t theta) {
  Profile profile = cpu_model(std::move(name), theta);
  profile.cpu = {.log_gain = 0, .linear_gain = 320.0 / theta, .plateau = 320, .theta = theta};
  return profile;
}

/// 8 GPUs and 24 cores a server: three for each GPU.
Scenario servers(int count, const std::string& mode) {
  Scenario scenario;
  scenario.policy = "synergy";
  scenario.settings = {{"mode", mode}};
  scenario.cluster = std::to_string(count) + "x8";
  scenario.placement = "best-fit";
  scenario.node_cpus = 24;
  scenario.effects = {.sharing = false, .cpu = true};
  for (const std::int32_t theta : {1, 3, 9})
    scenario.profiles.add(linear_model("wants" + std::to_string(theta), theta));
  return scenario;
}

/// A, B want 9 cores; C, D one; E … H three.
Scenario worked_example(const std::string& mode) {
  Scenario scenario = servers(1, mode);
  for (const char* model : {"wants9", "wants9"})
    scenario.jobs.push_back({.duration = 3000, .model = model});
  for (const char* model : {"wants1", "wants1", "wants3", "wants3", "wants3", "wants3"})
    scenario.jobs.push_back({.duration = 300, .model = model});
  return scenario;
}

TEST(Synergy, TunesTheWorkedExample) {
  const Outcome outcome = run(worked_example("tune"));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(outcome.start[i], 0);
  // Five cores of nine in the first round, all nine once the others have gone.
  const double first_round = 300.0 * 5 / 9;
  EXPECT_NEAR(outcome.finish[0], 300 + 3000 - first_round, 1e-3);
  EXPECT_NEAR(outcome.finish[1], 300 + 3000 - first_round, 1e-3);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_NEAR(outcome.finish[i], 300, 1e-3);
}

TEST(Synergy, ProportionalKeepsThreeCoresForEveryGpu) {
  const Outcome outcome = run(worked_example("proportional"));
  EXPECT_NEAR(outcome.finish[0], 9000, 1e-3);
  EXPECT_NEAR(outcome.finish[2], 300, 1e-3);
}

TEST(Synergy, GreedyLeavesGpusIdle) {
  const Outcome outcome = run(worked_example("greedy"));
  // A, B, E, F hold all 24 cores; when E and F have gone, G and H fit, then C and D.
  EXPECT_NEAR(outcome.finish[0], 3000, 1e-3);
  EXPECT_EQ(outcome.start[4], 0);
  EXPECT_EQ(outcome.start[6], 300);
  EXPECT_EQ(outcome.start[7], 300);
  EXPECT_EQ(outcome.start[2], 600);
  EXPECT_EQ(outcome.start[3], 600);
}

TEST(Synergy, OptIsAsGoodAsTuneInTheWorkedExample) {
  const Outcome opt = run(worked_example("opt"));
  const Outcome tune = run(worked_example("tune"));
  EXPECT_NEAR(opt.finish[0] + opt.finish[1], tune.finish[0] + tune.finish[1], 601);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(opt.start[i], 0);
}

TEST(Synergy, NobodyEndsLaterThanWithTheProportionalShare) {
  Rng rng{31};
  for (int round = 0; round < 20; ++round) {
    Scenario scenario = servers(2, "tune");
    for (int gpus = 16; gpus > 0;) {  // everybody runs from the beginning
      const int k = std::min(gpus, 1 << rng.below(3));
      const char* const models[] = {"wants1", "wants3", "wants9"};
      scenario.jobs.push_back({.gpus = k,
                               .duration = 200.0 + static_cast<double>(rng.below(3000)),
                               .model = models[rng.below(3)]});
      gpus -= k;
    }
    const Outcome tune = run(scenario);
    scenario.settings = {{"mode", "proportional"}};
    const Outcome fair = run(scenario);
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
      EXPECT_LE(tune.finish[i], fair.finish[i] + 1e-3) << "job " << i << " of round " << round;
    EXPECT_EQ(tune.total_preemptions, 0);
  }
}

TEST(Synergy, StartsAndStopsJobsAtRoundsOnly) {
  Scenario scenario = servers(1, "tune");
  scenario.cluster = "1x1";
  scenario.node_cpus = 3;
  scenario.settings = {{"order", "las"}};
  scenario.jobs = {{.submit = 0, .duration = 500, .model = "wants1"},
                   {.submit = 10, .duration = 500, .model = "wants1"}};
  const Outcome outcome = run(scenario);
  // Least attained service: they take turns of a round each.
  EXPECT_EQ(outcome.start[0], 0);
  EXPECT_EQ(outcome.start[1], 300);
  EXPECT_EQ(outcome.finish[0], 800);  // 0-300, 600-800; the GPU is idle until the next round
  EXPECT_EQ(outcome.finish[1], 1100);
  EXPECT_EQ(outcome.preemptions[0], 1);
}

TEST(Synergy, SrtfPutsTheShorterFirst) {
  Scenario scenario = servers(1, "tune");
  scenario.cluster = "1x1";
  scenario.node_cpus = 3;
  scenario.settings = {{"order", "srtf"}};
  scenario.jobs = {{.submit = 0, .duration = 1000, .model = "wants1"},
                   {.submit = 10, .duration = 200, .model = "wants1"}};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.finish[1], 500);   // the round at 300
  EXPECT_EQ(outcome.finish[0], 1300);  // 300 s before, 700 s from the round at 600 on
}

TEST(Synergy, FairnessPutsTheMostDelayedFirst) {
  Scenario scenario = servers(1, "tune");
  scenario.cluster = "1x1";
  scenario.node_cpus = 3;
  scenario.settings = {{"order", "ftf"}};
  scenario.jobs = {{.submit = 0, .duration = 3000, .model = "wants1"},
                   {.submit = 0, .duration = 600, .model = "wants1"}};
  const Outcome outcome = run(scenario);
  // Equal at first, so the first submitted; after a round the short one has waited half its length.
  EXPECT_EQ(outcome.start[1], 300);
  EXPECT_LT(outcome.finish[1], outcome.finish[0]);
}

TEST(Synergy, AGangKeepsWithinTheCoresOfAServer) {
  Scenario scenario = servers(1, "greedy");
  scenario.jobs = {{.gpus = 4, .duration = 600, .model = "wants9"}};
  // Four workers of nine cores do not fit into 24: six each, or greedy would wait for ever.
  const Outcome outcome = run(scenario);
  EXPECT_NEAR(outcome.finish[0], 600 * 9.0 / 6, 1);
}

TEST(Synergy, RefusesBadSettings) {
  EXPECT_FALSE(make_policy("synergy", {{"order", "best"}}).has_value());
  EXPECT_FALSE(make_policy("synergy", {{"mode", "magic"}}).has_value());
  EXPECT_FALSE(make_policy("synergy", {{"round", "0"}}).has_value());
}

}  // namespace
}  // namespace berth::test
