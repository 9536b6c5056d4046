// Who gets how many tasks in Optimus, and where they go.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "policies/optimus/allocation.h"
#include "policies/optimus/task_placement.h"

namespace berth::optimus {
namespace {

struct SpeedTable final : JobSpeeds {
  std::vector<std::function<double(TaskCounts)>> of;
  [[nodiscard]] double speed(std::size_t job, TaskCounts tasks) const override {
    return of[job](tasks);
  }
};

std::function<double(TaskCounts)> async(double t0, double t1, double t2 = 0, double t3 = 0) {
  return [=](TaskCounts tasks) {
    const double w = tasks.workers;
    const double p = tasks.ps;
    return w / (t0 + t1 * w / p + t2 * w + t3 * p);
  };
}

AllocatedJob one_cpu_tasks(std::uint32_t id, double work) {
  return {.id = JobId{id},
          .demand = {.ps = {{0, 1}}, .worker = {{0, 1}}},
          .most = {100, 100},
          .work = work};
}

TEST(Allocation, GrantsTheLargestGainFirst) {
  const std::vector<AllocatedJob> jobs{one_cpu_tasks(0, 100), one_cpu_tasks(1, 300)};
  SpeedTable speeds;
  speeds.of = {async(4, 1), async(2, 3)};
  // With one more CPU each, the table of the worked example row by row.
  const std::vector<std::pair<TaskCounts, TaskCounts>> rows{
      {{1, 1}, {1, 1}}, {{1, 1}, {2, 1}}, {{1, 1}, {2, 2}}, {{1, 2}, {2, 2}},
      {{1, 2}, {3, 2}}, {{1, 2}, {3, 3}}, {{1, 2}, {4, 3}}};
  Allocator allocator;
  for (std::int64_t cpus = 4; cpus <= 10; ++cpus) {
    const auto granted = allocator.allocate(std::vector<std::int64_t>{cpus}, jobs, speeds);
    const auto& [x, y] = rows[static_cast<std::size_t>(cpus - 4)];
    EXPECT_EQ(granted[0], x) << cpus;
    EXPECT_EQ(granted[1], y) << cpus;
  }
  EXPECT_DOUBLE_EQ(100 / speeds.speed(0, {1, 2}), 300);
  EXPECT_DOUBLE_EQ(300 / speeds.speed(1, {4, 3}), 425);
}

TEST(Allocation, FirstTasksGoByArrivalAndWhoDoesNotFitIsSkipped) {
  std::vector<AllocatedJob> jobs{one_cpu_tasks(3, 1), one_cpu_tasks(1, 1), one_cpu_tasks(2, 1)};
  jobs[2].least = jobs[2].most = {2, 4};  // a fixed gang of six
  SpeedTable speeds;
  speeds.of = {async(1, 1), async(1, 1), async(1, 1)};
  Allocator allocator;
  const auto granted = allocator.allocate(std::vector<std::int64_t>{4}, jobs, speeds);
  EXPECT_EQ(granted[2], (TaskCounts{}));
  EXPECT_GE(granted[0].total(), 2);
  EXPECT_GE(granted[1].total(), 2);
}

TEST(Allocation, AMoveThatDoesNotFitDoesNotEndTheOthers) {
  // One GPU (resource 0) left for nobody: workers of A need it, those of B do not.
  AllocatedJob a = one_cpu_tasks(0, 1000);
  a.demand.worker = {{0, 1}, {1, 1}};
  a.demand.ps = {{1, 1}};
  AllocatedJob b = one_cpu_tasks(1, 10);
  b.demand.worker = b.demand.ps = {{1, 1}};
  SpeedTable speeds;
  speeds.of = {async(4, 0), async(4, 0)};
  Allocator allocator;
  const auto granted =
      allocator.allocate(std::vector<std::int64_t>{1, 6}, std::vector{a, b}, speeds);
  EXPECT_EQ(granted[0], (TaskCounts{1, 1}));
  EXPECT_EQ(granted[1], (TaskCounts{1, 3})) << "the two CPUs left are of use to B only";
}

TEST(Allocation, YoungJobsComeSlightlyLater) {
  std::vector<AllocatedJob> jobs{one_cpu_tasks(0, 100), one_cpu_tasks(1, 100)};
  SpeedTable speeds;
  speeds.of = {async(4, 1), async(4, 1)};
  Allocator allocator;
  const std::vector<std::int64_t> cpus{5};
  EXPECT_EQ(allocator.allocate(cpus, jobs, speeds)[0], (TaskCounts{1, 2})) << "ties by arrival";
  jobs[0].eagerness = 0.95;
  EXPECT_EQ(allocator.allocate(cpus, jobs, speeds)[1], (TaskCounts{1, 2}));
}

TEST(Allocation, AJobNobodyCanPredictStaysAsItIs) {
  std::vector<AllocatedJob> jobs{one_cpu_tasks(0, 100), one_cpu_tasks(1, 100)};
  jobs[0].is_ready = false;
  jobs[0].held = {2, 3};
  SpeedTable speeds;
  speeds.of = {[](TaskCounts) { return 0.0; }, async(4, 1)};
  Allocator allocator;
  EXPECT_EQ(allocator.allocate(std::vector<std::int64_t>{20}, jobs, speeds)[0], (TaskCounts{2, 3}));
  EXPECT_EQ(allocator.allocate(std::vector<std::int64_t>{4}, jobs, speeds)[0], (TaskCounts{1, 1}))
      << "there is no room for more";
}

TEST(Allocation, ASmallSavingIsNotWorthAResize) {
  std::vector<AllocatedJob> jobs{one_cpu_tasks(0, 10)};
  jobs[0].held = {1, 1};
  SpeedTable speeds;
  speeds.of = {async(1, 0)};  // 10 s alone, 5 s with two workers
  Allocator allocator;
  const std::vector<std::int64_t> cpus{3};
  EXPECT_EQ(allocator.allocate(cpus, jobs, speeds)[0], (TaskCounts{1, 2}));
  allocator.keep_small_changes(jobs, speeds, 6);
  EXPECT_EQ(allocator.left_over()[0], 1) << "it stays with (1, 1)";
  const auto granted = allocator.allocate(cpus, jobs, speeds);
  allocator.keep_small_changes(jobs, speeds, 4);
  EXPECT_EQ(granted[0], (TaskCounts{1, 2}));
}

TEST(Allocation, WhoMustShrinkForOthersDoes) {
  std::vector<AllocatedJob> jobs{one_cpu_tasks(0, 10), one_cpu_tasks(1, 10)};
  jobs[0].held = {1, 3};
  SpeedTable speeds;
  speeds.of = {async(1, 0), async(1, 0)};
  Allocator allocator;
  const auto granted = allocator.allocate(std::vector<std::int64_t>{4}, jobs, speeds);
  allocator.keep_small_changes(jobs, speeds, 30);
  EXPECT_EQ(granted[0], (TaskCounts{1, 1}));
  EXPECT_EQ(granted[1], (TaskCounts{1, 1}));
}

TEST(Allocation, OneJobWithPlentyReachesALocalOptimum) {
  Rng rng{11};
  for (int round = 0; round < 50; ++round) {
    SpeedTable speeds;
    speeds.of = {async(1 + 9 * rng.uniform(), rng.uniform(), rng.uniform() / 4, rng.uniform() / 4)};
    const std::vector<AllocatedJob> jobs{one_cpu_tasks(0, 100)};
    Allocator allocator;
    const TaskCounts at = allocator.allocate(std::vector<std::int64_t>{1000}, jobs, speeds)[0];
    const double here = speeds.speed(0, at);
    ASSERT_TRUE(at.ps == 100 || here >= speeds.speed(0, {at.ps + 1, at.workers}));
    ASSERT_TRUE(at.workers == 100 || here >= speeds.speed(0, {at.ps, at.workers + 1}));
  }
}

// Two workers are slower than one, three are faster: the edge of a machine.
TEST(Allocation, LooksBeyondATaskThatGainsNothingIfAskedTo) {
  const std::vector<AllocatedJob> jobs{one_cpu_tasks(0, 100)};
  SpeedTable speeds;
  speeds.of = {[](TaskCounts tasks) {
    const std::vector<double> by_workers{0, 1, 0.9, 1.5, 1.4, 1.3, 2};
    return by_workers[static_cast<std::size_t>(std::min(tasks.workers, 5))];
  }};
  const std::vector<std::int64_t> cpus{20};
  EXPECT_EQ(Allocator{}.allocate(cpus, jobs, speeds)[0], (TaskCounts{1, 1}));
  EXPECT_EQ(Allocator{2}.allocate(cpus, jobs, speeds)[0], (TaskCounts{1, 3}));
  EXPECT_EQ(Allocator{2}.allocate(std::vector<std::int64_t>{3}, jobs, speeds)[0],
            (TaskCounts{1, 1}))
      << "two more do not fit";
}

/// Random jobs with two resources; some fixed.
struct Round {
  explicit Round(std::uint64_t seed) {
    Rng rng{seed};
    const auto some = [&](std::int64_t most) {
      return 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most)));
    };
    capacity = {5 + some(30), 5 + some(60)};
    const std::int64_t count = some(8);
    for (std::uint32_t i = 0; i < count; ++i) {
      AllocatedJob job{
          .id = JobId{i},
          .demand = {.ps = {{1, some(3)}}, .worker = {{0, some(2)}, {1, some(4)}}},
          .most = {static_cast<std::int32_t>(some(6)), static_cast<std::int32_t>(some(8))},
          .work = 10 + 1000 * rng.uniform()};
      if (rng.below(5) == 0) job.least = job.most;
      jobs.push_back(job);
      speeds.of.push_back(async(1 + 5 * rng.uniform(), 2 * rng.uniform(), rng.uniform() / 5));
    }
  }
  [[nodiscard]] double gain(std::size_t at, TaskCounts granted, TaskKind kind) const {
    const AllocatedJob& job = jobs[at];
    TaskCounts more = granted;
    ++more.of(kind);
    const double saved = job.work / speeds.speed(at, granted) - job.work / speeds.speed(at, more);
    double share = -1;
    double dominant = 1;
    for (const auto& [resource, amount] : job.demand.of(kind).amounts()) {
      const double mine = static_cast<double>(amount) / static_cast<double>(capacity[resource]);
      if (mine > share) dominant = static_cast<double>(amount);
      share = std::max(share, mine);
    }
    return saved / dominant;
  }
  std::vector<std::int64_t> capacity;
  std::vector<AllocatedJob> jobs;
  SpeedTable speeds;
};

