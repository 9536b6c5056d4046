// What core/plan.h promises to policies, line by line: when a try declines, what a rollback
// restores and in which order, and which actions are the net effect. On a plan without an engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/engine_plan.h"
#include "core/node_tuner.h"
#include "placements/placements.h"

namespace berth {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Request {
  std::int32_t gpus = 1;
  std::int32_t gpus_max = 0;  // 0: not elastic
  std::vector<PoolId> pools = {PoolId{0}};
};

/// A plan, and what an engine would keep around it. JobId i is the i-th request; all wait.
struct PlanBench {
  PlanBench(const std::string& text, const std::vector<Request>& requests,
            ClusterState::Mode mode = ClusterState::Mode::Devices)
      : cluster(*parse_cluster_short(text)),
        jobs(requests.size()),
        state(cluster, mode),
        rates(profiles(), cluster, Effects{}),
        plan(state, jobs, shapes, arena, *placement, rates, rng) {
    for (std::uint32_t i = 0; i < requests.size(); ++i) {
      TraceJob job;
      job.gpus = requests[i].gpus;
      job.gpus_min = requests[i].gpus_max > 0 ? requests[i].gpus : 0;
      job.gpus_max = requests[i].gpus_max;
      trace.jobs.push_back(job);
      jobs.state[JobId{i}] = JobState::Waiting;
      jobs.shape[JobId{i}] = shapes.intern({.gpus = requests[i].gpus, .pools = requests[i].pools});
    }
    plan.begin();
  }

  static ProfileSet profiles() {
    ProfileSet profiles;
    Profile& all = profiles.edit(ProfileSet::fallback());
    all.batch = 10;
    all.memory = {.fixed_mib = 1000, .per_sample_mib = 100};  // 2000 MiB with its own batch
    return profiles;
  }

  /// Seals, does to the job table what an engine does, and begins the next plan.
  std::vector<std::string> carry_out() {
    std::vector<std::string> said;
    for (const Action& action : plan.seal()) {
      said.push_back(std::string{to_string(action.kind)} +
                     (action.job == kNoJob ? "" : " " + std::to_string(action.job.value)));
      if (action.job == kNoJob || sets_terms(action.kind)) continue;
      const bool holds = plan.holds(action.job);
      jobs.state[action.job] = holds                             ? JobState::Running
                               : action.kind == ActionKind::Kill ? JobState::Cancelled
                                                                 : JobState::Waiting;
      jobs.granted[action.job] = holds ? action.gpus : 0;
      if (holds) jobs.first_start[action.job] = kTimeZero;
    }
    plan.settle();
    plan.begin();
    return said;
  }
  [[nodiscard]] std::vector<Slice> devices_of(std::uint32_t job) const {
    const auto slices = plan.slices(JobId{job});
    return {slices.begin(), slices.end()};
  }

  Trace trace;
  Cluster cluster;
  JobTable jobs;
  ShapeTable shapes;
  SliceArena arena;
  ClusterState state;
  std::unique_ptr<Placement> placement = *make_placement("first-fit");
  RateModel rates;
  Rng rng{1};
  EnginePlan plan;
};

std::vector<Slice> on(std::uint32_t node, std::uint64_t devices) {
  return {{.node = NodeId{node}, .gpus = std::popcount(devices), .devices = devices}};
}

// try_start and its kind

TEST(TryStart, GivesTheWholeGangOrDeclinesWithoutATrace) {
  PlanBench bench{"1x4", {{.gpus = 3}, {.gpus = 2}}};
  EXPECT_TRUE(bench.plan.try_start(JobId{0}));
  EXPECT_FALSE(bench.plan.try_start(JobId{1}));
  EXPECT_FALSE(bench.plan.holds(JobId{1}));
  EXPECT_EQ(bench.state.free_gpus(), 1);
  EXPECT_THAT(bench.carry_out(), ElementsAre("start 0"));
}

TEST(TryStart, AStoppedJobGetsItsOwnDevicesBackWhileTheyAreFree) {
  PlanBench bench{"2x2", {{.gpus = 1}, {.gpus = 1}, {.gpus = 2}}};
  ASSERT_TRUE(bench.plan.try_start_on(JobId{0}, PoolId{0}, on(1, 0b10)));
  static_cast<void>(bench.carry_out());
  bench.plan.preempt(JobId{0});
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));  // first-fit would say node 0
  EXPECT_EQ(bench.devices_of(0), on(1, 0b10));
  EXPECT_THAT(bench.carry_out(), IsEmpty()) << "it never moved";

  bench.plan.preempt(JobId{0});
  ASSERT_TRUE(bench.plan.try_start_on(JobId{2}, PoolId{0}, on(1, 0b11)));
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  EXPECT_EQ(bench.devices_of(0), on(0, 0b1));
  EXPECT_THAT(bench.carry_out(), ElementsAre("migrate 0", "start 2"));
}

