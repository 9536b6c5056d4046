// What policy.h, view.h, executor.h, node_tuner.h and power_manager.h promise of the engine: which
// hooks come, in which order and with the cluster in which state; when somebody decides and when
// nobody does; what may be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/passing_executor.h"
#include "support/run.h"

namespace berth::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr JobId kFirstJob{0};

/// Starts whoever fits, in order of arrival, and writes down every call: "time what".
class Diary final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "diary"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return said; }
  void begin(const View& view) override { note(view, "begin"); }
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override {
    note(view, "admit", job);
    if (refused == job) return Refusal{Reason::Quota, "not this one"};
    return std::nullopt;
  }
  void on_arrival(const View& view, JobId job) override {
    note(view, "arrival", job);
    waiting_.push_back(job);
  }
  void on_departure(const View& view, JobId job) override {
    note(view, fmt::format("departure ({} free)", view.cluster.free_gpus()), job);
    std::erase(waiting_, job);
  }
  void on_requeue(const View& view, JobId job) override {
    note(view, "requeue", job);
    waiting_.push_back(job);
  }
  [[nodiscard]] bool retries(const View& view, JobId job, FailureKind,
                             std::span<const Slice> slices) override {
    note(view, fmt::format("retries? (on {} node)", slices.size()), job);
    return tries_again;
  }
  void on_capacity_change(const View& view, NodeId node) override {
    note(view, fmt::format("node {} {}", node.value, view.cluster.is_up(node) ? "up" : "down"));
  }
  void decide(const View& view, Plan& plan, Rng&) override {
    note(view, "decide");
    if (script) script(view, plan);
    if (!starts) return;
    std::erase_if(waiting_, [&](JobId job) { return plan.holds(job) || plan.try_start(job); });
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    for (const double at : wakeups) {
      if (seconds_to_time(at) > view.now) return seconds_to_time(at);
    }
    return std::nullopt;
  }

  void note(const View& view, const std::string& what) {
    lines.push_back(fmt::format("{} {}", to_seconds(view.now.time_since_epoch()), what));
  }
  void note(const View& view, const std::string& what, JobId job) {
    note(view, fmt::format("{} {}", what, job.value));
  }

  PolicyTraits said{};
  std::optional<JobId> refused;
  bool tries_again = false;
  bool starts = true;  // whoever fits
  std::vector<double> wakeups;
  std::function<void(const View&, Plan&)> script;
  std::vector<std::string> lines;

 private:
  std::vector<JobId> waiting_;
};

/// The calls at one moment.
std::vector<std::string> at(const Diary& diary, const std::string& second) {
  std::vector<std::string> calls;
  for (const std::string& line : diary.lines) {
    if (line.starts_with(second + " ")) calls.push_back(line.substr(second.size() + 1));
  }
  return calls;
}

TEST(Hooks, ComeBeforeOneDecisionEndingsFirstThenNodesThenArrivals) {
  Diary diary;
  SimOptions sim;
  sim.outages = {{NodeId{1}, seconds_to_time(5), seconds_to_time(7)}};
  static_cast<void>(run_with({.cluster = "2x2",
                              .placement = "first-fit",
                              .jobs = {{0, 2, 5}, {0, 2, 9}, {5, 1, 1}, {5, 1, 1}},
                              .sim = sim},
                             diary));
  EXPECT_EQ(diary.lines.front(), "0 begin");
  EXPECT_THAT(at(diary, "0"),
              ElementsAre("begin", "admit 0", "arrival 0", "admit 1", "arrival 1", "decide"));
  // Job 0 ends, node 1 goes down with job 1 on it, two jobs come: all before one decision.
  EXPECT_THAT(at(diary, "5"),
              ElementsAre("departure (2 free) 0", "node 1 down", "requeue 1", "admit 2",
                          "arrival 2", "admit 3", "arrival 3", "decide"));
  EXPECT_THAT(at(diary, "7"), Contains("node 1 up"));
}

TEST(Hooks, ARefusedJobIsNoArrivalAndWhatNeverFitsIsNotAskedAbout) {
  Diary diary;
  diary.refused = JobId{1};
  const Outcome outcome = run_with(
      {.cluster = "1x2", .placement = "best-fit", .jobs = {{0, 3, 1}, {0, 1, 1}, {0, 1, 1}}},
      diary);
  EXPECT_THAT(at(diary, "0"), ElementsAre("begin", "admit 1", "admit 2", "arrival 2", "decide"));
  EXPECT_EQ(outcome.state[0], JobState::Rejected);
  EXPECT_EQ(outcome.state[1], JobState::Rejected);
  EXPECT_EQ(outcome.rejected.size(), 2U);
}