/// The same by looking at every move in every step.
std::vector<TaskCounts> naive(const Round& round, std::vector<std::int64_t>& free) {
  std::vector<TaskCounts> granted(round.jobs.size());
  free = round.capacity;
  for (std::size_t i = 0; i < round.jobs.size(); ++i) {
    if (try_take(free, round.jobs[i].demand, round.jobs[i].least)) granted[i] = round.jobs[i].least;
  }
  while (true) {
    double best = 0;
    std::size_t job = 0;
    TaskCounts step;
    for (std::size_t i = 0; i < round.jobs.size(); ++i) {
      for (const TaskKind kind : {TaskKind::ParameterServer, TaskKind::Worker}) {
        if (granted[i].total() == 0 || granted[i].of(kind) >= round.jobs[i].most.of(kind)) continue;
        TaskCounts one;
        one.of(kind) = 1;
        auto copy = free;
        const double gain = round.gain(i, granted[i], kind);
        if (gain <= best || !try_take(copy, round.jobs[i].demand, one)) continue;
        best = gain;
        job = i;
        step = one;
      }
    }
    if (best <= 0) return granted;
    EXPECT_TRUE(try_take(free, round.jobs[job].demand, step));
    granted[job].ps += step.ps;
    granted[job].workers += step.workers;
  }
}

