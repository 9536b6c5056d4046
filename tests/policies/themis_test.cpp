// Themis in the engine: leases, apps, reserves, elastic jobs, distances, and the form in rounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "policies/stress.h"
#include "support/run.h"

namespace berth::test {
namespace {

using testing::ElementsAre;

Scenario themis(std::string cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  Scenario scenario;
  scenario.policy = "themis";
  scenario.placement = "best-fit";
  scenario.cluster = std::move(cluster);
  scenario.jobs = std::move(jobs);
  scenario.settings = {{"lease", "10"}, {"align", "10"}};
  for (auto& setting : settings) scenario.settings.push_back(std::move(setting));
  return scenario;
}

JobSpec job(double submit, int gpus, double duration, std::string group = {}) {
  JobSpec spec;
  spec.submit = submit;
  spec.gpus = gpus;
  spec.duration = duration;
  spec.group = std::move(group);
  return spec;
}

// One GPU, two jobs of 20 s: they take turns lease by lease.
TEST(Themis, LeasesPassFromAppToApp) {
  const Outcome outcome = run(themis("1x1", {job(0, 1, 20), job(0, 1, 20)}));
  EXPECT_THAT(outcome.finish, ElementsAre(30, 40));
  EXPECT_THAT(outcome.preemptions, ElementsAre(1, 1));
}

TEST(Themis, ALeaseThatNobodyWantsIsRenewedWithoutAnAction) {
  const Outcome outcome = run(themis("1x2", {job(0, 1, 100), job(0, 1, 100)}));
  EXPECT_THAT(outcome.finish, ElementsAre(100, 100));
  EXPECT_EQ(outcome.total_preemptions, 0);
}

// Its lease would have been renewed at 10 and 20: the newcomer of 25 gets the GPU at 30.
TEST(Themis, ANewcomerWaitsForTheEndOfTheRunningLease) {
  const Outcome outcome = run(themis("1x1", {job(0, 1, 50), job(25, 1, 5)}));
  EXPECT_EQ(outcome.start[1], 30);
  EXPECT_THAT(outcome.finish, ElementsAre(55, 35));
}

// Three jobs of one group are one app: the job of the other app waits for one lease, not for three.
TEST(Themis, FairnessIsAmongAppsNotJobs) {
  const std::vector<JobSpec> jobs{job(0, 1, 30, "search"), job(0, 1, 30, "search"),
                                  job(0, 1, 30, "search"), job(1, 1, 30)};
  const Outcome by_app = run(themis("1x1", jobs));
  const Outcome by_job = run(themis("1x1", jobs, {{"app", "job"}}));
  EXPECT_EQ(by_app.start[3], 10);
  EXPECT_EQ(by_job.start[3], 30);
  EXPECT_LT(by_app.finish[3], by_job.finish[3]);
}

// What a study is counts before the group, or alone.
TEST(Themis, AStudyIsAnAppWhateverGroupItsJobsAreOf) {
  std::vector<JobSpec> jobs{job(0, 1, 30, "a"), job(0, 1, 30, "b"), job(0, 1, 30, "c"),
                            job(1, 1, 30, "d")};
  EXPECT_EQ(run(themis("1x1", jobs)).start[3], 30);
  for (int i = 0; i < 3; ++i) jobs[static_cast<std::size_t>(i)].study = "search";
  EXPECT_EQ(run(themis("1x1", jobs)).start[3], 10);
  for (JobSpec& each : jobs) each.study.clear();
  for (JobSpec& each : jobs) each.group = "lab";
  EXPECT_EQ(run(themis("1x1", jobs, {{"app", "study"}})).start[3], 30) << "each by itself";
}

// A move takes longer than a lease. Were leases to end all the same, the two would take turns for
// ever: none of them would get beyond its restart.
TEST(Themis, ALeaseGoesOnUntilItsJobHasGotOn) {
  Scenario scenario = themis("1x1", {job(0, 1, 20), job(0, 1, 20)});
  scenario.sim.costs.resume = scenario.sim.costs.start = std::chrono::seconds{15};
  const Outcome outcome = run(scenario);
  EXPECT_THAT(outcome.state, testing::Each(JobState::Completed));
  // A quarter of a lease of work after every restart, at multiples of 10 s: 15 s lost and 5 done.
  EXPECT_THAT(outcome.preemptions, ElementsAre(3, 3));
  EXPECT_THAT(outcome.finish, ElementsAre(140, 160));
}

TEST(Themis, AnArrivalHoldsAnAuctionUnlessToldOtherwise) {
  const std::vector<JobSpec> jobs{job(0, 1, 50), job(5, 1, 50)};
  EXPECT_EQ(run(themis("1x2", jobs)).start[1], 5);
  EXPECT_EQ(run(themis("1x2", jobs, {{"auction_on_arrival", "off"}})).start[1], 10)
      << "when the first lease ends";
}

// A gang of four among jobs of one: GPUs are held back once it has missed three leases.
TEST(Themis, GpusAreHeldBackForAGangThatStarves) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 40; ++i) jobs.push_back(job(i * 2.5, 1, 10));
  jobs.push_back(job(5, 4, 10));
  const Outcome outcome = run(themis("1x4", jobs));
  EXPECT_GT(outcome.start[40], 30);
  EXPECT_LE(outcome.start[40], 60);
}

