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
