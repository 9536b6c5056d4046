// Jobs with more or fewer devices than they asked for, batches a scheduler chooses, what training
// code says of itself, and nodes that are switched on and off.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "support/run.h"
#include "support/scaling_models.h"

namespace berth::test {
namespace {

/// A policy written down in the test: what it does at each instant.
class Scripted final : public Policy {
 public:
  using Script = std::function<void(const View&, Plan&)>;
  explicit Scripted(Script script, std::vector<double> wakeups = {})
      : script_(std::move(script)), wakeups_(std::move(wakeups)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "scripted"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile | Need::Reports, .resizes = true, .manages_power = true};
  }
  void decide(const View& view, Plan& plan, Rng&) override { script_(view, plan); }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    for (const double at : wakeups_) {
      if (seconds_to_time(at) > view.now) return seconds_to_time(at);
    }
    return std::nullopt;
  }

 private:
  Script script_;
  std::vector<double> wakeups_;
};

Scenario one_job(double duration, int gpus, std::string cluster) {
  Scenario scenario;
  scenario.cluster = std::move(cluster);
  scenario.placement = "best-fit";
  scenario.jobs = {{.submit = 0, .gpus = gpus, .duration = duration}};
  return scenario;
}

constexpr JobId kJob{0};

TEST(Sized, AJobRunsOnTwiceWhatItAskedForTwiceAsFast) {
  Scenario scenario = one_job(100, 2, "1x4");
  scenario.profiles = perfect();
  scenario.edit_cluster = [](Cluster& cluster) {
    cluster.links.pcie_latency = cluster.links.socket_latency = cluster.links.nvlink_latency = 0;
  };
  Scripted policy{[](const View& view, Plan& plan) {
    if (view.jobs.is_waiting(kJob)) {
      EXPECT_TRUE(plan.try_start_sized(PoolId{0}, kJob, 4));
      EXPECT_EQ(plan.gpus_of(kJob), 4);
    }
  }};
  EXPECT_NEAR(run_with(scenario, policy).finish[0], 50, 1e-3);
}

TEST(Sized, StoppedAndStartedWithAsManyItStaysWhereItIs) {
  Scenario scenario = one_job(100, 2, "2x4");
  Scripted policy{[](const View& view, Plan& plan) {
                    if (is_over(view.jobs.state[kJob])) return;
                    if (plan.holds(kJob)) plan.preempt(kJob);
                    EXPECT_TRUE(plan.try_start_sized(PoolId{0}, kJob, 3));
                  },
                  {10, 20}};
  const Outcome outcome = run_with(scenario, policy);
  EXPECT_EQ(outcome.preemptions[0], 0);
  EXPECT_EQ(outcome.migrations[0], 0);
}

TEST(Sized, ShrinkingIsAResizeAndMoreThanThereIsIsDeclined) {
  class Kinds final : public Observer {
   public:
    void append(Time, const Action& action) override { seen.push_back(action.kind); }
    std::vector<ActionKind> seen;
  } kinds;
  Scenario scenario = one_job(100, 4, "1x4");
  scenario.profiles = perfect();
  Scripted policy{[](const View& view, Plan& plan) {
                    if (is_over(view.jobs.state[kJob])) return;
                    if (view.now == seconds_to_time(0)) {
                      EXPECT_FALSE(plan.try_start_sized(PoolId{0}, kJob, 5));
                      EXPECT_TRUE(plan.try_start_sized(PoolId{0}, kJob, 4));
                    } else if (view.now == seconds_to_time(10)) {
                      plan.preempt(kJob);
                      EXPECT_TRUE(plan.try_start_sized(PoolId{0}, kJob, 1));
                    }
                  },
                  {10}};
  const Outcome outcome = run_with(scenario, policy, &kinds);
  EXPECT_EQ(kinds.seen, (std::vector{ActionKind::Start, ActionKind::Resize}));
  EXPECT_NEAR(outcome.finish[0], 10 + 90 * 4, 0.1);
}