TEST(Allocation, TakesTheBestFittingMoveAtEveryStepAndLeavesNone) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Round round(seed);
    Allocator allocator;
    const auto granted = allocator.allocate(round.capacity, round.jobs, round.speeds);
    std::vector<std::int64_t> free;
    const std::vector<TaskCounts> expected = naive(round, free);
    ASSERT_TRUE(std::ranges::equal(granted, expected)) << "seed " << seed;
    ASSERT_TRUE(std::ranges::equal(allocator.left_over(), free)) << "seed " << seed;
    for (const std::int64_t left : allocator.left_over()) ASSERT_GE(left, 0);
  }
}

TEST(Allocation, TheOrderOfTheInputDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Round round(seed);
    Round shuffled = round;
    Allocator one;
    Allocator other;
    const auto granted = one.allocate(round.capacity, round.jobs, round.speeds);
    std::ranges::reverse(shuffled.jobs);
    std::ranges::reverse(shuffled.speeds.of);
    const auto again = other.allocate(shuffled.capacity, shuffled.jobs, shuffled.speeds);
    for (std::size_t i = 0; i < granted.size(); ++i)
      ASSERT_EQ(granted[i], again[granted.size() - 1 - i]) << "seed " << seed;
  }
}

/// Time in which parameters go one way between all parameter servers and workers of a job, over
/// equal links.
double exchange_time(std::span<const TaskCounts> machines) {
  TaskCounts all;
  for (const TaskCounts& here : machines) {
    all.ps += here.ps;
    all.workers += here.workers;
  }
  if (all.ps == 0) return 0;
  const double part = 1.0 / all.ps;
  double slowest = 0;
  for (const TaskCounts& here : machines) {
    if (here.ps > 0) slowest = std::max(slowest, part * (all.workers - here.workers));
    if (here.workers > 0) slowest = std::max(slowest, part * (all.ps - here.ps));
  }
  return slowest;
}

