// The engine's rules: what a plan can and cannot do, the order of one instant, costs, outages,
// refusals.
#include <gtest/gtest.h>

#include <set>

#include "support/opening_executor.h"
#include "support/passing_executor.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

/// Tries and takes back at random before it lets a real policy decide: a rollback must leave no
/// trace.
class Fickle final : public Policy {
 public:
  explicit Fickle(std::unique_ptr<Policy> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return inner_->traits(); }
  void begin(const View& view) override { inner_->begin(view); }
  void on_arrival(const View& view, JobId job) override { inner_->on_arrival(view, job); }
  void on_departure(const View& view, JobId job) override { inner_->on_departure(view, job); }
  void on_requeue(const View& view, JobId job) override { inner_->on_requeue(view, job); }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    return inner_->next_wakeup(view);
  }
  void decide(const View& view, Plan& plan, Rng& rng) override {
    const std::int64_t free = view.cluster.free_gpus();
    const Plan::Mark mark = plan.mark();
    for (int i = 0; i < 10; ++i) {
      const JobId job{static_cast<std::uint32_t>(dice_.below(view.jobs.size()))};
      if (plan.holds(job)) {
        plan.preempt(job);
      } else if (view.jobs.is_waiting(job) || view.jobs.is_running(job)) {
        static_cast<void>(plan.try_start(job));
      }
    }
    plan.rollback(mark);
    EXPECT_EQ(view.cluster.free_gpus(), free);
    inner_->decide(view, plan, rng);
  }

 private:
  std::unique_ptr<Policy> inner_;
  Rng dice_{99};
};

TEST(Plan, ARollbackLeavesNoTrace) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 20, .many_nodes = true});
    scenario.policy = "srtf";
    scenario.placement = seed % 2 == 0 ? "best-fit" : "count";
    Fickle fickle{*make_policy("srtf")};
    ASSERT_EQ(run_with(scenario, fickle).digest, run(scenario).digest) << "seed " << seed;
  }
}

class PeeksAtDurations final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "peeks"; }
  void decide(const View& view, Plan&, Rng&) override {
    static_cast<void>(view.estimate(JobId{0}));
  }
};

TEST(ViewDeathTest, APolicyCannotReadWhatItDidNotDeclare) {
  const Scenario scenario{.jobs = {{0, 1, 5}}};
  EXPECT_DEATH(
      {
        PeeksAtDurations policy;
        static_cast<void>(run_with(scenario, policy));
      },
      "reads only what it declared: duration");
}

TEST(Engine, CompletionsFreeDevicesBeforeArrivalsOfTheSameInstantAreDecided) {
  const Outcome outcome = run({.policy = "fifo", .cluster = "1x1", .jobs = {{0, 1, 5}, {5, 1, 1}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 5}));
}

TEST(Engine, AJobThatFitsNoNodeIsRefusedWithNumbersAndBlocksNobody) {
  const Outcome outcome = run({.policy = "fifo",
                               .cluster = "2x4",
                               .placement = "best-fit",
                               .jobs = {{0, 9, 5}, {0, 4, 5}}});
  EXPECT_EQ(outcome.state[0], JobState::Rejected);
  EXPECT_EQ(outcome.state[1], JobState::Completed);
  EXPECT_EQ(outcome.rejected,
            (std::vector<std::string>{"needs 9 GPUs of one type, the cluster has at most 8"}));
  const Outcome type = run({.policy = "fifo",
                            .cluster = "2x4:v100",
                            .jobs = {{.submit = 0, .gpus = 1, .duration = 1, .type = "h100"}}});
  EXPECT_EQ(
      type.rejected,
      (std::vector<std::string>{"asks for device type 'h100', which this cluster does not have"}));
}

TEST(Engine, ARefusalSpeaksOfTheRequestItself) {
  const Outcome outcome =
      run({.policy = "fifo",
           .cluster = "2x4:v100",
           .jobs = {{.submit = 0, .gpus = 1, .duration = 1, .type = "h100"},
                    {.submit = 1, .gpus = 1, .duration = 1, .type = "b200"}}});  // the same shape
  EXPECT_EQ(
      outcome.rejected,
      (std::vector<std::string>{"asks for device type 'h100', which this cluster does not have",
                                "asks for device type 'b200', which this cluster does not have"}));
}

