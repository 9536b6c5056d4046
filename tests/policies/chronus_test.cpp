// Chronus in the engine: leases begin where terms begin, promises are kept, the rest is shared.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "support/run.h"

namespace berth::test {
namespace {

/// Terms of 100 s, nothing lost at restarts, exact estimates.
Scenario exact(const std::string& cluster, std::vector<JobSpec> jobs) {
  Scenario scenario;
  scenario.policy = "chronus";
  scenario.settings = {{"lease", "100"}, {"restart", "0"}, {"slack", "1"}};
  scenario.cluster = cluster;
  scenario.placement = "best-fit";
  scenario.jobs = std::move(jobs);
  return scenario;
}

JobSpec slo(double submit, int gpus, double duration, double deadline) {
  JobSpec job{.submit = submit, .gpus = gpus, .duration = duration};
  job.deadline = deadline;
  return job;
}

JobSpec best_effort(double submit, int gpus, double duration) {
  return {.submit = submit, .gpus = gpus, .duration = duration};
}

// S1 … S4 and B1 … B3; GPUs free in terms 0, 1, 2, 3: 0, 2, 0, 4.
const std::vector<JobSpec> kWorked{
    slo(0, 2, 200, 200),    slo(0, 4, 100, 300),    slo(0, 2, 300, 300),   slo(0, 2, 100, 200),
    best_effort(0, 1, 100), best_effort(0, 2, 300), best_effort(0, 4, 100)};

TEST(Chronus, RunsTheWorkedExample) {
  for (const char* placement : {"best-fit", "count"}) {
    Scenario scenario = exact("1x4", kWorked);
    scenario.placement = placement;
    const Outcome outcome = run(scenario);
    EXPECT_EQ(outcome.finish[0], 200);
    EXPECT_EQ(outcome.finish[1], 300);
    EXPECT_EQ(outcome.state[2], JobState::Rejected);
    EXPECT_EQ(outcome.finish[3], 100);
    EXPECT_EQ(outcome.finish[4], 200);  // B3 does not fit beside S1, then B2 not beside B1
    EXPECT_EQ(outcome.finish[6], 400);
    EXPECT_EQ(outcome.finish[5], 700);
  }
}

TEST(Chronus, RefusesWithNumbers) {
  const Outcome outcome = run(exact("1x4", kWorked));
  ASSERT_EQ(outcome.rejected.size(), 1U);
  EXPECT_EQ(outcome.rejected[0],
            "needs 3 leases of 100.0 s on 2 GPUs, more than 2 promised jobs leave of 3 terms of 4 "
            "GPUs");
  const Outcome others =
      run(exact("2x4", {slo(0, 1, 301, 300), slo(0, 8, 100, 100), slo(0, 1, 100, 100)}));
  ASSERT_EQ(others.rejected.size(), 2U);
  EXPECT_EQ(others.rejected[0],
            "needs 4 leases of 100.0 s on 1 GPUs, and 3 terms end by its deadline");
  EXPECT_EQ(others.rejected[1],
            "needs 1 leases of 100.0 s on 1 GPUs, more than 1 promised jobs leave of 1 terms of 8 "
            "GPUs");
}

TEST(Chronus, RunsWhatItCannotPromiseIfToldSo) {
  Scenario scenario = exact("1x4", kWorked);
  scenario.settings.push_back({"unmet", "best-effort"});
  const Outcome outcome = run(scenario);
  EXPECT_TRUE(outcome.rejected.empty());
  EXPECT_EQ(outcome.finish[0], 200);
  EXPECT_EQ(outcome.finish[1], 300);
  EXPECT_GT(outcome.finish[2], 300);
}

TEST(Chronus, MovesAPromiseForAnUrgentJob) {
  // Both are answered before the term at 100 begins; Sa alone would have had it.
  const Outcome outcome =
      run(exact("1x4", {best_effort(0, 4, 100), slo(10, 2, 100, 400), slo(20, 4, 100, 200)}));
  EXPECT_EQ(outcome.finish[2], 200);
  EXPECT_EQ(outcome.finish[1], 300);
}

TEST(Chronus, CountsARestartInEveryLease) {
  // 3 terms of 1200 s with a restart in each are 3510 s of work.
  Scenario scenario = exact("1x1", {slo(0, 1, 3570, 3600), slo(0, 1, 3570, 4800)});
  scenario.settings = {{"lease", "1200"}, {"restart", "30"}, {"slack", "1"}};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.state[0], JobState::Rejected);
  EXPECT_EQ(outcome.finish[1], 3570);
}

TEST(Chronus, StartsOnIdleGpusBeforeItsFirstTerm) {
  const Outcome outcome = run(exact("1x4", {slo(30, 2, 100, 200)}));
  EXPECT_EQ(outcome.start[0], 30);
  EXPECT_EQ(outcome.finish[0], 130);
}

TEST(Chronus, ADeadlineIsNotPromisedOnTheStrengthOfAnIdleTerm) {
  // Idle GPUs would do it by 130, but no whole term ends by 190.
  const Outcome outcome = run(exact("1x4", {slo(30, 2, 100, 190)}));
  EXPECT_EQ(outcome.state[0], JobState::Rejected);
}

TEST(Chronus, AJobThatEndsInsideItsLeaseLeavesTheRestOfItToOthers) {
  const Outcome outcome = run(exact("1x2", {slo(0, 2, 50, 100), best_effort(0, 2, 40)}));
  EXPECT_EQ(outcome.start[1], 50);
  EXPECT_EQ(outcome.finish[1], 90);
}

TEST(Chronus, RenewsALeaseWithoutARestart) {
  Scenario scenario = exact("1x4", {slo(0, 2, 450, 1200), best_effort(0, 2, 450)});
  scenario.settings = {{"lease", "100"}, {"restart", "10"}, {"slack", "1"}};
  scenario.sim.costs = {.start = std::chrono::seconds{10},
                        .preempt = {},
                        .resume = std::chrono::seconds{10},
                        .migrate = std::chrono::seconds{10}};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.finish[0], 460);
  EXPECT_EQ(outcome.finish[1], 460);
  EXPECT_EQ(outcome.overhead[0], 10);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(Chronus, GivesLeftoversToTheShortest) {
  const Outcome outcome =
      run(exact("1x1", {best_effort(0, 1, 250), best_effort(10, 1, 120), best_effort(20, 1, 50)}));
  EXPECT_EQ(outcome.finish[2], 150);  // the first has 150 left at 100
  EXPECT_EQ(outcome.finish[1], 270);
  EXPECT_EQ(outcome.finish[0], 420);
  EXPECT_EQ(outcome.preemptions[0], 1);
}

TEST(Chronus, LetsAStarvedJobGoFirst) {
  std::vector<JobSpec> jobs{best_effort(0, 1, 500)};
  for (int i = 0; i < 30; ++i) jobs.push_back(best_effort(50 + i * 100, 1, 100));
  Scenario scenario = exact("1x1", jobs);
  const double patient = run(scenario).finish[0];
  scenario.settings.push_back({"be_starve", "3"});
  const Outcome outcome = run(scenario);
  EXPECT_EQ(patient, 3500);
  EXPECT_LT(outcome.finish[0], patient);
  EXPECT_GT(outcome.preemptions[0], 1);
}

TEST(Chronus, OrdersByServiceWhenRunTimesAreNotTrusted) {
  Scenario scenario = exact("1x1", {best_effort(0, 1, 120), best_effort(10, 1, 300)});
  scenario.settings.push_back({"be_key", "attained"});
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start[1], 100);
  EXPECT_EQ(outcome.finish[0], 220);
}