TEST(Sized, ARollbackUndoesAPause) {
  class Pauses final : public Observer {
   public:
    void append(Time, const Action& action) override { pauses.push_back(to_seconds(action.pause)); }
    std::vector<double> pauses;
  } observer;
  // Thinks of ten seconds and of twenty, and starts it for three.
  Scripted policy{[](const View& view, Plan& plan) {
    const JobId job{0};
    if (!view.jobs.is_waiting(job)) return;
    const Plan::Mark before = plan.mark();
    plan.set_pause(job, std::chrono::seconds{10});
    plan.rollback(before);
    ASSERT_TRUE(plan.try_start(job));
    plan.set_pause(job, std::chrono::seconds{3});
    const Plan::Mark started = plan.mark();
    plan.preempt(job);
    plan.set_pause(job, std::chrono::seconds{20});
    plan.rollback(started);
  }};
  static_cast<void>(run_with({.cluster = "1x2", .placement = "best-fit", .jobs = {{0, 1, 5}}},
                             policy, &observer));
  EXPECT_EQ(observer.pauses, (std::vector<double>{3}));
}

TEST(Batch, TwiceTheBatchIsWorthTwoThirdsOfItWhenNobodyKnowsTheNoise) {
  Scenario scenario = one_job(100, 1, "1x1");
  scenario.profiles = perfect();
  Scripted policy{[](const View& view, Plan& plan) {
    if (!view.jobs.is_waiting(kJob)) return;
    ASSERT_TRUE(plan.set_terms(kJob, {.batch = 64}));  // of its own 32
    ASSERT_TRUE(plan.try_start(kJob));
  }};
  EXPECT_NEAR(run_with(scenario, policy).finish[0], 150, 1e-3);
}

TEST(Batch, TheRateFollowsTheNoiseScaleWhileTheModelLearns) {
  Scenario scenario = one_job(100, 1, "1x1");
  scenario.profiles = perfect();
  scenario.profiles.edit(ProfileSet::fallback()).noise = {{0, 32}, {0.5, 1e9}};
  Scripted policy{[](const View& view, Plan& plan) {
                    if (view.jobs.is_waiting(kJob)) {
                      ASSERT_TRUE(plan.set_terms(kJob, {.batch = 64}));
                      ASSERT_TRUE(plan.try_start(kJob));
                    } else if (view.now == seconds_to_time(100)) {
                      EXPECT_EQ(view.report(kJob)->noise_scale, 1e9);
                    }
                  },
                  {100}};
  EXPECT_NEAR(run_with(scenario, policy).finish[0], 75 + 50, 1e-3);
}

TEST(Reports, AJobTellsItsEpochsAndLossesAsItGoes) {
  Scenario scenario = one_job(170, 1, "1x1");  // 17 epochs of 10 s
  bool looked = false;
  Scripted policy{[&](const View& view, Plan& plan) {
                    if (view.jobs.is_waiting(kJob)) {
                      EXPECT_FALSE(view.report(kJob).has_value()) << "it has not run";
                      ASSERT_TRUE(plan.try_start(kJob));
                    } else if (view.now == seconds_to_time(25)) {
                      looked = true;
                      std::vector<double> losses;
                      view.losses(kJob, 1, losses);
                      ASSERT_EQ(losses.size(), 2U) << "after epochs 1 and 2";
                      EXPECT_DOUBLE_EQ(losses[1], measured_loss(LossCurve{}, kJob.value, 2));
                      EXPECT_NEAR(view.report(kJob)->epochs, 2.5, 1e-6);
                      EXPECT_DOUBLE_EQ(view.report(kJob)->loss, losses[1]);
                    }
                  },
                  {25}};
  static_cast<void>(run_with(scenario, policy));
  EXPECT_TRUE(looked);
}

