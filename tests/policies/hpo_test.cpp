// Studies in the engine: early stops, shares per study, deadlines, the debug pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "policies/stress.h"
#include "support/run.h"

namespace berth::test::hpo_tests {
namespace {

using testing::ElementsAre;

/// Nine epochs to the end, so that rungs are at 1, 3 and 9.
ProfileSet nine_epochs() {
  ProfileSet profiles;
  profiles.edit(ProfileSet::fallback()).loss.epochs = 9;
  return profiles;
}

JobSpec trial(double submit, double duration, std::string study) {
  JobSpec spec;
  spec.submit = submit;
  spec.duration = duration;
  spec.study = std::move(study);
  spec.kind = JobKind::Hpo;
  return spec;
}

JobSpec job(double submit, int gpus, double duration) {
  JobSpec spec;
  spec.submit = submit;
  spec.gpus = gpus;
  spec.duration = duration;
  return spec;
}

Scenario hpo(std::string cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  Scenario scenario;
  scenario.policy = "hpo";
  scenario.placement = "best-fit";
  scenario.cluster = std::move(cluster);
  scenario.jobs = std::move(jobs);
  scenario.profiles = nine_epochs();
  scenario.settings = std::move(settings);
  return scenario;
}

double work_of(const Outcome& outcome) {
  double sum = 0;
  for (const double work : outcome.work) sum += work;
  return sum;
}

// Nine trials of nine epochs of 100 s on one GPU: one is trained to the end, the others are stopped
// after one or three epochs. Nine whole trainings would be 8100 s.
TEST(Hpo, AStudyTrainsOneTrialToTheEndAndStopsTheOthersEarly) {
  const std::vector<JobSpec> jobs(9, trial(0, 900, "s"));
  const Outcome outcome = run(hpo("1x1", jobs));
  EXPECT_EQ(std::ranges::count(outcome.state, JobState::Completed), 1);
  EXPECT_EQ(std::ranges::count(outcome.state, JobState::Cancelled), 8);
  EXPECT_LT(work_of(outcome), 2500);
  EXPECT_GE(work_of(outcome), 9 * 100 + 800 - 1);
}

TEST(Hpo, LosersMayBeStoppedAtOnce) {
  const std::vector<JobSpec> jobs(9, trial(0, 900, "s"));
  const Outcome outcome = run(hpo("1x3", jobs, {{"losers", "stop"}}));
  EXPECT_GE(std::ranges::count(outcome.state, JobState::Completed), 1);
  EXPECT_EQ(std::ranges::count(outcome.preemptions, 0), 9);
}

TEST(Hpo, ASynchronousRungWaitsForAll) {
  const std::vector<JobSpec> jobs(9, trial(0, 900, "s"));
  const Outcome outcome = run(hpo("1x2", jobs, {{"halving", "sync"}}));
  // 9 x 1 epoch, 3 x 2, 1 x 6
  EXPECT_NEAR(work_of(outcome), 2100, 5);
  EXPECT_EQ(std::ranges::count(outcome.state, JobState::Completed), 1);
}

TEST(Hpo, AStudyOfOneTrialIsTrainedToTheEnd) {
  const Outcome outcome = run(hpo("1x1", {trial(0, 900, "s")}));
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  EXPECT_EQ(outcome.finish[0], 900);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

// Eight trials of one study against two of another on four GPUs: two each.
TEST(Hpo, SharesArePerStudyNotPerTrial) {
  std::vector<JobSpec> jobs(8, trial(0, 900, "large"));
  jobs.push_back(trial(1, 900, "small"));
  jobs.push_back(trial(1, 900, "small"));
  const Outcome outcome = run(hpo("1x4", jobs));
  EXPECT_THAT((std::vector<double>{outcome.start[8], outcome.start[9]}), ElementsAre(100, 100));
}

TEST(Hpo, AtAHardDeadlineAStudyIsOver) {
  std::vector<JobSpec> jobs(9, trial(0, 900, "s"));
  for (JobSpec& spec : jobs) spec.deadline = 500;
  const Outcome outcome = run(hpo("1x1", jobs));
  for (const double finish : outcome.finish) EXPECT_LE(finish, 500);
  // A new trial needs 300 s to reach the second rung: none is started after 200 s.
  for (const double start : outcome.start) EXPECT_LE(start, 200);
}

TEST(Hpo, TheLeaderTakesIdleGpusBeforeADeadline) {
  std::vector<JobSpec> jobs(3, trial(0, 900, "s"));
  for (JobSpec& spec : jobs) spec.deadline = 5000;
  const Outcome grown = run(hpo("1x8", jobs));
  const Outcome fixed = run(hpo("1x8", jobs, {{"grow_leader", "off"}}));
  EXPECT_LT(grown.makespan, fixed.makespan);
}

JobSpec debug(double submit, double duration) {
  JobSpec spec = job(submit, 1, duration);
  spec.kind = JobKind::Debug;
  return spec;
}

// Two nodes full of long jobs: once a node of the pool is free, debug jobs start at once.
TEST(Hpo, DebugJobsHaveNodesOfTheirOwn) {
  std::vector<JobSpec> jobs{debug(0, 10)};
  for (int i = 0; i < 20; ++i) jobs.push_back(job(1, 2, 1000));
  jobs.push_back(debug(500, 10));
  const Outcome outcome = run(hpo("4x2", jobs));
  EXPECT_EQ(outcome.start[21], 500);
}

TEST(Hpo, ADebugJobOverItsLimitIsStopped) {
  const Outcome outcome = run(hpo("4x2", {debug(0, 100)}, {{"debug_limit", "60"}}));
  EXPECT_EQ(outcome.state[0], JobState::Cancelled);
  EXPECT_EQ(outcome.finish[0], 60);
}

// Twelve wait, nothing is idle: after a minute a best-effort job makes room.
TEST(Hpo, BestEffortMakesRoomForALongDebugQueue) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 40; ++i) {
    jobs.push_back(job(0, 1, 5000));
    jobs.back().queue = "best-effort";
  }
  for (int i = 0; i < 13; ++i) jobs.push_back(debug(1, 200));
  const Outcome outcome = run(hpo("40x1", jobs));
  EXPECT_GT(outcome.total_preemptions, 0);
}

TEST(Hpo, SurvivesFailuresAndCancellations) {
  survive({.policy = "hpo", .settings = {{"probe", "2"}}, .rounds = 10});
}

}  // namespace
}  // namespace berth::test::hpo_tests