TEST(Engine, AGangNeverMixesDeviceTypesAndHonoursPreferences) {
  const Outcome outcome =
      run({.policy = "fifo",
           .cluster = "1x4:v100,1x4:a100",
           .placement = "best-fit",
           .jobs = {{.submit = 0, .gpus = 4, .duration = 10, .type = "a100"},
                    {.submit = 0, .gpus = 2, .duration = 10, .type = "a100|v100"},
                    {.submit = 0, .gpus = 4, .duration = 1}}});
  EXPECT_EQ(outcome.start,
            (std::vector<double>{0, 0, 10}));  // the second took v100s, the third fits none whole
}

TEST(Costs, AVictimHoldsItsDevicesWhileItSaves) {
  // srtf, 1 GPU: A (10 s) runs from 0, B (2 s) comes at 4. A saves until 7; B runs 7-9; A restarts
  // at 9, pays 1 s, has 6 s left: ends 16. A held 0-7 and 9-16.
  SimOptions sim;
  sim.costs.preempt = std::chrono::seconds{3};
  sim.costs.resume = std::chrono::seconds{1};
  for (const std::string placement : {"count", "best-fit"}) {
    const Outcome outcome = run({.policy = "srtf",
                                 .cluster = "1x1",
                                 .placement = placement,
                                 .jobs = {{0, 1, 10}, {4, 1, 2}},
                                 .sim = sim});
    EXPECT_EQ(outcome.start, (std::vector<double>{0, 7})) << placement;
    EXPECT_EQ(outcome.finish, (std::vector<double>{16, 9})) << placement;
    EXPECT_EQ(outcome.held, (std::vector<double>{14, 2})) << placement;
    EXPECT_EQ(outcome.overhead, (std::vector<double>{4, 0})) << placement;
  }
}

TEST(Costs, AFirstStartPaysOnlyTheStart) {
  SimOptions sim;
  sim.costs = {.start = std::chrono::seconds{2},
               .preempt = {},
               .resume = std::chrono::seconds{50},
               .migrate = {}};
  EXPECT_EQ(run({.policy = "fifo", .cluster = "1x1", .jobs = {{0, 1, 10}}, .sim = sim}).finish[0],
            12);
}

TEST(Outages, AJobLosesItsNodeAndGoesOnElsewhereOrLater) {
  SimOptions sim;
  sim.outages = {{NodeId{0}, seconds_to_time(4), seconds_to_time(6)}};
  const Outcome elsewhere = run({.policy = "fifo",
                                 .cluster = "2x1",
                                 .placement = "first-fit",
                                 .jobs = {{0, 1, 10}},
                                 .sim = sim});
  EXPECT_EQ(elsewhere.finish[0], 10);  // moves to the other node at once, nothing lost
  const Outcome later = run({.policy = "fifo",
                             .cluster = "1x1",
                             .placement = "first-fit",
                             .jobs = {{0, 1, 10}},
                             .sim = sim});
  EXPECT_EQ(later.finish[0], 12);      // waits 4-6
  EXPECT_EQ(later.preemptions[0], 0);  // no decision of ours
}

TEST(Outages, ARunEndsEvenIfAJobCanNeverComeBack) {
  const Trace trace = make_trace({{0, 1, 10}});
  const Cluster cluster = *parse_cluster_short("1x1");
  for (const PolicyEntry& entry : policy_registry()) {
    auto policy = *make_policy(entry.name);
    auto placement = *make_placement("best-fit");
    auto estimator = *make_estimator("oracle", 1);
    const RateModel rates{ProfileSet{}, cluster, Effects{}};
    SimOptions sim;
    sim.outages = {{NodeId{0}, seconds_to_time(4), kNever}};
    SimExecutor executor{trace, cluster, with_truth(sim, *policy, rates)};
    Engine engine{{.trace = trace,
                   .cluster = cluster,
                   .policy = *policy,
                   .placement = *placement,
                   .estimator = *estimator,
                   .executor = executor,
                   .believed = rates}};
    const auto done = engine.run();
    ASSERT_FALSE(done.has_value()) << entry.name;
    EXPECT_NE(done.error().text().find("1 of 1 jobs can never start"), std::string::npos)
        << done.error().text();
  }
}

