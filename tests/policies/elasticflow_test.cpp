// ElasticFlow in the engine: shares by deadline, growth on what is left, promises kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "support/run.h"

namespace berth::test::elasticflow_tests {
namespace {

/// A model whose speed is proportional to its GPUs at a fixed whole batch.
ProfileSet perfect() {
  ProfileSet profiles;
  Profile& fallback = profiles.edit(ProfileSet::fallback());
  fallback.iteration = {.alpha = 0, .beta = 0.01, .gradient_bytes = 0, .overlap = 2};
  fallback.batch = 64;
  return profiles;
}

/// Slots of 100 s, no slack; without links between devices nothing is lost by being many.
Scenario elastic(const std::string& cluster, std::vector<JobSpec> jobs) {
  Scenario scenario;
  scenario.policy = "elasticflow";
  scenario.settings = {{"slot", "100"}, {"slack", "1"}};
  scenario.cluster = cluster;
  scenario.placement = "best-fit";
  scenario.jobs = std::move(jobs);
  scenario.profiles = perfect();
  scenario.edit_cluster = [](Cluster& made) {
    made.links.pcie_latency = made.links.socket_latency = made.links.nvlink_latency = 0;
  };
  return scenario;
}

JobSpec slo(double submit, int gpus, double duration, double deadline) {
  JobSpec job{.submit = submit, .gpus = gpus, .duration = duration};
  job.deadline = deadline;
  return job;
}

/// How many devices a job was given, in order.
class Sizes final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (!begins_stretch(action.kind) && !changes_devices(action.kind)) return;
    EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(action.gpus)));
    const std::int32_t largest = engine->cluster().largest_node(action.pool);
    EXPECT_EQ(std::ssize(action.slices), (action.gpus + largest - 1) / largest) << "not fragmented";
    if (action.job.value >= of.size()) of.resize(action.job.value + 1);
    of[action.job.value].push_back(action.gpus);
  }
  std::vector<std::vector<std::int32_t>> of;
};

TEST(ElasticFlow, GrowsAJobOnEverythingThatIsLeft) {
  Sizes sizes;
  const Outcome outcome = run(elastic("1x8", {slo(0, 1, 800, 800)}), &sizes);
  EXPECT_EQ(sizes.of[0], (std::vector<std::int32_t>{8}));
  EXPECT_NEAR(outcome.finish[0], 100, 1e-3);
}

TEST(ElasticFlow, PromisesTheFewestGpusAndRefusesTheRest) {
  // Eight GPUs and 400 s: two jobs of 1600 s take all of it.
  const Outcome outcome =
      run(elastic("1x8", {slo(0, 1, 1600, 400), slo(0, 1, 1600, 400), slo(0, 1, 100, 400)}));
  EXPECT_LE(outcome.finish[0], 400);
  EXPECT_LE(outcome.finish[1], 400);
  EXPECT_EQ(outcome.state[2], JobState::Rejected);
  ASSERT_EQ(outcome.rejected.size(), 1U);
  EXPECT_NE(outcome.rejected[0].find("of 8 GPUs"), std::string::npos);
  EXPECT_NE(outcome.rejected[0].find("beside 2 promised jobs"), std::string::npos);
}

TEST(ElasticFlow, GivesJobsWithoutADeadlineWhatIsLeft) {
  Sizes sizes;
  const Outcome outcome =
      run(elastic("1x4", {slo(0, 1, 400, 200), {.submit = 0, .gpus = 1, .duration = 400}}), &sizes);
  // Two GPUs are promised; of the other two the one without a deadline gets one before anybody
  // doubles, and then the second, too.
  EXPECT_EQ(sizes.of[0], (std::vector<std::int32_t>{2}));
  EXPECT_NEAR(outcome.finish[0], 200, 1e-3);
  EXPECT_NEAR(outcome.finish[1], 200, 1e-3);
}

TEST(ElasticFlow, KeepsToTheDeclaredRange) {
  Scenario scenario = elastic("1x8", {{.submit = 0, .gpus = 2, .duration = 100}});
  scenario.settings.push_back({"elastic", "declared"});
  EXPECT_NEAR(run(scenario).finish[0], 100, 1e-3);
  scenario.jobs[0].gpus_max = 4;
  EXPECT_NEAR(run(scenario).finish[0], 50, 1e-3);
}

TEST(ElasticFlow, StartsBetweenSlotsOnIdleGpus) {
  const Outcome outcome = run(elastic("1x4", {{.submit = 30, .gpus = 1, .duration = 230}}));
  EXPECT_EQ(outcome.start[0], 30);
  EXPECT_NEAR(outcome.finish[0], 100 + (230.0 - 70) / 4, 1e-3);  // four GPUs from 100 on
}

TEST(ElasticFlow, LetsASoftJobRunUnpromised) {
  JobSpec soft = slo(0, 1, 4000, 100);
  soft.soft_deadline = true;
  const Outcome outcome = run(elastic("1x4", {soft}));
  EXPECT_TRUE(outcome.rejected.empty());
  EXPECT_EQ(outcome.state[0], JobState::Completed);
}

TEST(ElasticFlow, AnAdmittedJobMeetsItsDeadline) {
  int refused = 0, in_time = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng{seed};
    std::vector<JobSpec> jobs;
    double submit = 0;
    for (int i = 0; i < 40; ++i) {
      const double duration = 50 + static_cast<double>(rng.below(2000));
      const double factor = 0.3 + 0.1 * static_cast<double>(rng.below(20));
      JobSpec job = slo(submit, 1 << rng.below(3), duration, submit + 200 + duration * factor);
      if (rng.below(3) == 0) job.deadline = 0;
      jobs.push_back(job);
      submit += static_cast<double>(rng.below(100));
    }
    Sizes sizes;
    const Outcome outcome = run(elastic(seed % 2 == 0 ? "2x8" : "4x4", jobs), &sizes);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (outcome.state[i] == JobState::Rejected) {
        ++refused;
        continue;
      }
      ASSERT_EQ(outcome.state[i], JobState::Completed);
      if (jobs[i].deadline == 0) continue;
      ++in_time;
      ASSERT_LE(outcome.finish[i], jobs[i].deadline + 1e-3) << "seed " << seed << " job " << i;
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(in_time, 300);
}

TEST(ElasticFlow, RefusesBadSettings) {
  EXPECT_FALSE(make_policy("elasticflow", {{"slot", "0"}}).has_value());
  EXPECT_FALSE(make_policy("elasticflow", {{"elastic", "some"}}).has_value());
}

}  // namespace
}  // namespace berth::test::elasticflow_tests