TEST(Chronus, LendsThePaddingOfBlocks) {
  // Three GPUs are a block of four; the fourth runs a job without a deadline.
  Scenario scenario =
      exact("1x8", {slo(0, 3, 200, 200), slo(0, 3, 200, 200), best_effort(0, 1, 50)});
  EXPECT_EQ(run(scenario).start[2], 0);
  scenario.settings.push_back({"lend_padding", "off"});
  EXPECT_EQ(run(scenario).start[2], 200);
}

TEST(Chronus, PushesBestEffortJobsAsideForABlock) {
  // Best fit spreads the two small ones over the server; the lease needs an aligned half.
  Scenario scenario =
      exact("1x8", {best_effort(0, 1, 50), best_effort(0, 3, 500), best_effort(0, 1, 500),
                    slo(60, 4, 100, 200), best_effort(60, 1, 500)});
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start[3], 100);
  EXPECT_EQ(outcome.finish[3], 200);
  EXPECT_EQ(outcome.migrations[1], 0);
  EXPECT_EQ(outcome.migrations[2], 1);  // one GPU in the upper half against three in the lower
}

TEST(Chronus, MakesALateJobBestEffortOrEndsIt) {
  // Said to take 100 s, takes 300: after two terms nothing in time is left.
  std::vector<JobSpec> jobs{slo(0, 1, 300, 200)};
  jobs[0].estimate = 100;
  Scenario scenario = exact("1x1", jobs);
  scenario.estimator = "limit";
  EXPECT_EQ(run(scenario).finish[0], 300);
  scenario.settings.push_back({"late", "kill"});
  const Outcome killed = run(scenario);
  EXPECT_EQ(killed.state[0], JobState::Cancelled);
  EXPECT_EQ(killed.finish[0], 200);
}