TEST(Hooks, AFailedAttemptIsTriedAgainOnlyIfThePolicyWantsIt) {
  for (const bool again : {true, false}) {
    Diary diary;
    diary.tries_again = again;
    const Outcome outcome = run_with({.cluster = "1x1",
                                      .placement = "best-fit",
                                      .jobs = {{.submit = 0,
                                                .gpus = 1,
                                                .duration = 4,
                                                .failure = FailureKind::User,
                                                .failed_attempts = 1}}},
                                     diary);
    if (again) {
      EXPECT_THAT(at(diary, "4"), ElementsAre("retries? (on 1 node) 0", "requeue 0", "decide"));
      EXPECT_EQ(outcome.finish[0], 8) << "from its beginning";
      EXPECT_EQ(outcome.state[0], JobState::Completed);
    } else {
      EXPECT_THAT(at(diary, "4"),
                  ElementsAre("retries? (on 1 node) 0", "departure (1 free) 0", "decide"));
      EXPECT_EQ(outcome.state[0], JobState::Failed);
    }
  }
}

TEST(Hooks, ANodeThatThePlanSwitchesOffIsAChangeOfCapacityAtOnceAndOneThatBootsLater) {
  Diary diary;
  diary.said.manages_power = true;
  diary.wakeups = {10, 20};
  diary.script = [](const View& view, Plan& plan) {
    if (view.now == seconds_to_time(10)) {
      EXPECT_TRUE(plan.power_off(NodeId{1}));
    }
    if (view.now == seconds_to_time(20)) {
      EXPECT_TRUE(plan.power_on(NodeId{1}));
    }
  };
  SimOptions sim;
  sim.boot = std::chrono::seconds{5};
  static_cast<void>(run_with(
      {.cluster = "2x1", .placement = "first-fit", .jobs = {{0, 1, 30}}, .sim = sim}, diary));
  EXPECT_THAT(at(diary, "10"), ElementsAre("decide", "node 1 down"));
  EXPECT_THAT(at(diary, "20"), ElementsAre("decide"));
  EXPECT_THAT(at(diary, "25"), ElementsAre("node 1 up", "decide"));
}

// When somebody decides

TEST(Decide, IsCalledWhereSomethingHappensOrWasWishedForAndNowhereElse) {
  Diary diary;
  diary.wakeups = {3};
  static_cast<void>(run_with({.cluster = "1x1",
                              .placement = "best-fit",
                              .jobs = {{0, 1, 8}},
                              .asked = {seconds_to_time(2), seconds_to_time(6)}},
                             diary));
  EXPECT_THAT(diary.lines, ElementsAre("0 begin", "0 admit 0", "0 arrival 0", "0 decide",
                                       "3 decide", "8 departure (1 free) 0", "8 decide"))
      << "somebody looked at 2 and at 6: no reason to decide";
}