TEST(TaskPlacement, ExchangeIsFastestEvenAndTogether) {
  const auto time = [](std::vector<TaskCounts> machines) { return exchange_time(machines); };
  EXPECT_DOUBLE_EQ(time({{1, 2}, {1, 2}}), 1.0);
  EXPECT_DOUBLE_EQ(time({{2, 1}, {0, 3}}), 1.5);
  EXPECT_DOUBLE_EQ(time({{1, 2}, {1, 1}, {0, 1}}), 1.5);
  EXPECT_DOUBLE_EQ(time({{2, 4}}), 0);
}

PlacedJob cpu_job(TaskCounts tasks, std::int64_t cpus) {
  return {.tasks = tasks, .demand = {.ps = {{0, cpus}}, .worker = {{0, cpus}}}};
}
using Shares = std::vector<MachineShare>;

TEST(TaskPlacement, SmallJobsFirstOnTheFewestMachinesEvenly) {
  TaskPlacer placer({{8}, {8}, {8}});
  const std::vector<PlacedJob> jobs{cpu_job({3, 3}, 2), cpu_job({2, 2}, 1), cpu_job({4, 4}, 1)};
  EXPECT_EQ(placer.order(jobs), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(placer.place(jobs[1]), (Shares{{0, {2, 2}}}));
  EXPECT_EQ(placer.place(jobs[2]), (Shares{{1, {4, 4}}})) << "8 are free, as on the third";
  EXPECT_EQ(placer.place(jobs[0]), (Shares{{2, {2, 2}}, {0, {1, 1}}}));
  EXPECT_EQ(placer.free_on(0)[0], 0);
  EXPECT_EQ(placer.free_on(2)[0], 0);
}

TEST(TaskPlacement, AJobThatDoesNotFitGetsWhatThereIsOfBothKinds) {
  TaskPlacer placer({{3}, {2}});
  const Shares shares = placer.place(cpu_job({4, 4}, 1));
  TaskCounts placed;
  for (const MachineShare& share : shares) {
    placed.ps += share.tasks.ps;
    placed.workers += share.tasks.workers;
  }
  EXPECT_EQ(placed, (TaskCounts{3, 2})) << "in turns, parameter servers first";
}

TEST(TaskPlacement, WithoutOneOfEachAJobWaits) {
  TaskPlacer placer(std::vector<std::vector<std::int64_t>>(1, {1}));
  EXPECT_TRUE(placer.place(cpu_job({1, 1}, 1)).empty());
  EXPECT_EQ(placer.free_on(0)[0], 1) << "and takes nothing";
}

TEST(TaskPlacement, TheScarcestResourceOrdersTheMachines) {
  // CPUs (0) abound, GPUs (1) do not: the second machine has most of them.
  TaskPlacer placer({{100, 1}, {50, 4}});
  const PlacedJob job{.tasks = {1, 2}, .demand = {.ps = {{0, 1}}, .worker = {{0, 1}, {1, 1}}}};
  EXPECT_EQ(placer.place(job), (Shares{{1, {1, 2}}}));
}

TEST(TaskPlacement, NeverTakesMoreThanAMachineHas) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng{seed};
    std::vector<std::vector<std::int64_t>> free;
    for (int i = 0; i < 6; ++i)
      free.push_back(
          {static_cast<std::int64_t>(rng.below(12)), static_cast<std::int64_t>(rng.below(9))});
    TaskPlacer placer(free);
    for (int i = 0; i < 6; ++i) {
      const PlacedJob job{.tasks = {1 + static_cast<std::int32_t>(rng.below(3)),
                                    1 + static_cast<std::int32_t>(rng.below(5))},
                          .demand = {.ps = {{0, 1}}, .worker = {{0, 2}, {1, 1}}}};
      for (const MachineShare& share : placer.place(job))
        take(free[share.machine], job.demand, share.tasks);
    }
    for (std::size_t machine = 0; machine < free.size(); ++machine) {
      ASSERT_TRUE(std::ranges::equal(free[machine], placer.free_on(machine)));
      for (const std::int64_t left : free[machine]) ASSERT_GE(left, 0) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace berth::optimus