// A soft deadline moves by whole terms while it is worth something, then the job is best effort.
TEST(Chronus, PromisesALaterEndToASoftJob) {
  JobSpec soft = slo(0, 4, 200, 200);
  soft.soft_deadline = true;
  Scenario scenario = exact("1x4", {slo(0, 4, 200, 300), soft, best_effort(0, 4, 50)});
  scenario.settings.push_back({"grace", "300"});
  const Outcome later = run(scenario);
  EXPECT_EQ(later.finish[0], 200);
  EXPECT_EQ(later.finish[1], 400);  // promised for 400, so before the shorter best-effort job
  EXPECT_EQ(later.finish[2], 450);
  scenario.settings.back().second = "200";  // 400 is worth nothing
  const Outcome none = run(scenario);
  EXPECT_EQ(none.finish[2], 250);
  EXPECT_EQ(none.finish[1], 450);
  EXPECT_TRUE(none.rejected.empty());
}

TEST(Chronus, BreaksTheNewestPromiseWhenAServerIsLost) {
  Scenario scenario = exact("2x4", {slo(0, 4, 400, 400), slo(0, 4, 400, 400)});
  scenario.sim.outages = {{NodeId{1}, seconds_to_time(50), seconds_to_time(1000)}};
  const Outcome outcome = run(scenario);
  EXPECT_LE(outcome.finish[0], 400);
  EXPECT_GT(outcome.finish[1], 400);
  EXPECT_EQ(outcome.state[1], JobState::Completed);
}

/// Why a job was started or stopped, in order.
class Reasons final : public Observer {
 public:
  explicit Reasons(std::uint32_t job) : job_(job) {}
  void append(Time, const Action& action) override {
    if (action.job.value == job_) seen.push_back(action.reason);
  }
  std::vector<Reason> seen;

 private:
  std::uint32_t job_;
};

TEST(Chronus, TellsOfAPromiseThatWasBroken) {
  Scenario scenario = exact("2x4", {slo(0, 4, 400, 400), slo(0, 4, 400, 400)});
  scenario.sim.outages = {{NodeId{1}, seconds_to_time(50), seconds_to_time(1000)}};
  Reasons kept{0};
  static_cast<void>(run(scenario, &kept));
  Reasons broken{1};
  static_cast<void>(run(scenario, &broken));
  EXPECT_TRUE(std::ranges::count(kept.seen, Reason::Deadline) == 0);
  ASSERT_GE(broken.seen.size(), 2U);
  EXPECT_EQ(broken.seen.front(), Reason::Reservation);
  EXPECT_EQ(broken.seen.back(), Reason::Deadline) << "how it goes on";
}

TEST(Chronus, LetsAShortJobGoBeforeALeaseThatCanWait) {
  // The lease of term 0 may as well be in term 1 or 2.
  Scenario scenario = exact("1x4", {slo(0, 4, 100, 300), best_effort(0, 4, 50)});
  EXPECT_EQ(run(scenario).finish, (std::vector<double>{100, 150}));
  scenario.settings.push_back({"be_in_milp", "on"});
  EXPECT_EQ(run(scenario).finish, (std::vector<double>{150, 50}));
}

TEST(Chronus, RefusesBadSettings) {
  EXPECT_FALSE(make_policy("chronus", {{"lease", "30"}}).has_value());
  EXPECT_FALSE(make_policy("chronus", {{"slack", "0.5"}}).has_value());
  EXPECT_FALSE(make_policy("chronus", {{"grace", "soon"}}).has_value());
  EXPECT_FALSE(make_policy("chronus", {{"unmet", "maybe"}}).has_value());
  EXPECT_FALSE(make_policy("chronus", {{"mig_cost", "dear"}}).has_value());
}

