// Quasi-shortest-service-first: order by GPUs times predicted run time, per virtual cluster.
#include <gtest/gtest.h>

#include <numeric>

#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

TEST(Qssf, TheQueueOfTheSpecificationIsServedInItsOrder) {
  // One job holds all 8 GPUs until 100; then J4 (3600 GPU s), J2 (4800), J1 (7200), J3 (21257).
  Scenario scenario{.policy = "qssf", .cluster = "1x8", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 8, .duration = 100},
                   {.submit = 1, .gpus = 1, .duration = 7200},
                   {.submit = 2, .gpus = 8, .duration = 600},
                   {.submit = 3, .gpus = 4, .duration = 5314.29},
                   {.submit = 4, .gpus = 2, .duration = 1800}};
  const Outcome outcome = run(scenario);
  EXPECT_NEAR(outcome.start[4], 100, 1e-6);
  EXPECT_NEAR(outcome.start[2], 1900, 1e-6) << "blocks the others until its 8 GPUs are free";
  EXPECT_NEAR(outcome.start[1], 2500, 1e-6);
  EXPECT_NEAR(outcome.start[3], 2500, 1e-6);
}

TEST(Qssf, BackfillGoesOnPastAJobThatDoesNotFit) {
  Scenario scenario{
      .policy = "qssf", .settings = {{"backfill", "on"}}, .cluster = "1x8", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 4, .duration = 100},
                   {.submit = 1, .gpus = 8, .duration = 10},
                   {.submit = 2, .gpus = 4, .duration = 50}};
  EXPECT_NEAR(run(scenario).start[2], 2, 1e-6);
  scenario.settings = {};
  EXPECT_NEAR(run(scenario).start[2], 110, 1e-6);
}

TEST(Qssf, AVirtualClusterIsBlockedByItsOwnJobsOnly) {
  Scenario scenario{.policy = "qssf", .cluster = "1x8", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 4, .duration = 100, .queue = "a"},
                   {.submit = 1, .gpus = 8, .duration = 10, .queue = "a"},
                   {.submit = 2, .gpus = 4, .duration = 50, .queue = "b"}};
  EXPECT_NEAR(run(scenario).start[2], 2, 1e-6);
}

TEST(Qssf, WhoHasWaitedOutHisPatienceGoesFirst) {
  // A long job waits behind a stream of short ones until its patience ends.
  Scenario scenario{
      .policy = "qssf", .settings = {{"patience", "50"}}, .cluster = "1x1", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 1000, .user = "long"}};
  scenario.jobs[0].submit = 0.5;
  for (int i = 0; i < 30; ++i)
    scenario.jobs.push_back({.submit = i * 5.0, .gpus = 1, .duration = 10});
  const Outcome outcome = run(scenario);
  EXPECT_NEAR(outcome.start[0], 60, 1e-6) << "the first short job to end after 50.5";
}

TEST(Qssf, WithPerfectPredictionsItIsShortestGpuTimeFirst) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 30});
    scenario.policy = "qssf";
    scenario.settings = {{"backfill", "on"}, {"patience", "0"}};
    scenario.placement = "count";
    for (JobSpec& job : scenario.jobs) job.queue = "one";
    const Outcome outcome = run(scenario);
    // Whenever a job started, no waiting job with less GPU time would have fit in its place.
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
      for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
        const JobSpec& a = scenario.jobs[i];
        const JobSpec& b = scenario.jobs[j];
        const bool b_waited = b.submit <= outcome.start[i] && outcome.start[j] > outcome.start[i];
        if (b_waited && b.gpus <= a.gpus && b.type == a.type && b.cpus == a.cpus) {
          EXPECT_GE(b.duration * b.gpus, a.duration * a.gpus) << "seed " << seed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth::test