TEST(Endings, TraceFailuresKillsAndCancellationsAreRecordedAsWhatTheyWere) {
  Trace trace = make_trace({{0, 1, 10}, {0, 1, 10}, {0, 1, 10}, {0, 1, 10}});
  trace.jobs[0].status = TraceStatus::Failed;
  trace.jobs[1].status = TraceStatus::Killed;
  trace.jobs[2].cancel_at = seconds_to_time(3);   // waits behind the others on one GPU
  trace.jobs[3].cancel_at = seconds_to_time(25);  // runs 20-25
  for (const PolicyEntry& entry : policy_registry()) {
    const Cluster cluster = *parse_cluster_short("1x1");
    auto policy = *make_policy(entry.name);
    if (policy->traits().preempts || policy->traits().needs_devices()) continue;
    auto placement = *make_placement("best-fit");
    auto estimator = *make_estimator("oracle", 1);
    const RateModel rates{ProfileSet{}, cluster, Effects{}};
    SimExecutor executor{trace, cluster, with_truth({}, *policy, rates)};
    Engine engine{{.trace = trace,
                   .cluster = cluster,
                   .policy = *policy,
                   .placement = *placement,
                   .estimator = *estimator,
                   .executor = executor,
                   .believed = rates}};
    ASSERT_TRUE(engine.run().has_value()) << entry.name;
    EXPECT_EQ(engine.jobs().state[JobId{0}], JobState::Failed) << entry.name;
    EXPECT_EQ(engine.jobs().state[JobId{1}], JobState::Cancelled) << entry.name;
    EXPECT_EQ(engine.jobs().state[JobId{2}], JobState::Cancelled) << entry.name;
    EXPECT_EQ(to_seconds(engine.jobs().finished[JobId{2}]), 3) << entry.name;
    EXPECT_EQ(to_seconds(engine.jobs().finished[JobId{3}]), 25) << entry.name;
    EXPECT_EQ(engine.jobs().held[JobId{2}], Duration::zero()) << entry.name;
  }
}

/// Knows from before by which profile jobs run.
class Remembering final : public PassingExecutor {
 public:
  Remembering(std::unique_ptr<Executor> world, ProfileId profile)
      : PassingExecutor(std::move(world)), profile_(profile) {}
  [[nodiscard]] JobPast past(JobId job) const override {
    JobPast past = world().past(job);
    past.profile = profile_;
    return past;
  }

 private:
  ProfileId profile_;
};

class LooksAtKinds final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "looks-at-kinds"; }
  void on_arrival(const View& view, JobId job) override {
    profile = view.kind(job).profile;
    EXPECT_EQ(view.jobs.profile[job], profile);
    here_.push_back(job);
  }
  void decide(const View&, Plan& plan, Rng&) override {
    std::erase_if(here_, [&](JobId job) { return plan.try_start(job); });
  }
  std::optional<ProfileId> profile;

 private:
  std::vector<JobId> here_;
};

// Because what is believed of a job is looked up by its kind.
TEST(Arrivals, AJobThatIsKnownFromBeforeIsOfTheKindOfItsProfile) {
  const Trace trace = make_trace({{0, 1, 10}});
  Trace slots = slots_of(trace);
  const Cluster cluster = *parse_cluster_short("1x1");
  ProfileSet profiles;
  profiles.add({.name = "learnt", .aliases = {}, .speeds = {}});
  const ProfileId learnt = *profiles.find("learnt");
  const RateModel rates{profiles, cluster, Effects{}};
  LooksAtKinds policy;
  auto placement = *make_placement("best-fit");
  auto estimator = *make_estimator("oracle", 1);
  Remembering executor{std::make_unique<OpeningExecutor>(trace, slots, cluster, SimOptions{}),
                       learnt};
  Engine engine{{.trace = slots,
                 .cluster = cluster,
                 .policy = policy,
                 .placement = *placement,
                 .estimator = *estimator,
                 .executor = executor,
                 .believed = rates,
                 .open = true}};
  ASSERT_TRUE(engine.run().has_value());
  EXPECT_EQ(policy.profile, learnt);
}