TEST(Edf, RunsTheEarliestDeadlineAndStopsLaterOnes) {
  Scenario scenario;
  scenario.policy = "edf";
  scenario.cluster = "1x1";
  scenario.jobs = {best_effort(0, 1, 30), slo(10, 1, 30, 100), slo(20, 1, 10, 50)};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.finish[2], 30);
  EXPECT_EQ(outcome.finish[1], 50);
  EXPECT_EQ(outcome.finish[0], 70);
  EXPECT_EQ(outcome.preemptions[0], 1);
  EXPECT_EQ(outcome.preemptions[1], 1);
}

/// Leases lie on as few nodes as possible.
class Watcher final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (action.reason != Reason::Reservation || action.slices.empty()) return;
    const std::int32_t largest = engine->cluster().largest_node(action.pool);
    EXPECT_EQ(std::ssize(action.slices), (action.gpus + largest - 1) / largest);
    ++leases;
  }
  int leases = 0;
};

// With exact estimates, no failures, and switch costs within `restart`.
TEST(Chronus, AnAdmittedJobMeetsItsDeadline) {
  int refused = 0, leases = 0, in_time = 0;
  for (std::uint64_t seed = 1; seed <= 18; ++seed) {
    Rng rng{seed};
    std::vector<JobSpec> jobs;
    double submit = 0;
    for (int i = 0; i < 40; ++i) {
      const int gpus = 1 + static_cast<int>(rng.below(rng.below(4) == 0 ? 12 : 4));
      const double duration = 20 + static_cast<double>(rng.below(500));
      const double factor = 1.2 + 0.1 * static_cast<double>(rng.below(30));
      jobs.push_back(rng.below(2) == 0
                         ? best_effort(submit, gpus, duration)
                         : slo(submit, gpus, duration, submit + 100 + duration * factor));
      submit += static_cast<double>(rng.below(60));
    }
    Scenario scenario = exact(seed % 3 == 0 ? "3x6" : seed % 3 == 1 ? "2x8" : "4x4", jobs);
    scenario.settings = {{"lease", "100"}, {"restart", "20"}, {"slack", "1"}};
    if (seed % 2 == 0) scenario.settings.push_back({"lend_padding", "off"});
    if (seed > 12) scenario.settings.push_back({"be_in_milp", "on"});
    scenario.sim.costs = {.start = std::chrono::seconds{5},
                          .preempt = std::chrono::seconds{5},
                          .resume = std::chrono::seconds{15},
                          .migrate = std::chrono::seconds{15}};
    Watcher watcher;
    const Outcome outcome = run(scenario, &watcher);
    leases += watcher.leases;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (outcome.state[i] == JobState::Rejected) {
        ++refused;
        ASSERT_GT(jobs[i].deadline, 0);
        continue;
      }
      ASSERT_EQ(outcome.state[i], JobState::Completed);
      if (jobs[i].deadline == 0) continue;
      ++in_time;
      ASSERT_LE(outcome.finish[i], jobs[i].deadline) << "seed " << seed << " job " << i;
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(refused, 25);
  EXPECT_GT(leases, 50);
  EXPECT_GT(in_time, 50);
}

/// A gang of a model that suffers from distance.
TEST(Chronus, BringsBestEffortJobsTogetherWhereDistanceCosts) {
  Scenario scenario =
      exact("2x4", {best_effort(0, 3, 90), best_effort(0, 3, 90), best_effort(0, 2, 2000)});
  for (JobSpec& job : scenario.jobs) job.model = "vgg16";
  scenario.profiles = built_in_profiles();
  scenario.effects = {.locality = true};
  scenario.settings.push_back({"ls_iters", "0"});
  const Outcome spread = run(scenario);
  scenario.settings.back().second = "1000";
  const Outcome moved = run(scenario);
  EXPECT_EQ(spread.migrations[2], 0);
  EXPECT_EQ(moved.migrations[2], 1);
  EXPECT_LT(moved.finish[2], spread.finish[2]);
  scenario.settings.push_back({"mig_cost", "1"});  // more than any place is worth
  EXPECT_EQ(run(scenario).migrations[2], 0);
}

}  // namespace
}  // namespace berth::test