/// Largest number of GPUs each job was ever given.
class Sizes final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (begins_stretch(action.kind) || changes_devices(action.kind))
      most[action.job.value] = std::max(most[action.job.value], action.gpus);
  }
  std::map<std::uint32_t, std::int32_t> most;
};

JobSpec elastic(double submit, int least, int most, double duration) {
  JobSpec spec = job(submit, least, duration);
  spec.gpus_max = most;
  return spec;
}

TEST(Themis, ElasticJobsGrowIntoFreeGpusInWholeUnits) {
  Sizes sizes;
  const Outcome outcome = run(themis("1x8", {elastic(0, 2, 7, 100)}), &sizes);
  EXPECT_EQ(sizes.most[0], 6);
  EXPECT_LT(outcome.finish[0], 60);
  Sizes rigid;
  static_cast<void>(run(themis("1x8", {job(0, 2, 100)}), &rigid));
  EXPECT_EQ(rigid.most[0], 2);
}

TEST(Themis, IdenticalElasticAppsEndTogether) {
  std::vector<JobSpec> jobs(4, elastic(0, 1, 8, 100));
  const Outcome outcome = run(themis("1x8", jobs, {{"f", "0"}}));
  const auto [low, high] = std::ranges::minmax(outcome.finish);
  EXPECT_LE(high - low, 10);  // a lease
}

TEST(Themis, AtMostSoManyAppsBid) {
  const std::vector<JobSpec> jobs(2, elastic(0, 1, 4, 100));
  EXPECT_EQ(run(themis("1x4", jobs, {{"f", "0"}})).start[1], 0);
  EXPECT_EQ(run(themis("1x4", jobs, {{"f", "0"}, {"max_bidders", "1"}})).start[1], 10)
      << "the first alone takes all it can use";
}

/// Who grew first, and when.
class FirstGrowth final : public Observer {
 public:
  void append(Time now, const Action& action) override {
    if (action.kind == ActionKind::Resize && at < 0) {
      at = to_seconds(now);
      job = action.job.value;
    }
  }
  double at = -1;
  std::uint32_t job = 0;
};

// At 31.5 s a GPU comes free. App x is worst off and sees the offer, but one of its jobs has
// outlived its estimate and is taken to need a lease of 80 s more: that its other job, with 73.5 s
// left, would end sooner on two GPUs is worth nothing to it. So the other elastic job grows.
TEST(Themis, AJobThatHasOutlivedItsEstimateIsTakenToNeedALeaseMore) {
  std::vector<JobSpec> jobs{job(0, 1, 31.5), job(0, 1, 200, "x"), job(0, 1, 4),
                            elastic(1, 1, 2, 1000), elastic(5, 1, 2, 100)};
  jobs[4].group = "x";
  const std::vector<double> estimates{31.5, 10, 4, 1000, 100};
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].estimate = estimates[i];
  Scenario scenario = themis("1x4", jobs);
  scenario.estimator = "limit";
  scenario.settings = {{"lease", "80"}, {"align", "10"}};
  FirstGrowth growth;
  static_cast<void>(run(scenario, &growth));
  EXPECT_EQ(growth.at, 31.5);
  EXPECT_EQ(growth.job, 3U);
  scenario.jobs[1].estimate = 40;  // 8.5 s left: the other job is the longest, and more GPUs help
  FirstGrowth known;
  static_cast<void>(run(scenario, &known));
  EXPECT_EQ(known.at, 31.5);
  EXPECT_EQ(known.job, 4U);
}