TEST(TryStart, TakesTheFirstAcceptablePoolWithRoom) {
  PlanBench bench{"1x1:v100,1x2:a100",
                  {{.gpus = 1, .pools = {PoolId{1}, PoolId{0}}},
                   {.gpus = 2, .pools = {PoolId{0}}},
                   {.gpus = 1, .pools = {PoolId{0}}}}};
  EXPECT_TRUE(bench.plan.try_start(JobId{0}));
  EXPECT_EQ(bench.plan.pool_of(JobId{0}), PoolId{1});
  EXPECT_FALSE(bench.plan.try_start(JobId{1})) << "a gang never mixes pools";
  EXPECT_FALSE(bench.plan.try_start_in(PoolId{0}, JobId{1}));
  EXPECT_TRUE(bench.plan.try_start_in(PoolId{0}, JobId{2}));
}

TEST(TryStart, CountModeHoldsAShareOfThePool) {
  PlanBench bench{"2x2", {{.gpus = 3}, {.gpus = 2}}, ClusterState::Mode::Count};
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  EXPECT_TRUE(bench.devices_of(0).empty());
  EXPECT_EQ(bench.plan.gpus_of(JobId{0}), 3);
  EXPECT_FALSE(bench.plan.try_start(JobId{1}));
}

TEST(PlanDeathTest, AJobThatHoldsDevicesIsNotStartedAndOneWithoutIsNotStopped) {
  PlanBench bench{"1x4", {{}, {}}};
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  EXPECT_DEATH(static_cast<void>(bench.plan.try_start(JobId{0})), "not started again");
  EXPECT_DEATH(bench.plan.preempt(JobId{1}), "only a job that holds devices");
  EXPECT_DEATH(bench.plan.suspend(JobId{1}), "only a job that holds devices");
}

TEST(TryStartOn, GrantsExactlyTheseDevicesIfNobodyIsOnThem) {
  PlanBench bench{"2x2", {{.gpus = 1}, {.gpus = 1}}};
  EXPECT_TRUE(bench.plan.try_start_on(JobId{0}, PoolId{0}, on(1, 0b11)));  // more than it asked for
  EXPECT_EQ(bench.plan.gpus_of(JobId{0}), 2);
  EXPECT_FALSE(bench.plan.try_start_on(JobId{1}, PoolId{0}, on(1, 0b01)));
  bench.state.set_down(NodeId{0});
  EXPECT_FALSE(bench.plan.try_start_on(JobId{1}, PoolId{0}, on(0, 0b01))) << "its node is down";
}