TEST(DecideDeathTest, AWishForNowIsABrokenInvariant) {
  class Hasty final : public Policy {
   public:
    [[nodiscard]] std::string_view name() const noexcept override { return "hasty"; }
    void decide(const View&, Plan&, Rng&) override {}
    [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override { return view.now; }
  } hasty;
  EXPECT_DEATH(static_cast<void>(run_with({.jobs = {{0, 1, 1}}}, hasty)),
               "wakes up later than now");
}

TEST(Decide, TheViewShowsTheWorldBeforeThePassAndThePlanWhatJobsHold) {
  Diary diary;
  diary.said.preempts = true;
  diary.wakeups = {4};
  int looked = 0;
  diary.script = [&](const View& view, Plan& plan) {
    if (view.now != seconds_to_time(4)) return;
    ++looked;
    plan.preempt(JobId{0});
    EXPECT_TRUE(view.jobs.is_running(JobId{0})) << "nothing is carried out yet";
    EXPECT_EQ(view.jobs.attained(JobId{0}, view.now), std::chrono::seconds{4});
    EXPECT_FALSE(view.jobs.allocation[JobId{0}].holds()) << "but the plan took its devices";
    EXPECT_EQ(view.cluster.free_gpus(), 2);
    ASSERT_TRUE(plan.try_start(JobId{0}));
    EXPECT_EQ(view.cluster.free_gpus(), 1);
  };
  const Outcome outcome =
      run_with({.cluster = "1x2", .placement = "best-fit", .jobs = {{0, 1, 8}}}, diary);
  EXPECT_EQ(looked, 1);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

// What may be read

TEST(ViewDeathTest, NothingIsReadThatWasNotDeclared) {
  const auto reads = [](Need declared, const std::function<void(const View&)>& read) {
    Diary diary;
    diary.said.needs = declared;
    diary.script = [&](const View& view, Plan&) { read(view); };
    static_cast<void>(
        run_with({.cluster = "1x1", .placement = "best-fit", .jobs = {{0, 1, 5}}}, diary));
  };
  const auto all_but = [](Need one) {
    const auto bits = [](Need need) { return static_cast<std::uint32_t>(need); };
    const Need all = Need::RunTime | Need::Deadline | Need::History | Need::Reports | Need::Profile;
    return static_cast<Need>(bits(all) & ~bits(one));
  };
  const std::vector<std::pair<Need, std::function<void(const View&)>>> readings{
      {Need::RunTime, [](const View& view) { static_cast<void>(view.estimate(kFirstJob)); }},
      {Need::RunTime, [](const View& view) { static_cast<void>(view.estimated_left(kFirstJob)); }},
      {Need::Deadline, [](const View& view) { static_cast<void>(view.deadline(kFirstJob)); }},
      {Need::Deadline,
       [](const View& view) { static_cast<void>(view.deadline_is_soft(kFirstJob)); }},
      {Need::Reports, [](const View& view) { static_cast<void>(view.report(kFirstJob)); }},
      {Need::Reports,
       [](const View& view) {
         std::vector<double> losses;
         view.losses(kFirstJob, 0, losses);
       }},
      {Need::History,
       [](const View& view) {
         if (is_over(view.jobs.state[kFirstJob]))
           static_cast<void>(view.finished_service(kFirstJob));
       }},
      {Need::Profile, [](const View& view) { static_cast<void>(view.believed().effects()); }},
  };
  for (const auto& [need, read] : readings) {
    EXPECT_DEATH(reads(all_but(need), read), "reads only what it declared");
    reads(need, read);  // declared, it is answered
  }
  EXPECT_DEATH(reads(Need::History,
                     [](const View& view) { static_cast<void>(view.finished_service(kFirstJob)); }),
               "history is made of jobs that are over");
}

// Beside the policy

class TunerDiary final : public NodeTuner {
 public:
  explicit TunerDiary(Diary& diary) : diary_(diary) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "diary"; }
  void begin(const View& view, const RateModel&) override { diary_.note(view, "tuner begins"); }
  void begin_instant(Time now) override {
    diary_.lines.push_back(fmt::format("{} tuner's instant", to_seconds(now.time_since_epoch())));
  }
  void tune(const View& view, std::span<const NodeId> changed, Plan&) override {
    std::string nodes;
    for (const NodeId node : changed) nodes += fmt::format(" {}", node.value);
    diary_.note(view, "tune" + nodes);
  }

 private:
  Diary& diary_;
};

class PowerDiary final : public PowerManager {
 public:
  explicit PowerDiary(Diary& diary) : diary_(diary) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "diary"; }
  void begin(const View& view) override { diary_.note(view, "power begins"); }
  void on_arrival(const View& view, JobId job) override {
    diary_.note(view, "power hears of arrival", job);
  }
  void on_departure(const View& view, JobId job) override {
    diary_.note(view, "power hears of departure", job);
  }
  void manage(const View& view, Plan& plan) override {
    diary_.note(view, fmt::format("manage ({} free)", plan.cluster().free_gpus()));
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    if (view.now < seconds_to_time(2)) return seconds_to_time(2);
    return std::nullopt;
  }

 private:
  Diary& diary_;
};

TEST(Beside, TunerAndPowerManagerDecideAfterThePolicyInTheSamePlan) {
  Diary diary;
  TunerDiary tuner{diary};
  PowerDiary power{diary};
  static_cast<void>(run_with({.cluster = "3x2",
                              .placement = "first-fit",
                              .jobs = {{0, 2, 5}, {0, 3, 5}},
                              .tuner = &tuner,
                              .power = &power,
                              .node_cpus = 8},
                             diary));
  EXPECT_THAT(
      at(diary, "0"),
      ElementsAre("begin", "tuner begins", "power begins", "admit 0", "arrival 0",
                  "power hears of arrival 0", "admit 1", "arrival 1", "power hears of arrival 1",
                  "tuner's instant", "decide", "tune 0 1 2", "manage (1 free)"));
  EXPECT_THAT(at(diary, "2"), ElementsAre("tuner's instant", "decide", "tune", "manage (1 free)"))
      << "asked for by the power manager; no node changed";
  EXPECT_THAT(at(diary, "5"),
              ElementsAre("departure (3 free) 0", "power hears of departure 0",
                          "departure (6 free) 1", "power hears of departure 1", "tuner's instant",
                          "decide", "tune 0 1 2", "manage (6 free)"));
}

// The executor's side

