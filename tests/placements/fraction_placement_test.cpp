// Fractions of devices through the whole engine: the placements fgd and its kin.
#include <gtest/gtest.h>

#include "support/run.h"

namespace berth::test {
namespace {

const std::vector<std::string> kNames{"fgd",         "fraction-best-fit", "fraction-random",
                                      "dot-product", "gpu-packing",       "gpu-clustering"};

JobSpec fraction(double submit, int milli, double duration = 100, int cpus = 0) {
  return {.submit = submit, .duration = duration, .cpus = cpus, .gpu_milli = milli};
}

/// No device is given beyond its thousandths, a whole job has its devices alone.
class Thousandths final : public Observer {
 public:
  void append(Time, const Action&) override {}
  void instant_done(Time) override {
    const ClusterState& state = engine->cluster();
    for (std::uint32_t i = 0; i < state.cluster().nodes.size(); ++i) {
      for (int device = 0; device < state.cluster().nodes[i].gpus; ++device) {
        std::int32_t sum = 0;
        for (const JobId job : state.jobs_on(NodeId{i}, device))
          sum += trace->jobs[job.value].gpu_milli;
        EXPECT_LE(sum, 1000);
        most_on_a_device = std::max(most_on_a_device, state.jobs_on(NodeId{i}, device).size());
      }
    }
  }
  std::size_t most_on_a_device = 0;
};

TEST(FractionPlacement, SmallJobsShareADeviceUpToItsThousandths) {
  for (const std::string& name : kNames) {
    SCOPED_TRACE(name);
    Thousandths observer;
    const Outcome outcome = run({.policy = "fifo-skip",
                                 .cluster = "1x1",
                                 .placement = name,
                                 .jobs = {fraction(0, 500), fraction(0, 400), fraction(0, 200)}},
                                &observer);
    EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 100}));  // 900 are taken
    EXPECT_EQ(outcome.finish, (std::vector<double>{100, 100, 200}));
    EXPECT_EQ(observer.most_on_a_device, 2U);
  }
}

TEST(FractionPlacement, AWholeJobWaitsForAWholeDevice) {
  for (const std::string& name : kNames) {
    const Outcome outcome = run({.policy = "fifo-skip",
                                 .cluster = "1x1",
                                 .placement = name,
                                 .jobs = {fraction(0, 100), {.submit = 1, .duration = 10}}});
    EXPECT_EQ(outcome.start[1], 100) << name;
  }
}

TEST(FractionPlacement, GangsLargerThanANodeTakeTheFewestNodes) {
  for (const std::string& name : kNames) {
    const Outcome outcome = run({.policy = "fifo-skip",
                                 .cluster = "3x2",
                                 .placement = name,
                                 .jobs = {{.submit = 0, .gpus = 5, .duration = 10}}});
    EXPECT_EQ(outcome.finish[0], 10) << name;
  }
}

TEST(FractionPlacement, CoresAreALimitToo) {
  for (const std::string& name : kNames) {
    const Outcome outcome = run({.policy = "fifo-skip",
                                 .cluster = "1x1",
                                 .placement = name,
                                 .jobs = {fraction(0, 300, 100, 5), fraction(0, 300, 100, 5)},
                                 .node_cpus = 8});
    EXPECT_EQ(outcome.start, (std::vector<double>{0, 100})) << name;
  }
}

TEST(FractionPlacement, FgdKeepsWholeDevicesForThoseWhoAskForThem) {
  // Two nodes of two. Pairs are what mostly runs here; two small jobs must leave one node whole.
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back({.submit = i * 100.0, .gpus = 2, .duration = 10});
  jobs.push_back(fraction(3000, 600, 1000));
  jobs.push_back(fraction(3001, 600, 1000));
  jobs.push_back({.submit = 3002, .gpus = 2, .duration = 10});
  const Outcome outcome =
      run({.policy = "fifo-skip", .cluster = "2x2", .placement = "fgd", .jobs = jobs});
  EXPECT_EQ(outcome.start.back(), 3002);
}

// The request would take either type and the v100 comes first in the cluster, but there it would
// break a pair; what is left of the a100 is of use to nobody else.
TEST(FractionPlacement, FgdWeighsNodesOfAllTypesAgainstEachOther) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back({.submit = i * 100.0, .gpus = 2, .duration = 10});
  jobs.push_back(fraction(3000, 600, 1000));
  jobs.back().type = "a100";
  jobs.push_back(fraction(3001, 400, 1000));
  jobs.push_back({.submit = 3002, .gpus = 2, .duration = 10, .type = "v100"});
  const Outcome outcome = run(
      {.policy = "fifo-skip", .cluster = "1x2:v100,1x2:a100", .placement = "fgd", .jobs = jobs});
  EXPECT_EQ(outcome.start.back(), 3002);
}

