// Philly: which failed attempts are tried again, where, and what they cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "policies/philly/levels.h"
#include "support/run.h"

namespace berth::test {
namespace {

using namespace philly;

using testing::ElementsAre;

TEST(PhillyRules, OnlyWhatTheClusterDidIsTriedAgain) {
  EXPECT_FALSE(may_retry(FailureKind::User, 1, 3)) << "out of memory again";
  EXPECT_FALSE(may_retry(FailureKind::Unknown, 1, 3));
  for (std::uint32_t attempts = 1; attempts <= 3; ++attempts)
    EXPECT_TRUE(may_retry(FailureKind::Infrastructure, attempts, 3));
  EXPECT_FALSE(may_retry(FailureKind::Infrastructure, 4, 3));
}

/// Where each attempt of job 0 began, and when.
class Attempts final : public Observer {
 public:
  void append(Time now, const Action& action) override {
    if (!begins_stretch(action.kind) || action.job != JobId{0}) return;
    at.push_back(to_seconds(now.time_since_epoch()));
    nodes.push_back(action.slices.front().node.value);
  }
  void finished(Time, JobId job, JobState) override {
    if (job != JobId{0}) return;
    retries = engine->jobs().retries[job];
    wasted = to_seconds(engine->jobs().wasted[job]);
  }
  std::vector<double> at;
  std::vector<std::uint32_t> nodes;
  std::uint32_t retries = 0;
  double wasted = 0;  // GPU-seconds
};

Scenario philly(std::string cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  return {.policy = "philly",
          .settings = std::move(settings),
          .cluster = std::move(cluster),
          .placement = "best-fit",
          .jobs = std::move(jobs)};
}

JobSpec failing(int gpus, double seconds, std::string_view error, int attempts = 0) {
  JobSpec spec;
  spec.gpus = gpus;
  spec.duration = seconds;
  spec.failure = *failure_kind_from(error);
  spec.failed_attempts = attempts;
  return spec;
}

TEST(PhillyRetries, OutOfMemoryIsOneAttempt) {
  Attempts attempts;
  const Outcome outcome = run(philly("5x8", {failing(2, 100, "OOM")}), &attempts);
  EXPECT_THAT(attempts.at, ElementsAre(0));
  EXPECT_EQ(outcome.state[0], JobState::Failed);
  EXPECT_EQ(outcome.finish[0], 100);
  EXPECT_EQ(attempts.wasted, 2 * 100);
}

TEST(PhillyRetries, ALostNodeIsUpToFourAttemptsEachOnAnotherNode) {
  Attempts attempts;
  const Outcome outcome = run(philly("5x8", {failing(2, 100, "node lost")}), &attempts);
  EXPECT_THAT(attempts.at, ElementsAre(0, 100, 200, 300));
  EXPECT_EQ(std::set(attempts.nodes.begin(), attempts.nodes.end()).size(), 4U);
  EXPECT_EQ(outcome.state[0], JobState::Failed);
  EXPECT_EQ(outcome.finish[0], 400);
  EXPECT_EQ(attempts.retries, 3U);
  EXPECT_EQ(attempts.wasted, 4 * 2 * 100);
  EXPECT_EQ(outcome.total_preemptions, 0) << "a failure is not a preemption";
}

TEST(PhillyRetries, AnAttemptThatGoesWellCompletesTheJob) {
  Attempts attempts;
  const Outcome outcome = run(philly("5x8", {failing(2, 100, "mpi", 2)}), &attempts);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  EXPECT_EQ(outcome.finish[0], 300) << "two attempts lost, the third from the beginning";
  EXPECT_EQ(outcome.work[0], 100);
  EXPECT_EQ(attempts.wasted, 2 * 2 * 100);
}

// Keeping away from the only server would make it wait for nothing.
TEST(PhillyRetries, WithoutAnotherNodeItIsTriedThereAgain) {
  Attempts attempts;
  const auto jobs = std::vector<JobSpec>{failing(2, 100, "gpu_ecc", 1)};
  EXPECT_EQ(run(philly("1x8", jobs), &attempts).finish[0], 200);
  EXPECT_EQ(run(philly("1x8", jobs, {{"avoid", "0"}})).finish[0], 200);
  EXPECT_EQ(run(philly("1x8", jobs, {{"max_retries", "0"}})).finish[0], 100);
}

TEST(PhillyRetries, GoToTheHeadOfTheQueue) {
  auto jobs = std::vector<JobSpec>{failing(8, 100, "network", 1)};
  jobs.push_back({.submit = 1, .gpus = 8, .duration = 500});
  jobs.push_back({.submit = 2, .gpus = 8, .duration = 500});
  const Outcome outcome = run(philly("2x8", jobs));
  EXPECT_EQ(outcome.start[1], 1) << "on the other server";
  EXPECT_EQ(outcome.start[2], 100) << "the failed job keeps away from this one";
  EXPECT_EQ(outcome.finish[0], 501 + 100) << "and is first on the next that is free";
}

// Others do as they did: a failed job is over.
TEST(Retries, AreAskedForByThePolicy) {
  Scenario scenario = philly("5x8", {failing(2, 100, "node_lost", 1)});
  scenario.policy = "fifo";
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.state[0], JobState::Failed);
  EXPECT_EQ(outcome.finish[0], 100);
}

TEST(Retries, WorkWhereSavingAndCoRunnersMatter) {
  Scenario scenario = philly("4x2", {failing(2, 100, "node_lost", 1)});
  for (int i = 0; i < 6; ++i)
    scenario.jobs.push_back({.submit = 1.0 * i, .gpus = 2, .duration = 90});
  scenario.sim.costs = {.start = seconds_to_duration(5),
                        .preempt = seconds_to_duration(7),
                        .resume = seconds_to_duration(9),
                        .migrate = seconds_to_duration(9)};
  scenario.effects.locality = true;
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
}

}  // namespace
}  // namespace berth::test
