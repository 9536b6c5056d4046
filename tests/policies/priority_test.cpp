// Priority classes, quotas and aging: one test per rule and edge case.
#include "policies/priority/priority.h"

#include <gtest/gtest.h>

#include "policies/stress.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

using namespace priority;

JobSpec job(double submit, int gpus, double duration, int priority, std::string tenant = {}) {
  return {.submit = submit,
          .gpus = gpus,
          .duration = duration,
          .user = std::move(tenant),
          .priority = priority};
}

Outcome run_priority(Settings settings, std::string cluster, std::vector<JobSpec> jobs) {
  return run({.policy = "priority",
              .settings = std::move(settings),
              .cluster = std::move(cluster),
              .jobs = std::move(jobs)});
}

const Settings kAllPreempt = {{"preempt_classes", "all"}};

TEST(Priority, OrdersByClassThenSubmission) {
  const std::vector<JobSpec> jobs{job(0, 4, 10, 0), job(1, 4, 10, 0), job(2, 4, 10, 5),
                                  job(3, 4, 10, 5)};
  EXPECT_EQ(run_priority({}, "1x4", jobs).start, (std::vector<double>{0, 30, 10, 20}));
}

TEST(Priority, SkipsOrBlocksAsTold) {
  const std::vector<JobSpec> jobs{job(0, 3, 10, 0), job(1, 4, 10, 1), job(2, 1, 2, 0)};
  EXPECT_EQ(run_priority({}, "1x4", jobs).start, (std::vector<double>{0, 10, 2}));
  EXPECT_EQ(run_priority({{"pass", "strict"}}, "1x4", jobs).start,
            (std::vector<double>{0, 10, 20}));
}

TEST(Priority, PreemptsByClassOnlyIfAllowed) {
  const std::vector<JobSpec> jobs{job(0, 4, 10, 0), job(1, 4, 10, 2)};
  EXPECT_EQ(run_priority({}, "1x4", jobs).total_preemptions, 0);
  EXPECT_EQ(run_priority({{"preempt_classes", "3"}}, "1x4", jobs).total_preemptions, 0);
  EXPECT_EQ(run_priority({{"preempt_classes", "2"}}, "1x4", jobs).finish,
            (std::vector<double>{20, 11}));
  EXPECT_EQ(run_priority(kAllPreempt, "1x4", jobs).finish, (std::vector<double>{20, 11}));
}

TEST(Priority, NeverPreemptsAnEqualClass) {
  EXPECT_EQ(
      run_priority(kAllPreempt, "1x4", {job(0, 4, 10, 2), job(1, 4, 10, 2)}).total_preemptions, 0);
}

TEST(Priority, TakesTheLowestClassThenTheLatestStart) {
  // J2 and J3 are class 0, J3 started later; J1 is class 1. One GPU is asked for.
  const Outcome outcome = run_priority(
      kAllPreempt, "1x3", {job(0, 1, 20, 1), job(0, 1, 20, 0), job(1, 1, 20, 0), job(2, 1, 5, 2)});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 0, 1, 0}));
}

TEST(Priority, SparesVictimsThatStillFit) {
  // Taken in order J3 (1), J2 (3): 4 free, J4 needs 3, so J3 fits again and only J2 gives way.
  const Outcome outcome = run_priority(
      kAllPreempt, "1x6", {job(0, 2, 20, 1), job(0, 3, 20, 0), job(1, 1, 20, 0), job(2, 3, 5, 1)});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0, 0}));
}

TEST(Priority, PreemptsNobodyIfThatWouldNotBeEnough) {
  const Outcome outcome =
      run_priority(kAllPreempt, "1x4", {job(0, 2, 10, 5), job(0, 2, 10, 0), job(1, 4, 5, 3)});
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_EQ(outcome.start[2], 10);
}

/// Walks over all waiting jobs in order at every pass; takes whatever fits.
class NaivePriority final : public Policy {
 public:
  NaivePriority(PassRule pass, Duration aging, std::int32_t top)
      : pass_(pass), aging_(aging), top_(top) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "naive-priority"; }
  void on_arrival(const View&, JobId job) override { queue_.push_back(job); }
  void decide(const View& view, Plan& plan, Rng&) override {
    const auto klass = [&](JobId job) {
      const std::int64_t own = view.request(job).priority;
      return std::max<std::int64_t>(
          own, std::min<std::int64_t>(top_, own + (view.now - view.jobs.submitted[job]) / aging_));
    };
    std::ranges::sort(queue_, [&](JobId a, JobId b) {
      return std::pair(-klass(a), a) < std::pair(-klass(b), b);
    });
    bool blocked = false;
    std::erase_if(queue_, [&](JobId job) {
      const bool started = !blocked && plan.try_start(job);
      blocked = blocked || (!started && pass_ == PassRule::Strict);
      return started;
    });
  }
  /// Every tick of a second: the product must find out by itself when looking again is worth it.
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    if (queue_.empty()) return std::nullopt;
    return Time{(view.now.time_since_epoch() / kSecond + 1) * kSecond};
  }

 private:
  static constexpr Duration kSecond = std::chrono::seconds{1};
  PassRule pass_;
  Duration aging_;
  std::int32_t top_;
  std::vector<JobId> queue_;
};

