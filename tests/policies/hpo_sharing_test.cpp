// Trials beside each other on a GPU, GPUs among trials, and jobs without a class.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/rng.h"
#include "policies/stress.h"
#include "support/run.h"

namespace berth::test {
namespace {

JobSpec trial(double submit, double duration) {
  JobSpec spec;
  spec.submit = submit;
  spec.duration = duration;
  spec.study = "s";
  spec.kind = JobKind::Hpo;
  return spec;
}

/// Nine epochs to the end; two on one GPU take `slowdown` times as long.
Scenario hpo(std::string cluster, std::vector<JobSpec> jobs, Settings settings,
             double slowdown = 1.2) {
  Scenario scenario;
  scenario.policy = "hpo";
  scenario.placement = "best-fit";
  scenario.cluster = std::move(cluster);
  scenario.jobs = std::move(jobs);
  scenario.profiles.edit(ProfileSet::fallback()).loss.epochs = 9;
  scenario.profiles.set_slowdown(ProfileSet::fallback(), ProfileSet::fallback(), slowdown);
  scenario.settings = std::move(settings);
  return scenario;
}

TEST(HpoFusing, SmallTrialsShareAGpuWhileTogetherTheyGetMoreDone) {
  const std::vector<JobSpec> jobs(2, trial(0, 900));
  EXPECT_EQ(run(hpo("1x1", jobs, {{"fuse", "2"}})).start[1], 0);
  EXPECT_GT(run(hpo("1x1", jobs, {{"fuse", "2"}}, 2.5)).start[1], 0) << "2 / 2.5 is less than 1";
  EXPECT_GT(run(hpo("1x1", jobs, {})).start[1], 0) << "unless told to, they do not";
}

TEST(HpoFusing, AStudyIsDoneSooner) {
  const std::vector<JobSpec> jobs(9, trial(0, 900));
  const Outcome apart = run(hpo("1x2", jobs, {}));
  const Outcome fused = run(hpo("1x2", jobs, {{"fuse", "3"}}));
  EXPECT_LT(fused.makespan, apart.makespan);
  EXPECT_GE(std::ranges::count(fused.state, JobState::Completed), 1);
}

/// The largest number of jobs that held GPUs of a cluster at once.
class Together final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (begins_stretch(action.kind)) ++running;
    if (ends_stretch(action.kind) || action.kind == ActionKind::Kill) --running;
    most = std::max(most, running);
  }
  void finished(Time, JobId, JobState) override { --running; }
  int running = 0, most = 0;
};

TEST(HpoFusing, NoMoreThanToldShareAGpu) {
  Together two, three;
  const std::vector<JobSpec> jobs(9, trial(0, 900));
  static_cast<void>(run(hpo("1x1", jobs, {{"fuse", "2"}}, 1.05), &two));
  static_cast<void>(run(hpo("1x1", jobs, {{"fuse", "3"}}, 1.05), &three));
  EXPECT_EQ(two.most, 2);
  EXPECT_EQ(three.most, 3);
}

TEST(HpoFusing, SurvivesFailuresAndCancellations) {
  survive({.policy = "hpo",
           .settings = {{"probe", "2"}, {"fuse", "3"}, {"trial_gpus", "fluid"}},
           .rounds = 10});
}

/// Largest number of GPUs of each job.
class Sizes final : public Observer {
 public:
  void append(Time, const Action& action) override {
    auto& most = gpus[action.job.value];
    most = std::max(most, action.gpus);
  }
  std::map<std::uint32_t, std::int32_t> gpus;
};

// Eight GPUs for two trials of equal work: four each, and back to one when others wait.
TEST(HpoFluid, IdleGpusGoToTrialsByWhatTheyHaveToDo) {
  Sizes sizes;
  const std::vector<JobSpec> two(2, trial(0, 9000));
  const Outcome fluid = run(hpo("1x8", two, {{"trial_gpus", "fluid"}}), &sizes);
  EXPECT_GE(sizes.gpus[0], 4);
  EXPECT_GE(sizes.gpus[1], 4);
  EXPECT_LT(fluid.makespan, run(hpo("1x8", two, {})).makespan);
}

TEST(HpoFluid, NobodyGrowsWhileOthersWait) {
  Sizes sizes;
  std::vector<JobSpec> jobs(2, trial(0, 9000));
  jobs.push_back({.submit = 0, .gpus = 8, .duration = 100});
  static_cast<void>(run(hpo("1x8", jobs, {{"trial_gpus", "fluid"}}), &sizes));
  EXPECT_EQ(sizes.gpus[2], 8) << "a job by itself holds less than a study that has some";
}

TEST(HpoUnclassed, BeginInTheDebugPoolAndGoOnElsewhere) {
  std::vector<JobSpec> jobs{{.submit = 0, .gpus = 1, .duration = 1000},
                            {.submit = 0, .gpus = 1, .duration = 200},
                            {.submit = 0, .gpus = 1, .duration = 1000, .queue = "prod"}};
  const Outcome outcome = run(hpo("4x2", jobs, {{"production", "prod"}}));
  EXPECT_EQ(outcome.migrations, (std::vector<int>{1, 0, 0})) << "at five minutes; one was over";
  EXPECT_EQ(outcome.finish, (std::vector<double>{1000, 200, 1000})) << "what it did is kept";
  EXPECT_EQ(run(hpo("4x2", jobs, {})).migrations[0], 0) << "unless told which jobs have one";
}

// The pool is one node of four with a GPU each; three are taken by production.
TEST(HpoUnclassed, KeepTheirSubmitTimeInTheProductionQueue) {
  std::vector<JobSpec> jobs{{.submit = 0, .gpus = 1, .duration = 1000, .queue = "prod"},
                            {.submit = 0, .gpus = 1, .duration = 2000, .queue = "prod"},
                            {.submit = 0, .gpus = 1, .duration = 2000, .queue = "prod"},
                            {.submit = 1, .gpus = 1, .duration = 500},
                            {.submit = 2, .gpus = 1, .duration = 10, .queue = "prod"}};
  const Outcome outcome = run(hpo("4x1", jobs, {{"production", "prod"}}));
  EXPECT_EQ(outcome.start[3], 1);
  EXPECT_EQ(outcome.finish[3], 1000 + 200) << "300 s in the pool, then before the later job";
  EXPECT_EQ(outcome.start[4], 1200);
}

// Full of production for hours, a debug job of some minutes every other minute: they wait little.
TEST(HpoDebugPool, NineteenOfTwentyDebugJobsWaitLessThanTwoMinutes) {
  Rng rng{4};
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 300; ++i)
    jobs.push_back({.submit = 60.0 * i, .gpus = 4, .duration = 3600 + 7200 * rng.uniform()});
  const std::size_t first_debug = jobs.size();
  for (int i = 0; i < 150; ++i) {
    jobs.push_back({.submit = 120.0 * i,
                    .gpus = static_cast<int>(1 + rng.below(2)),
                    .duration = 60 + 500 * rng.uniform(),
                    .kind = JobKind::Debug});
  }
  const Outcome outcome = run(hpo("20x8", jobs, {}));
  std::vector<double> waits;
  for (std::size_t i = first_debug; i < jobs.size(); ++i)
    waits.push_back(outcome.start[i] - jobs[i].submit);
  std::ranges::sort(waits);
  EXPECT_LT(waits[waits.size() * 95 / 100], 120);
}

}  // namespace
}  // namespace berth::test
