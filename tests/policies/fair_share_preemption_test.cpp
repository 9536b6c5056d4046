// Fair share: who gives way to whom, and that nobody does so for ever. The numbers are those of
// docs/policies/fair-share.md.
#include <gtest/gtest.h>

#include <map>

#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test::fair_share_preemption_tests {
namespace {

JobSpec job(std::string user, double submit, int gpus, double duration, int priority = 0) {
  return {.submit = submit,
          .gpus = gpus,
          .duration = duration,
          .user = std::move(user),
          .priority = priority};
}

Outcome run_fair(Settings settings, std::string cluster, std::vector<JobSpec> jobs) {
  return run({.policy = "fair-share",
              .settings = std::move(settings),
              .cluster = std::move(cluster),
              .jobs = std::move(jobs)});
}

TEST(FairSharePreemption, IsOffUnlessAskedFor) {
  const std::vector<JobSpec> jobs{job("bob", 0, 1, 5000), job("alice", 1, 1, 10, 9)};
  EXPECT_EQ(run_fair({}, "1x1", jobs).total_preemptions, 0);
  EXPECT_EQ(
      run_fair({{"preempt", "share"}, {"usage", "alice:9999999"}}, "1x1", jobs).total_preemptions,
      0)
      << "by class is not by share";
}

TEST(FairSharePreemption, ALowerClassGivesWayAfterItsMinimumRun) {
  const Settings settings{{"preempt", "priority"}, {"min_run", "60"}};
  const Outcome outcome =
      run_fair(settings, "1x1", {job("bob", 0, 1, 100), job("bob", 10, 1, 30, 1)});
  EXPECT_EQ(outcome.start[1], 60);
  EXPECT_EQ(outcome.finish, (std::vector<double>{130, 90}));
}

TEST(FairSharePreemption, TakesWhoLosesLeastWork) {
  // At 100: J1 would lose 2 GPUs x 100 s, J2 100, J3 50 GPU-seconds.
  const auto victims = [](const std::string& min_run, int gpus) {
    const Outcome outcome = run_fair({{"preempt", "priority"}, {"min_run", min_run}}, "1x4",
                                     {job("a", 0, 2, 300), job("b", 0, 1, 300),
                                      job("c", 50, 1, 300), job("d", 100, gpus, 10, 1)});
    EXPECT_EQ(outcome.start[3], 100);
    return outcome.preemptions;
  };
  EXPECT_EQ(victims("10", 1), (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(victims("60", 1), (std::vector<int>{0, 1, 0, 0})) << "J3 has run for 50 s only";
  EXPECT_EQ(victims("10", 2), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(victims("10", 4), (std::vector<int>{1, 1, 1, 0}));
}

TEST(FairSharePreemption, SparesInteractiveJobsAndServices) {
  JobSpec notebook = job("b", 0, 1, 300);
  notebook.kind = JobKind::Interactive;
  const Outcome outcome = run_fair({{"preempt", "priority"}, {"min_run", "10"}}, "1x2",
                                   {notebook, job("c", 0, 1, 300), job("d", 100, 1, 10, 1)});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0}));
}

TEST(FairSharePreemption, SparesWhoAskedNotToBePreempted) {
  JobSpec firm = job("b", 0, 1, 300);
  firm.preemptible = false;
  const Outcome outcome = run_fair({{"preempt", "priority"}, {"min_run", "10"}}, "1x2",
                                   {firm, job("c", 0, 1, 300), job("d", 100, 1, 10, 1)});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0}));
}

const Settings kByShare{
    {"preempt", "share"}, {"half_life", "0"}, {"min_run", "600"}, {"advance", "600"}};

TEST(FairSharePreemption, AccountsPassEachOtherByTheMargin) {
  // bob stands at t + 600 (his GPU in advance), alice with her job at (0 + 600) x 1.25 = 750: she
  // may take from t = 150 on, and does at 600 when he has had his minimum run.
  // bob has used 600 then, and with his job (600 + 600) x 1.25 = 1500; alice stands at t: he is
  // back a second after 1500. She has used 901, (901 + 600) x 1.25 = 1876.25; he stands at
  // 1200 + (t - 1501), so that she is back a second after 2177.25 for the 99 s she has left.
  const Outcome outcome =
      run_fair(kByShare, "1x1", {job("bob", 0, 1, 10'000), job("alice", 0, 1, 1000)});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 600}));
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{2, 1}));
  EXPECT_NEAR(outcome.finish[1], 2277.25, 1e-3);
  EXPECT_NEAR(outcome.finish[0], 11'000, 1e-3);
}

TEST(FairSharePreemption, OneAccountTakesNothingFromItself) {
  EXPECT_EQ(run_fair(kByShare, "1x1", {job("bob", 0, 1, 10'000), job("bob", 0, 1, 1000)})
                .total_preemptions,
            0);
}

TEST(FairSharePreemption, ALowerClassTakesNothingFromAHigherOneByShare) {
  EXPECT_EQ(run_fair(kByShare, "1x1", {job("bob", 0, 1, 10'000, 1), job("alice", 0, 1, 1000)})
                .total_preemptions,
            0);
}

/// Every stretch that a preemption of ours ends was at least so long.
class StretchWatch final : public Observer {
 public:
  explicit StretchWatch(double min_run) : min_run_(min_run) {}
  void append(Time now, const Action& action) override {
    if (action.kind == ActionKind::Preempt && action.reason == Reason::Priority) {
      ++preemptions;
      EXPECT_GE(to_seconds(now - since_.at(action.job)), min_run_ - 1e-6);
    }
    if (begins_stretch(action.kind) || changes_devices(action.kind)) since_[action.job] = now;
  }
  int preemptions = 0;

 private:
  double min_run_;
  std::map<JobId, Time> since_;
};

/// Greedy users that all want everything all the time: work is done between any two preemptions of
/// a job, so their number is bounded by the work there is, and all jobs end.
TEST(FairSharePreemption, NeverLoops) {
  constexpr double kMinRun = 5;
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Scenario scenario = random_scenario(seed, {.max_jobs = 30, .many_nodes = seed % 2 == 0});
    scenario.policy = "fair-share";
    scenario.placement = seed % 3 == 0 ? "best-fit" : "count";
    scenario.settings = {{"preempt", "both"},
                         {"min_run", fmt::format("{}", kMinRun)},
                         {"advance", seed % 4 == 0 ? "1" : "5"},
                         {"margin", seed % 5 == 0 ? "0" : "0.25"},
                         {"half_life", seed % 2 == 0 ? "0" : "30"}};
    if (seed % 7 == 0)
      scenario.sim.costs = {.start = std::chrono::seconds{1}, .resume = std::chrono::seconds{2}};
    StretchWatch watch{kMinRun};
    const Outcome outcome = run(scenario, &watch);
    double held = 0;
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
      ASSERT_EQ(outcome.state[i], JobState::Completed);
      held += outcome.held[i];
      EXPECT_LE(outcome.preemptions[i] * kMinRun, outcome.held[i] + 1e-6);
    }
    EXPECT_LE(watch.preemptions * kMinRun, held + 1e-6);
    seen += watch.preemptions;
    if (HasFailure()) return;
  }
  EXPECT_GT(seen, 100) << "the test must have seen what it judges";
}

}  // namespace
}  // namespace berth::test::fair_share_preemption_tests