/// Starts whoever fits and ends each job by a plan: those that run after two seconds, those that
/// wait at once with the first of these.
class Kills final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "kills"; }
  void on_arrival(const View&, JobId job) override { here_.push_back(job); }
  void on_departure(const View& view, JobId job) override {
    EXPECT_FALSE(view.jobs.allocation[job].holds());
    EXPECT_EQ(view.jobs.state[job], JobState::Cancelled);
    free_when_left.push_back(view.cluster.free_gpus());
    departed.push_back(job);
    std::erase(here_, job);
  }
  void decide(const View& view, Plan& plan, Rng&) override {
    for (const JobId job : here_) {
      if (view.now >= seconds_to_time(2))
        plan.kill(job, Reason::EarlyStop);
      else if (!plan.holds(job))
        static_cast<void>(plan.try_start(job));
    }
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    if (here_.empty()) return std::nullopt;
    return view.now + std::chrono::seconds{1};
  }
  std::vector<JobId> departed;
  std::vector<std::int64_t> free_when_left;

 private:
  std::vector<JobId> here_;
};

/// Who has come and not gone.
class Present final : public PowerManager {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "present"; }
  void on_arrival(const View&, JobId job) override { jobs.insert(job); }
  void on_departure(const View&, JobId job) override { EXPECT_EQ(jobs.erase(job), 1U); }
  void manage(const View&, Plan&) override {}
  std::set<JobId> jobs;
};

TEST(Kill, AJobKilledByAPlanDepartsLikeOneThatEnds) {
  Kills policy;
  Present present;
  const Outcome outcome = run_with({.cluster = "1x2",
                                    .placement = "best-fit",
                                    .jobs = {{0, 2, 9}, {0, 1, 9}, {1, 1, 9}},
                                    .power = &present},
                                   policy);
  EXPECT_EQ(policy.departed, (std::vector<JobId>{JobId{0}, JobId{1}, JobId{2}}));
  EXPECT_EQ(policy.free_when_left, (std::vector<std::int64_t>{2, 2, 2}));  // devices came back
  EXPECT_TRUE(present.jobs.empty());
  EXPECT_EQ(outcome.state, std::vector<JobState>(3, JobState::Cancelled));
}

TEST(Estimators, DifferInWhatTheyKnow) {
  Trace trace =
      make_trace({{.submit = 0, .gpus = 1, .duration = 100, .user = "ann", .estimate = 600},
                  {.submit = 0, .gpus = 1, .duration = 50, .user = "ann"}});
  EXPECT_EQ((*make_estimator("oracle", 1))->estimate(trace.jobs[0]), std::chrono::seconds{100});
  EXPECT_EQ((*make_estimator("limit", 1))->estimate(trace.jobs[0]), std::chrono::seconds{600});
  EXPECT_EQ((*make_estimator("limit", 1))->estimate(trace.jobs[1]), std::chrono::hours{1});
  auto history = *make_estimator("history", 1);
  EXPECT_EQ(history->estimate(trace.jobs[1]), std::chrono::hours{1});
  history->learn(trace.jobs[0], std::chrono::seconds{100});
  EXPECT_EQ(history->estimate(trace.jobs[1]), std::chrono::seconds{100});
  const Duration noisy = (*make_estimator("oracle:0.5", 7))->estimate(trace.jobs[0]);
  EXPECT_NE(noisy, Duration{std::chrono::seconds{100}});
  EXPECT_EQ((*make_estimator("oracle:0.5", 7))->estimate(trace.jobs[0]), noisy);
  EXPECT_NE((*make_estimator("oracle:0.5", 8))->estimate(trace.jobs[0]), noisy);
  EXPECT_FALSE(make_estimator("oracel", 1).has_value());
  EXPECT_NE(make_estimator("oracel", 1).error().text().find("did you mean oracle"),
            std::string::npos);
}