TEST(Priority, AgesLikeAWalkOverAllJobsEverySecond) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const PassRule pass = seed % 2 == 0 ? PassRule::Strict : PassRule::Skip;
    const auto aging = static_cast<std::int64_t>(1 + seed % 7);
    const auto top = static_cast<std::int32_t>(seed % 5);
    Scenario scenario = random_scenario(seed, {.max_jobs = 25});
    NaivePriority naive{pass, std::chrono::seconds{aging}, top};
    Priority policy{
        {}, {.pass = pass, .aging = {.interval = std::chrono::seconds{aging}, .max_class = top}}};
    ASSERT_EQ(run_with(scenario, policy).start, run_with(scenario, naive).start) << "seed " << seed;
  }
}

// --- quotas

TEST(Priority, RejectsAGangAboveTheHardQuota) {
  const Outcome outcome = run_priority({{"quota", "blue:2:4"}}, "1x8",
                                       {job(0, 5, 10, 0, "blue"), job(0, 4, 10, 0, "blue")});
  EXPECT_EQ(outcome.state[0], JobState::Rejected);
  EXPECT_EQ(outcome.rejected.at(0), "needs 5 GPUs, tenant 'blue' may use at most 4");
  EXPECT_EQ(outcome.start[1], 0);
}

TEST(Priority, HoldsATenantAtItsHardQuotaWithoutBlockingOthers) {
  const Settings settings = {{"quota", "blue:2:4"}, {"pass", "strict"}};
  const Outcome outcome =
      run_priority(settings, "1x8",
                   {job(0, 3, 10, 9, "blue"), job(1, 2, 10, 9, "blue"), job(2, 4, 5, 0, "red")});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 10, 2}));
}

TEST(Priority, TakesAGuaranteeBackFromBorrowersOfAnyClass) {
  // red borrows 6 over its guarantee of 2 and is of a higher class; blue is within its guarantee
  // of 4.
  const Settings settings = {{"quota", "blue:4,red:2"}};
  const Outcome outcome = run_priority(
      settings, "1x8", {job(0, 2, 20, 9, "red"), job(0, 6, 20, 9, "red"), job(1, 4, 5, 0, "blue")});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(outcome.start[2], 1);
}

TEST(Priority, ProtectsJobsWithinTheirGuarantee) {
  // blue's second job is above its guarantee, red is within its own: nothing to take, by guarantee
  // or class.
  const Settings settings = {{"quota", "blue:4,red:4"}, {"preempt_classes", "all"}};
  const Outcome outcome =
      run_priority(settings, "1x8",
                   {job(0, 4, 10, 0, "red"), job(0, 4, 20, 0, "blue"), job(1, 4, 5, 9, "blue")});
  EXPECT_EQ(outcome.preemptions,
            (std::vector<int>{0, 1, 0}));  // its own tenant's lower class gives way
  const Outcome other =
      run_priority(settings, "1x8",
                   {job(0, 4, 10, 0, "red"), job(0, 4, 20, 9, "blue"), job(1, 4, 5, 9, "blue")});
  EXPECT_EQ(other.total_preemptions, 0);
}

TEST(Priority, PreemptsNothingIfATenantWouldEndBelowItsGuarantee) {
  // red holds 6 with a guarantee of 4 in one gang: without it red would have nothing.
  const Settings settings = {{"quota", "blue:4,red:4"}};
  const Outcome outcome =
      run_priority(settings, "1x8", {job(0, 6, 10, 0, "red"), job(1, 4, 5, 0, "blue")});
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_EQ(outcome.start[1], 10);
}

TEST(Priority, CountsUnlistedTenantsAsBorrowers) {
  const Settings settings = {{"quota", "blue:4"}};
  const Outcome outcome =
      run_priority(settings, "1x8", {job(0, 8, 10, 9, "who"), job(1, 4, 5, 0, "blue")});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{1, 0}));
}

/// Lowers blue's hard quota to 2 at the end of the first instant from `when` on.
class QuotaCut final : public Observer {
 public:
  QuotaCut(Priority& policy, Time when) : policy_(&policy), when_(when) {}
  void append(Time, const Action&) override {}
  void instant_done(Time now) override {
    if (now >= when_) policy_->change_quota("blue", {.guaranteed = 2, .hard = 2});
  }

 private:
  Priority* policy_;
  Time when_;
};