TEST(TryStartSized, DeclinesOutsideTheAgreedRangeOnlyWhereSizesAreAgreed) {
  PlanBench bench{"1x8", {{.gpus = 2, .gpus_max = 4}}};
  EXPECT_TRUE(bench.plan.try_start_sized(PoolId{0}, JobId{0}, 8)) << "any size in a simulation";
  bench.plan.preempt(JobId{0});
  bench.plan.keep_to_agreed_sizes(bench.trace);
  EXPECT_FALSE(bench.plan.try_start_sized(PoolId{0}, JobId{0}, 8));
  EXPECT_FALSE(bench.plan.try_start_sized(PoolId{0}, JobId{0}, 1));
  EXPECT_FALSE(bench.plan.try_start_on(JobId{0}, PoolId{0}, on(0, 0b1)));
  EXPECT_TRUE(bench.plan.try_start_sized(PoolId{0}, JobId{0}, 4));
}

TEST(TryShareOn, KeepsToTheLimitAndToDeviceMemory) {
  PlanBench bench{"1x1", {{}, {}, {}}};
  bench.state.track_devices();
  const auto device = on(0, 0b1);
  ASSERT_TRUE(bench.plan.try_share_on(JobId{0}, PoolId{0}, device, 2));
  EXPECT_FALSE(bench.plan.try_share_on(JobId{1}, PoolId{0}, device, 1)) << "one is there already";
  EXPECT_TRUE(bench.plan.try_share_on(JobId{1}, PoolId{0}, device, 2));
  EXPECT_FALSE(bench.plan.try_share_on(JobId{2}, PoolId{0}, device, 2));
  EXPECT_EQ(bench.state.free_memory_mib(NodeId{0}, 0), bench.cluster.pools[0].memory_mib - 4000);
  bench.cluster.pools[0].memory_mib = 5000;
  EXPECT_FALSE(bench.plan.try_share_on(JobId{2}, PoolId{0}, device, 3)) << "it needs 2000 MiB";
  EXPECT_THAT(bench.carry_out(), ElementsAre("start 0", "share 1"));
}

TEST(TryShareOn, DeclinesToShareWhereTheExecutorCannot) {
  PlanBench bench{"1x1", {{}, {}}};
  bench.state.track_devices();
  bench.plan.set_capabilities(Capabilities::all().without(Ability::Share));
  ASSERT_TRUE(bench.plan.try_share_on(JobId{0}, PoolId{0}, on(0, 0b1), 2));
  EXPECT_FALSE(bench.plan.try_share_on(JobId{1}, PoolId{0}, on(0, 0b1), 2));
}

// Jobs that still run from before this engine

TEST(TryKeep, StartsAJobWhereItWasFoundAndTryStartPrefersThat) {
  PlanBench bench{"2x2", {{.gpus = 1}, {.gpus = 1}, {.gpus = 1}}};
  bench.plan.pin(JobId{0}, on(1, 0b10));
  bench.plan.pin(JobId{1}, on(1, 0b10));
  EXPECT_EQ(bench.plan.found_gpus(JobId{0}), 1);
  EXPECT_TRUE(bench.plan.found_on(JobId{2}).empty());
  EXPECT_FALSE(bench.plan.try_keep(JobId{2})) << "it was found nowhere";
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  EXPECT_EQ(bench.devices_of(0), on(1, 0b10));
  EXPECT_FALSE(bench.plan.try_keep(JobId{1})) << "its devices are taken";
  ASSERT_TRUE(bench.plan.try_start(JobId{1}));
  EXPECT_EQ(bench.devices_of(1), on(0, 0b1)) << "where the placement says";
  static_cast<void>(bench.carry_out());
  EXPECT_TRUE(bench.plan.found_on(JobId{0}).empty()) << "until it holds devices again";
}

// Terms, suspension, power: what an executor can do

TEST(SetTerms, DeclinesWhatTheExecutorCannotDoAndChangesNothingThen) {
  PlanBench bench{"1x1", {{}}};
  bench.plan.set_capabilities(Capabilities::all().without(Ability::SubBatch));
  EXPECT_FALSE(bench.plan.set_terms(JobId{0}, {.sub_steps = 2}));
  EXPECT_EQ(bench.plan.terms(JobId{0}), Terms{});
  EXPECT_TRUE(bench.plan.set_terms(JobId{0}, {.cores_milli = 4000}));
  EXPECT_TRUE(bench.plan.set_terms(JobId{0}, {.cores_milli = 4000})) << "nothing to change";
}