// No GPU is idle while a unit of one would be taken.
class NoIdle final : public Observer {
 public:
  void append(Time, const Action&) override {}
  void instant_done(Time) override {
    bool waits = false;
    for (std::uint32_t i = 0; i < engine->jobs().size(); ++i)
      waits = waits || engine->jobs().is_waiting(JobId{i});
    if (waits) {
      EXPECT_EQ(engine->cluster().free_gpus(), 0);
    }
  }
};

TEST(Themis, LeavesNoGpuIdleWhileAnAppWantsOne) {
  Rng rng{3};
  for (int round = 0; round < 30; ++round) {
    std::vector<JobSpec> jobs;
    double submit = 0;
    for (int i = 0; i < 25; ++i) {
      jobs.push_back(elastic(submit, 1, 1 + static_cast<int>(rng.below(6)),
                             1 + static_cast<double>(rng.below(40))));
      if (rng.below(3) == 0) jobs.back().group = "g";
      submit += static_cast<double>(rng.below(6));
    }
    NoIdle idle;
    static_cast<void>(run(themis("2x4", jobs), &idle));
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

ProfileSet talkative() {
  ProfileSet profiles;
  Profile model;
  model.name = "vgg16";
  model.iteration.gradient_bytes = 2e9;
  profiles.add(model);
  return profiles;
}

// Two servers of two: with distances in force both gangs of two keep to a server each.
TEST(Themis, PlacesGangsOnOneServerWhereDistanceCounts) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 12; ++i) {
    jobs.push_back(elastic(i, 1, 2, 40));
    jobs.back().model = "vgg16";
  }
  class Spread final : public Observer {
   public:
    void append(Time, const Action& action) override {
      if (!begins_stretch(action.kind) && !changes_devices(action.kind)) return;
      starts += action.gpus == 2 ? 1 : 0;
      spread += action.slices.size() > 1 ? 1 : 0;
    }
    int starts = 0;
    int spread = 0;
  } observer;
  Scenario scenario = themis("2x2", jobs, {{"f", "0.5"}});
  scenario.profiles = talkative();
  scenario.effects.locality = true;
  const Outcome outcome = run(scenario, &observer);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
  EXPECT_GT(observer.starts, 0);
  EXPECT_LE(observer.spread * 4, observer.starts);
}

TEST(Themis, SurvivesFailuresCancellationsAndTightCores) {
  survive({.policy = "themis", .settings = {{"lease", "7"}, {"align", "1"}}, .rounds = 20});
  survive({.policy = "themis",
           .settings = {{"lease", "5"}, {"align", "5"}, {"elastic", "all"}, {"max_gpus", "6"}},
           .estimator = "oracle:0.5",
           .rounds = 20});
  survive({.policy = "themis",
           .settings = {{"lease", "5"}, {"align", "2"}, {"elastic", "all"}, {"slowdown", "class"}},
           .rounds = 20});
  survive({.policy = "themis",
           .settings = {{"lease", "6"}, {"align", "3"}, {"auction_on_arrival", "off"}},
           .rounds = 10});
}

// --- in rounds ---

// One GPU, rounds of 10 s, two jobs of 20 s: turns, as both are as far behind.
TEST(FtfFractional, RunsWhoIsFurthestBehind) {
  Scenario scenario = themis("1x1", {job(0, 1, 20), job(0, 1, 20)});
  scenario.policy = "ftf-fractional";
  scenario.settings = {{"round", "10"}};
  const Outcome outcome = run(scenario);
  EXPECT_THAT(outcome.finish, ElementsAre(30, 40));
}

TEST(FtfFractional, FillsFreeGpusBetweenRounds) {
  Scenario scenario = themis("1x1", {job(0, 1, 5), job(1, 1, 5)});
  scenario.policy = "ftf-fractional";
  scenario.settings = {};
  const Outcome outcome = run(scenario);
  EXPECT_THAT(outcome.finish, ElementsAre(5, 10));
}

TEST(FtfFractional, SurvivesFailuresAndCancellations) {
  survive({.policy = "ftf-fractional", .settings = {{"round", "6"}}, .rounds = 20});
}

}  // namespace
}  // namespace berth::test