Outcome cut_quota(Enforce enforce) {
  Quotas quotas;
  quotas.set("blue", {.guaranteed = 8, .hard = 8});
  Priority policy{quotas, {.enforce = enforce}};
  QuotaCut cut{policy, seconds_to_time(1)};
  return run_with({.cluster = "1x8",
                   .jobs = {job(0, 2, 10, 0, "blue"), job(1, 2, 10, 0, "blue"),
                            job(2, 1, 1, 0, "red"), job(3, 1, 5, 0, "blue")}},
                  policy, &cut);
}

TEST(Priority, StartsNothingNewWhenAQuotaFallsBelowUse) {
  const Outcome outcome = cut_quota(Enforce::Later);
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 1, 2, 11}));  // 2 of 2 in use until 11
}

TEST(Priority, PreemptsDownToALoweredQuotaWhenToldNow) {
  const Outcome outcome = cut_quota(Enforce::Now);
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0, 0}));  // at 2, the latest start first
  EXPECT_EQ(outcome.finish,
            (std::vector<double>{10, 19, 3, 24}));  // J2 goes on at 10 with 9 s left
}

// --- aging

TEST(Priority, AgingRaisesAWaitingJobStepByStep) {
  // Class-1 jobs come every 5 s and would starve J2 (class 0); after 10 s it is class 1 and older.
  std::vector<JobSpec> jobs{job(0, 4, 5, 1), job(0, 4, 5, 0)};
  for (int i = 1; i < 6; ++i) jobs.push_back(job(5.0 * i - 1, 4, 5, 1));
  EXPECT_EQ(run_priority({}, "1x4", jobs).start[1], 30);
  EXPECT_EQ(run_priority({{"aging_interval", "10"}}, "1x4", jobs).start[1], 10);
}

TEST(Priority, AgingStopsAtTheTopClass) {
  // Capped at 1 the old job never passes class 2, however long it waits.
  std::vector<JobSpec> jobs{job(0, 4, 5, 2), job(0, 4, 5, 0)};
  for (int i = 1; i < 6; ++i) jobs.push_back(job(5.0 * i - 1, 4, 5, 2));
  EXPECT_EQ(run_priority({{"aging_interval", "1"}, {"max_class", "1"}}, "1x4", jobs).start[1], 30);
}

TEST(Priority, WakesUpWhenAgingChangesTheHeadOfAStrictQueue) {
  const Settings settings = {{"pass", "strict"}, {"aging_interval", "10"}, {"max_class", "5"}};
  const std::vector<JobSpec> jobs{job(0, 4, 1, 9), job(0, 3, 100, 5), job(0, 1, 5, 0),
                                  job(0.5, 4, 5, 1)};
  // At 1 J2 starts; the head is then J4 (class 1) and blocks J3, until J3 is class 1 itself at 10.
  EXPECT_EQ(run_priority(settings, "1x4", jobs).start, (std::vector<double>{0, 1, 10, 101}));
}

TEST(Priority, AgeGivesNoRightToPreempt) {
  const Settings settings = {{"preempt_classes", "all"}, {"aging_interval", "1"}};
  EXPECT_EQ(run_priority(settings, "1x4", {job(0, 4, 20, 0), job(1, 4, 5, 0), job(2, 1, 1, 0)})
                .total_preemptions,
            0);
}

TEST(Priority, AgeProtectsOnceAJobRuns) {
  // J2 waits 10 s and starts as class 2; a class-1 job does not take its GPUs, a class-3 job does.
  const Settings settings = {{"preempt_classes", "all"}, {"aging_interval", "5"}};
  const Outcome outcome = run_priority(
      settings, "1x4", {job(0, 4, 10, 5), job(0, 4, 20, 0), job(11, 4, 5, 1), job(12, 4, 5, 3)});
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 10, 35, 12}));
}

TEST(Priority, SaysWhatIsWrongWithASetting) {
  const auto error = [](Settings settings) {
    return make_policy("priority", settings).error().text();
  };
  EXPECT_NE(error({{"quota", "blue:4:2"}}).find("guaranteed <= hard"), std::string::npos);
  EXPECT_NE(error({{"quota", "blue:1.5"}}).find("whole GPUs"), std::string::npos);
  EXPECT_NE(error({{"preempt_classes", "some"}}).find("none, all"), std::string::npos);
}

TEST(Priority, SurvivesRandomWorlds) {
  survive({.policy = "priority"});
  survive({.policy = "priority", .settings = kAllPreempt});
  survive({.policy = "priority",
           .settings = {{"preempt_classes", "1"},
                        {"quota", "g1:6:14,u1:4,u2:3:3"},
                        {"aging_interval", "5"},
                        {"max_class", "3"}}});
  survive({.policy = "priority",
           .settings = {{"pass", "strict"},
                        {"preempt_classes", "all"},
                        {"quota", "g1:8,g2:8"},
                        {"aging_interval", "3"}}});
}

}  // namespace
}  // namespace berth::test