// Who follows the changes of a state decides as who looks at all of it anew.
TEST(FractionPlacement, FollowingChangesIsLookingAtEverything) {
  const Cluster cluster = *parse_cluster_short("6x2:v100,4x4:a100");
  for (const std::string name : {"fraction-best-fit", "gpu-clustering", "gpu-packing"}) {
    Rng rng{3};
    ClusterState state{cluster, ClusterState::Mode::Devices};
    state.track_devices();
    state.track_changes();
    const auto follows = *make_placement(name, {});
    struct Held {
      JobId job;
      Shape shape;
      std::vector<Slice> slices;
    };
    std::vector<Held> running;
    for (std::uint32_t step = 0; step < 2000; ++step) {
      Shape shape;
      shape.pools = {PoolId{1}, PoolId{0}};
      if (rng.below(2) == 0)
        shape.gpus = 1 + static_cast<std::int32_t>(rng.below(4));
      else
        shape.gpu_milli = 100 * (1 + static_cast<std::int32_t>(rng.below(9)));
      const ClusterState copy = state;
      EXPECT_EQ(copy.changes(), nullptr);
      Held held{JobId{step}, shape, {}};
      std::vector<Slice> slices;
      Rng one{step}, other{step};
      const auto pool = follows->place_in_any(state, shape, one, held.slices);
      const auto expected = (*make_placement(name, {}))->place_in_any(copy, shape, other, slices);
      ASSERT_EQ(pool, expected);
      if (pool) {
        ASSERT_EQ(held.slices, slices);
        state.take(held.slices, shape, held.job, {.milli = shape.gpu_milli});
        running.push_back(held);
      }
      if (!pool || rng.below(3) == 0) {
        std::swap(running[rng.below(running.size())], running.back());
        const Held& last = running.back();
        state.give(last.slices, last.shape, last.job, {.milli = last.shape.gpu_milli});
        running.pop_back();
      }
    }
  }
}

// Ten small jobs do not fit on one device that is shared by eight at most.
TEST(FractionPlacement, ADeviceIsSharedByNoMoreThanItCanBe) {
  for (const std::string& name : kNames) {
    Thousandths observer;
    Scenario scenario{.policy = "fifo-skip", .cluster = "1x1", .placement = name, .jobs = {}};
    for (int i = 0; i < 10; ++i) scenario.jobs.push_back(fraction(0, 50));
    const Outcome outcome = run(scenario, &observer);
    EXPECT_EQ(observer.most_on_a_device, kMaxSharers) << name;
    EXPECT_EQ(outcome.start.back(), 100) << name;
  }
}

JobSpec cores_only(double submit, int cpus, double duration = 100) {
  return {.submit = submit, .duration = duration, .cpus = cpus, .gpu_milli = 0};
}

// Cores may strand a GPU: ten of sixteen cores without a device, and nobody with eight gets in.
TEST(FractionPlacement, JobsWithoutAGpuHoldCoresAlone) {
  for (const std::string& name : kNames) {
    Thousandths observer;
    const Outcome outcome = run({.policy = "fifo-skip",
                                 .cluster = "1x1",
                                 .placement = name,
                                 .jobs = {cores_only(0, 10),
                                          {.submit = 1, .duration = 10, .cpus = 8},
                                          {.submit = 2, .duration = 10, .cpus = 6},
                                          cores_only(3, 1)},
                                 .node_cpus = 16},
                                &observer);
    EXPECT_EQ(outcome.start, (std::vector<double>{0, 100, 2, 12})) << name;
    EXPECT_EQ(outcome.finish[0], 100) << name;
    EXPECT_EQ(observer.most_on_a_device, 1U) << name;
  }
}

// The effects of devices do not reach them, and a lost node sends them back to the queue.
TEST(FractionPlacement, JobsWithoutAGpuRunAtTheirOwnPaceAndMoveWithTheirNode) {
  Scenario scenario{.policy = "fifo-skip",
                    .cluster = "2x2",
                    .placement = "fgd",
                    .jobs = {cores_only(0, 4, 50), {.submit = 0, .gpus = 2, .duration = 50}},
                    .effects = {.locality = true, .server = true},
                    .node_cpus = 8};
  EXPECT_EQ(run(scenario).finish[0], 50);
  scenario.jobs.pop_back();
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(20), seconds_to_time(90)}};
  EXPECT_EQ(run(scenario).finish[0], 50) << "it goes on on the other node";
}

TEST(FractionPlacement, OtherPlacementsRefuseJobsWithoutAGpu) {
  for (const std::string name : {"best-fit", "topology", "count"}) {
    const Outcome outcome = run({.policy = "fifo",
                                 .cluster = "1x1",
                                 .placement = name,
                                 .jobs = {cores_only(0, 1), {.submit = 0, .duration = 10}},
                                 .node_cpus = 8});
    EXPECT_EQ(outcome.state[0], JobState::Rejected) << name;
    EXPECT_EQ(outcome.finish[1], 10) << name;
  }
}

TEST(FractionPlacement, RandomWorldsKeepTheThousandths) {
  for (const std::string& name : kNames) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(name);
      Rng rng{seed};
      Scenario scenario{.policy = seed % 2 == 0 ? "fifo-skip" : "sjf",
                        .cluster = "3x2:v100,2x4:a100",
                        .placement = name,
                        .jobs = {}};
      if (seed % 3 == 0)
        scenario.sim.outages = {{NodeId{0}, seconds_to_time(30), seconds_to_time(90)}};
      scenario.node_cpus = 16;
      double submit = 0;
      for (int i = 0; i < 80; ++i) {
        JobSpec job{.submit = submit, .duration = 1 + static_cast<double>(rng.below(40))};
        if (rng.below(3) == 0) {
          job.gpus = 1 + static_cast<int>(rng.below(4));
        } else {
          job.gpu_milli = 100 * (1 + static_cast<int>(rng.below(9)));
        }
        job.cpus = static_cast<int>(rng.below(4));
        job.type = rng.below(3) == 0 ? "a100" : "";
        scenario.jobs.push_back(job);
        submit += static_cast<double>(rng.below(3));
      }
      Thousandths observer;
      const Outcome outcome = run(scenario, &observer);
      for (const JobState state : outcome.state) ASSERT_EQ(state, JobState::Completed);
      ASSERT_EQ(run(scenario).digest, outcome.digest);
      ASSERT_FALSE(HasFailure());
    }
  }
}

}  // namespace
}  // namespace berth::test