TEST(LossCurve, FallsAndStaysNearItsModel) {
  LossCurve curve;
  curve.spread = 0;
  for (std::int64_t epoch = 1; epoch < 17; ++epoch) {
    EXPECT_LT(curve.at(static_cast<double>(epoch)), curve.at(static_cast<double>(epoch - 1)));
    EXPECT_NEAR(measured_loss(curve, 5, epoch) / curve.at(static_cast<double>(epoch)), 1, 0.06);
  }
}

TEST(Power, ANodeThatWasOffTakesJobsOnceItHasBooted) {
  Scenario scenario = one_job(100, 2, "2x1");
  scenario.jobs[0].submit = 10;
  scenario.jobs.push_back({.submit = 0, .gpus = 1, .duration = 1});  // makes something happen at 0
  scenario.sim.boot = std::chrono::seconds{120};
  const JobId big{1};  // by submit
  Scripted policy{[&](const View& view, Plan& plan) {
    if (view.now == seconds_to_time(0)) {
      EXPECT_TRUE(plan.power_off(NodeId{1}));
      EXPECT_FALSE(plan.cluster().is_up(NodeId{1}));
      ASSERT_TRUE(plan.try_start(JobId{0}));
      EXPECT_FALSE(plan.power_off(NodeId{0})) << "a job is on it";
    }
    if (view.now == seconds_to_time(10)) {
      EXPECT_FALSE(plan.try_start(big));
      EXPECT_TRUE(plan.power_on(NodeId{1}));
      EXPECT_EQ(plan.cluster().power(NodeId{1}), PowerState::Booting);
      EXPECT_FALSE(plan.power_on(NodeId{1})) << "it is booting already";
    }
    if (view.now == seconds_to_time(130)) {
      EXPECT_TRUE(plan.try_start(big));
    }
  }};
  EXPECT_NEAR(run_with(scenario, policy).finish[0], 230, 1e-6);
}

TEST(Power, OffAndOnAgainInOnePlanIsNothingAndARollbackUndoesIt) {
  class Count final : public Observer {
   public:
    void append(Time, const Action& action) override {
      powered += action.kind == ActionKind::PowerOn || action.kind == ActionKind::PowerOff ? 1 : 0;
    }
    int powered = 0;
  } count;
  Scenario scenario = one_job(10, 1, "2x1");
  Scripted policy{[](const View& view, Plan& plan) {
    if (!view.jobs.is_waiting(kJob)) return;
    const Plan::Mark mark = plan.mark();
    EXPECT_TRUE(plan.power_off(NodeId{0}));
    plan.rollback(mark);
    EXPECT_TRUE(plan.cluster().is_up(NodeId{0}));
    EXPECT_TRUE(plan.power_off(NodeId{1}));
    EXPECT_TRUE(plan.power_on(NodeId{1}));
    EXPECT_TRUE(plan.cluster().is_up(NodeId{1})) << "it never stopped";
    ASSERT_TRUE(plan.try_start(kJob));
  }};
  static_cast<void>(run_with(scenario, policy, &count));
  EXPECT_EQ(count.powered, 0);
}

TEST(Power, AFailureAndItsRepairDoNotSwitchANodeOn) {
  const Cluster cluster = *parse_cluster_short("2x4");
  ClusterState state{cluster, ClusterState::Mode::Devices};
  state.set_power(NodeId{0}, PowerState::Off);
  state.set_down(NodeId{0});
  state.set_up(NodeId{0});
  EXPECT_FALSE(state.is_up(NodeId{0}));
  EXPECT_EQ(state.usable_gpus(), 4);
  state.set_down(NodeId{0});
  state.set_power(NodeId{0}, PowerState::On);
  EXPECT_FALSE(state.is_up(NodeId{0})) << "it is broken";
  state.set_up(NodeId{0});
  EXPECT_EQ(state.usable_gpus(), 8);
}

}  // namespace
}  // namespace berth::test