TEST(SetTerms, DeclinesMoreMemoryThanOthersLeaveButNotOnADeviceOfItsOwn) {
  PlanBench bench{"1x2", {{}, {}, {}}};
  bench.state.track_devices();
  bench.cluster.pools[0].memory_mib = 5000;
  ASSERT_TRUE(bench.plan.try_share_on(JobId{0}, PoolId{0}, on(0, 0b01), 2));
  ASSERT_TRUE(bench.plan.try_share_on(JobId{1}, PoolId{0}, on(0, 0b01), 2));
  ASSERT_TRUE(bench.plan.try_share_on(JobId{2}, PoolId{0}, on(0, 0b10), 2));
  EXPECT_TRUE(bench.plan.set_terms(JobId{0}, {.batch = 20})) << "1000 MiB more: just fits";
  EXPECT_FALSE(bench.plan.set_terms(JobId{1}, {.batch = 11}));
  EXPECT_EQ(bench.plan.terms(JobId{1}), Terms{});
  EXPECT_TRUE(bench.plan.set_terms(JobId{2}, {.batch = 100}));
}

TEST(Suspend, IsAPreemptionWhereStateCannotBeKept) {
  PlanBench bench{"1x2", {{}, {}}};
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  ASSERT_TRUE(bench.plan.try_start(JobId{1}));
  static_cast<void>(bench.carry_out());
  bench.plan.suspend(JobId{0});
  bench.plan.set_capabilities(Capabilities::all().without(Ability::Suspend));
  bench.plan.suspend(JobId{1});
  EXPECT_THAT(bench.carry_out(), ElementsAre("suspend 0", "preempt 1"));
}

TEST(Power, OnlyAnIdleNodeThatMayBeSwitchedIsSwitchedOff) {
  PlanBench bench{"4x1", {{}}};
  bench.cluster.nodes[1].stays_on = true;
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));  // node 0
  bench.state.set_down(NodeId{2});
  EXPECT_FALSE(bench.plan.power_off(NodeId{0})) << "a job is on it";
  EXPECT_FALSE(bench.plan.power_off(NodeId{1})) << "it stays on";
  EXPECT_FALSE(bench.plan.power_off(NodeId{2})) << "it has failed";
  EXPECT_TRUE(bench.plan.power_off(NodeId{3}));
  EXPECT_FALSE(bench.plan.power_off(NodeId{3})) << "it is off";
  EXPECT_FALSE(bench.plan.power_on(NodeId{1})) << "it is on";
  EXPECT_THAT(bench.carry_out(), ElementsAre("start 0", "power off"));
  EXPECT_TRUE(bench.plan.power_on(NodeId{3}));
  EXPECT_FALSE(bench.state.is_up(NodeId{3})) << "it boots first";
  EXPECT_TRUE(bench.plan.power_off(NodeId{3})) << "a booting node can be switched off";
  bench.plan.set_capabilities(Capabilities::all().without(Ability::Power));
  EXPECT_FALSE(bench.plan.power_on(NodeId{3}));
}

// Rollback