TEST(Actions, AreToldToTheObserverBeforeTheExecutorCarriesThemOut) {
  class Waits final : public Observer {
   public:
    void append(Time, const Action& action) override {
      if (action.kind == ActionKind::Start)
        is_running.push_back(engine->jobs().is_running(JobId{0}));
    }
    void instant_done(Time) override {
      running_after.push_back(engine->jobs().is_running(JobId{0}));
    }
    std::vector<bool> is_running, running_after;
  } observer;
  Diary diary;
  static_cast<void>(
      run_with({.cluster = "1x1", .placement = "best-fit", .jobs = {{0, 1, 5}}}, diary, &observer));
  EXPECT_THAT(observer.is_running, ElementsAre(false));
  EXPECT_THAT(observer.running_after, ElementsAre(true, false));
}

/// Looks in at one moment and calls for a pass there; hears of jobs that are ended while they wait.
class CallingExecutor final : public PassingExecutor {
 public:
  CallingExecutor(std::unique_ptr<Executor> world, Time calls)
      : PassingExecutor(std::move(world)), calls_(calls) {}
  [[nodiscard]] std::optional<Time> advance(Time wakeup) override {
    const auto then = world().advance(now_ < calls_ ? std::min(wakeup, calls_) : wakeup);
    if (then) now_ = *then;
    return then;
  }
  [[nodiscard]] bool calls_for_pass() const override { return now_ == calls_; }
  [[nodiscard]] Time stop(Time now, const Action& action, const JobTable& jobs) override {
    stopped.push_back(action.job);
    return world().stop(now, action, jobs);
  }
  void discard(Time, const Action& action, const JobTable&) override {
    discarded.push_back(action.job);
  }
  std::vector<JobId> stopped, discarded;

 private:
  Time calls_;
  Time now_ = kTimeZero;
};

TEST(Actions, AKilledJobIsStoppedIfItRunsAndDiscardedIfItWaits) {
  const Trace trace = make_trace({{0, 1, 9}, {0, 1, 9}});
  const Cluster cluster = *parse_cluster_short("1x1");
  const RateModel rates{ProfileSet{}, cluster, Effects{}};
  CallingExecutor executor{std::make_unique<SimExecutor>(trace, cluster, SimOptions{}),
                           seconds_to_time(4)};
  Diary diary;
  diary.script = [&diary](const View& view, Plan& plan) {
    if (view.now != seconds_to_time(4)) return;
    diary.starts = false;
    plan.kill(JobId{0});
    plan.kill(JobId{1});
  };
  auto placement = *make_placement("best-fit");
  auto estimator = *make_estimator("oracle", 1);
  Engine engine{{.trace = trace,
                 .cluster = cluster,
                 .policy = diary,
                 .placement = *placement,
                 .estimator = *estimator,
                 .executor = executor,
                 .believed = rates}};
  ASSERT_TRUE(engine.run().has_value());
  EXPECT_THAT(executor.stopped, ElementsAre(JobId{0}));
  EXPECT_THAT(executor.discarded, ElementsAre(JobId{1}));
  EXPECT_THAT(at(diary, "4"), ElementsAre("decide", "departure (1 free) 0", "departure (1 free) 1"))
      << "nothing had happened, but the executor called for a pass";
  EXPECT_EQ(engine.jobs().state[JobId{1}], JobState::Cancelled);
}

TEST(Open, ARunIsToldOfRatesAndAClosedOneIsNot) {
  class Rated final : public Policy {
   public:
    [[nodiscard]] std::string_view name() const noexcept override { return "rated"; }
    [[nodiscard]] PolicyTraits traits() const noexcept override {
      return {.needs = Need::Profile, .shares_devices = true};
    }
    void on_arrival(const View&, JobId job) override { jobs_.push_back(job); }
    void on_rate(const View&, JobId job) override { told.push_back(job); }
    void decide(const View& view, Plan& plan, Rng&) override {
      const std::vector<Slice> device{{.node = NodeId{0}, .gpus = 1, .devices = 1}};
      for (const JobId job : jobs_) {
        if (view.jobs.is_waiting(job)) {
          EXPECT_TRUE(plan.try_share_on(job, PoolId{0}, device, 2));
        }
      }
    }
    std::vector<JobId> told;

   private:
    std::vector<JobId> jobs_;
  };
  for (const bool open : {false, true}) {
    Rated policy;
    static_cast<void>(run_with(
        {.cluster = "1x1", .placement = "best-fit", .jobs = {{0, 1, 10}, {2, 1, 10}}, .open = open},
        policy));
    if (open) {
      EXPECT_THAT(policy.told, Contains(JobId{0})) << "the second slows the first down";
    } else {
      EXPECT_THAT(policy.told, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace berth::test