TEST(Estimators, LasAndFifoNeedNone) {
  for (const char* name : {"fifo", "las", "las-2d", "tiresias-l"})
    EXPECT_EQ((*make_policy(name))->traits().needs, Need::Nothing) << name;
  EXPECT_EQ((*make_policy("sjf"))->traits().needs, Need::RunTime);
}

TEST(Easy, KillsAJobThatOutlivesItsEstimateIfAsked) {
  const Scenario scenario{.policy = "easy",
                          .settings = {{"kill_overrun", "on"}},
                          .cluster = "1x1",
                          .estimator = "limit",
                          .jobs = {{.submit = 0, .gpus = 1, .duration = 10, .estimate = 4},
                                   {.submit = 0, .gpus = 1, .duration = 3, .estimate = 5}}};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.finish, (std::vector<double>{4, 7}));
  EXPECT_EQ(outcome.state[0], JobState::Cancelled);
  EXPECT_EQ(outcome.state[1], JobState::Completed);
}

TEST(Easy, UsesThePlacementTestOnTheFutureFreeMap) {
  // Two nodes of 2. A (10 s) and X (1 s) share node 0, B (5 s) sits on node 1. At 1 each node has
  // one free GPU: by counting, H (2 GPUs) could start, but consolidated it must wait for B and gets
  // node 1 at 5. J (8 s) may jump onto node 0; K (8 s) would have to take node 1 and waits for J.
  const Outcome outcome =
      run({.policy = "easy",
           .cluster = "2x2",
           .placement = "consolidated",
           .jobs = {{0, 1, 10}, {0, 1, 1}, {0, 1, 5}, {1, 2, 5}, {1, 1, 8}, {1, 1, 8}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 0, 5, 1, 9}));
}

TEST(Preemptive, WaitsForAGainWorthARestart) {
  const std::vector<JobSpec> jobs{{0, 1, 10}, {4, 1, 5}};  // at 4: 6 s left against 5 s
  EXPECT_EQ(run({.policy = "srtf", .cluster = "1x1", .jobs = jobs}).total_preemptions, 1);
  EXPECT_EQ(
      run({.policy = "srtf", .settings = {{"preempt_gain", "1"}}, .cluster = "1x1", .jobs = jobs})
          .total_preemptions,
      0);
  EXPECT_EQ(
      run({.policy = "srtf", .settings = {{"preempt_gain", "0.5"}}, .cluster = "1x1", .jobs = jobs})
          .total_preemptions,
      1);
}

TEST(Las, TakesTurnsOnOneGpu) {
  const Outcome outcome = run({.policy = "las",
                               .settings = {{"quantum", "1"}},
                               .cluster = "1x1",
                               .jobs = {{0, 1, 4}, {1, 1, 2}}});
  EXPECT_EQ(outcome.finish, (std::vector<double>{6, 4}));  // A,B,A,B,A,A
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{2, 1}));
}

TEST(Params, AreCheckedAtTheDoor) {
  const auto error = [](const std::string& policy, const Settings& settings) {
    const auto made = make_policy(policy, settings);
    return made ? std::string("accepted") : made.error().text();
  };
  EXPECT_NE(error("tiresias-l", {{"threshold", "5"}}).find("did you mean thresholds"),
            std::string::npos);
  EXPECT_NE(error("tiresias-l", {{"thresholds", "5,4"}}).find("rising"), std::string::npos);
  EXPECT_NE(error("tiresias-l", {{"thresholds", "x"}}).find("no number"), std::string::npos);
  EXPECT_NE(error("las", {{"quantum", "0"}}).find("more than zero"), std::string::npos);
  EXPECT_NE(error("las", {{"quantum", "-1"}}).find("is no time"), std::string::npos);
  EXPECT_NE(error("fifo", {{"pass", "loose"}}).find("strict, skip"), std::string::npos);
  EXPECT_NE(error("fifoo", {}).find("did you mean fifo"), std::string::npos);
  EXPECT_EQ(to_seconds(*parse_duration("5m")), 300);
  EXPECT_EQ(to_seconds(*parse_duration("1.5h")), 5400);
  EXPECT_EQ(to_seconds(*parse_duration("250ms")), 0.25);
}

}  // namespace
}  // namespace berth::test