TEST(Rollback, RestoresDevicesTermsPausesReasonsAndPower) {
  PlanBench bench{"3x2", {{.gpus = 2}, {.gpus = 1}, {.gpus = 1}}};
  bench.state.track_devices();
  ASSERT_TRUE(bench.plan.try_start_on(JobId{0}, PoolId{0}, on(0, 0b11), Reason::Order));
  ASSERT_TRUE(bench.plan.try_share_on(JobId{1}, PoolId{0}, on(1, 0b01), 2, Reason::Order));
  static_cast<void>(bench.carry_out());

  bench.plan.preempt(JobId{1}, Reason::Lease);  // before the mark: it stays
  bench.plan.set_pause(JobId{1}, Duration{5});
  const std::int64_t free = bench.state.free_gpus();
  const Plan::Mark mark = bench.plan.mark();
  bench.plan.preempt(JobId{0}, Reason::Priority);
  ASSERT_TRUE(bench.plan.try_start_on(JobId{0}, PoolId{0}, on(1, 0b11)));
  ASSERT_TRUE(bench.plan.set_terms(JobId{0}, {.sub_steps = 2}));
  bench.plan.set_pause(JobId{1}, Duration{9});
  ASSERT_TRUE(bench.plan.try_start(JobId{2}));
  bench.plan.kill(JobId{1});
  ASSERT_TRUE(bench.plan.power_off(NodeId{2}));
  bench.plan.rollback(mark);

  EXPECT_EQ(bench.state.free_gpus(), free);
  EXPECT_EQ(bench.devices_of(0), on(0, 0b11));
  EXPECT_EQ(bench.plan.terms(JobId{0}), Terms{});
  EXPECT_FALSE(bench.plan.holds(JobId{2}));
  EXPECT_TRUE(bench.state.is_up(NodeId{2}));
  EXPECT_EQ(bench.state.free_memory_mib(NodeId{0}, 0), bench.cluster.pools[0].memory_mib - 2000);
  const auto actions = bench.plan.seal();
  ASSERT_EQ(actions.size(), 1U) << "only what was planned before the mark";
  EXPECT_EQ(actions[0].kind, ActionKind::Preempt);
  EXPECT_EQ(actions[0].job, JobId{1});
  EXPECT_EQ(actions[0].reason, Reason::Lease);
  EXPECT_EQ(actions[0].pause, Duration{5});
}

TEST(Rollback, CallsUndosLastFirstWithTheClusterAsItWasThen) {
  PlanBench bench{"1x4", {{}, {}, {}}};
  std::vector<std::string> undone;
  const auto note = [&](const std::string& what) {
    bench.plan.on_rollback(
        [&, what] { undone.push_back(what + std::to_string(bench.state.free_gpus())); });
  };
  note("kept ");  // before the mark: not called
  const Plan::Mark mark = bench.plan.mark();
  note("a ");  // 4 free
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  note("b ");  // 3 free
  note("c ");
  ASSERT_TRUE(bench.plan.try_start(JobId{1}));
  ASSERT_TRUE(bench.plan.try_start(JobId{2}));
  bench.plan.rollback(mark);
  EXPECT_THAT(undone, ElementsAre("c 3", "b 3", "a 4"));
  bench.plan.rollback(mark);
  EXPECT_EQ(undone.size(), 3U) << "each once";
}

TEST(PlanDeathTest, NobodyGoesBackToAMarkThatWasUndone) {
  PlanBench bench{"1x4", {{}, {}}};
  const Plan::Mark early = bench.plan.mark();
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  const Plan::Mark late = bench.plan.mark();
  bench.plan.rollback(early);
  EXPECT_DEATH(bench.plan.rollback(late), "a mark is rolled back to once");
}

// The net effect

TEST(Seal, IsTheNetEffectStopsBeforeStartsThenByJob) {
  PlanBench bench{"6x1", {{}, {}, {}, {}, {}, {}, {}}};
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(bench.plan.try_start(JobId{i}));
  EXPECT_THAT(bench.carry_out(), ElementsAre("start 0", "start 1", "start 2", "start 3"));

  ASSERT_TRUE(bench.plan.try_start(JobId{6}));
  ASSERT_TRUE(bench.plan.power_off(NodeId{5}));
  ASSERT_FALSE(bench.plan.try_start(JobId{5}));
  ASSERT_TRUE(bench.plan.set_terms(JobId{0}, {.sub_steps = 2}));
  bench.plan.preempt(JobId{3});
  bench.plan.preempt(JobId{2});
  ASSERT_TRUE(bench.plan.try_start_on(JobId{2}, PoolId{0}, on(3, 0b1)));
  bench.plan.preempt(JobId{1});
  ASSERT_TRUE(bench.plan.try_start(JobId{1}));  // and stays where it was
  ASSERT_TRUE(bench.plan.try_start(JobId{5}));
  bench.plan.preempt(JobId{5});  // and was never started
  EXPECT_THAT(bench.carry_out(),
              ElementsAre("preempt 3", "migrate 2", "start 6", "set sub-batch 0", "power off"));
}

TEST(Seal, AnotherNumberOfDevicesIsAResizeAndASecondStartAResume) {
  PlanBench bench{"1x4", {{}, {}}};
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  ASSERT_TRUE(bench.plan.try_start(JobId{1}));
  static_cast<void>(bench.carry_out());
  bench.plan.preempt(JobId{0});
  ASSERT_TRUE(bench.plan.try_start_on(JobId{0}, PoolId{0}, on(0, 0b1101)));
  bench.plan.preempt(JobId{1});
  EXPECT_THAT(bench.carry_out(), ElementsAre("preempt 1", "resize 0"));
  ASSERT_TRUE(bench.plan.try_start(JobId{1}));
  EXPECT_THAT(bench.carry_out(), ElementsAre("resume 1"));
}

TEST(Seal, AMoveSaysWhatItLeavesAndAStopWhatItHeld) {
  PlanBench bench{"2x1", {{}}};
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  static_cast<void>(bench.carry_out());
  bench.plan.preempt(JobId{0});
  ASSERT_TRUE(bench.plan.try_start_on(JobId{0}, PoolId{0}, on(1, 0b1)));
  const auto moved = bench.plan.seal();
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_THAT(moved[0].left, testing::ElementsAreArray(on(0, 0b1)));
  EXPECT_THAT(moved[0].slices, testing::ElementsAreArray(on(1, 0b1)));
  static_cast<void>(bench.carry_out());
  bench.plan.preempt(JobId{0});
  const auto stopped = bench.plan.seal();
  ASSERT_EQ(stopped.size(), 1U);
  EXPECT_THAT(stopped[0].slices, testing::ElementsAreArray(on(1, 0b1)));
}

TEST(Seal, AKillIsAnActionWhetherTheJobRunsOrWaits) {
  PlanBench bench{"1x1", {{}, {}}};
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  static_cast<void>(bench.carry_out());
  bench.plan.kill(JobId{1});
  bench.plan.kill(JobId{0});
  EXPECT_THAT(bench.carry_out(), ElementsAre("kill 0", "kill 1"));
  EXPECT_DEATH(bench.plan.kill(JobId{0}), "only a job that is not over");
}

// A tuner has a say in where jobs start

class Chooses final : public NodeTuner {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "chooses"; }
  void begin(const View&, const RateModel&) override {}
  [[nodiscard]] bool place(const Plan&, JobId job, PoolId pool,
                           std::vector<Slice>& slices) override {
    if (job == JobId{0}) slices = on(1, 0b1);
    return job != JobId{1} || pool == PoolId{1};
  }
  void tune(const View&, std::span<const NodeId>, Plan&) override {}
};

TEST(TryStart, ATunerMayChooseOtherDevicesOrDeclineAPool) {
  PlanBench bench{"2x1:v100,1x1:a100", {{}, {.pools = {PoolId{0}, PoolId{1}}}}};
  Chooses tuner;
  bench.plan.set_tuner(&tuner);
  ASSERT_TRUE(bench.plan.try_start(JobId{0}));
  EXPECT_EQ(bench.devices_of(0), on(1, 0b1));
  ASSERT_TRUE(bench.plan.try_start(JobId{1}));
  EXPECT_EQ(bench.plan.pool_of(JobId{1}), PoolId{1}) << "the other pool is asked next";
}

}  // namespace
}  // namespace berth
