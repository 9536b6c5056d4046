// Every metric whose value can be had on paper, on the six-job trace under strict FIFO:
//
//   job  submit  gpus  dur | start finish | JCT  queue | slowdown
//    1      0      3    10 |   0     10   |  10    0   |  1
//    2      1      2     4 |  10     14   |  13    9   |  13/4
//    3      2      4     7 |  14     21   |  19   12   |  19/7
//    4      3      1    12 |  21     33   |  30   18   |  30/12
//    5      4      1    11 |  21     32   |  28   17   |  28/11
//    6      5      1     4 |  21     25   |  20   16   |  20/4
//
// GPU-seconds: 30 + 8 + 28 + 12 + 11 + 4 = 93 of 4 x 33 = 132.
#include "metrics/summary.h"

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "metrics/derive.h"
#include "metrics/recorded_run.h"
#include "project_paths.h"
#include "support/second_node_off.h"

namespace berth::test {
namespace {

RunData fifo_on_t6() {
  return recorded({.policy = "fifo", .cluster = "1x4", .jobs = t6()})->analysed();
}

struct Expected {
  std::string_view metric;
  double value;
};

class OnPaper : public ::testing::TestWithParam<Expected> {};

TEST_P(OnPaper, EqualsTheArithmetic) {
  const Summary summary = fifo_on_t6().summary;
  const Metric* metric = find_metric(GetParam().metric);
  ASSERT_NE(metric, nullptr);
  ASSERT_TRUE((summary.*metric->field).has_value());
  EXPECT_NEAR(*(summary.*metric->field), GetParam().value, 1e-9 * std::max(1.0, GetParam().value));
}

// How many jobs are in the system: 1 2 3 4 5 during the first five seconds, 6 in [5,10), 5 in
// [10,14), 4 in [14,21), 3 in [21,25), 2 in [25,32), 1 in [32,33). Summed up to t: I(10) = 45,
// I(14) = 65, I(21) = 93, I(25) = 105, I(32) = 119, I(33) = 120. N of a job = (I(finish) -
// I(submit)) / JCT.
constexpr double kN1 = 45.0 / 10, kN2 = 64.0 / 13, kN3 = 90.0 / 19, kN4 = 114.0 / 30,
                 kN5 = 109.0 / 28, kN6 = 90.0 / 20;
// Finish-time fairness: JCT / (work x max(1, N x gpus / 4)); jobs 4 and 5 have N / 4 < 1.
constexpr double kF1 = 10 / (10 * kN1 * 3 / 4), kF2 = 13 / (4 * kN2 * 2 / 4), kF3 = 19 / (7 * kN3),
                 kF4 = 30.0 / 12, kF5 = 28.0 / 11, kF6 = 20 / (4 * kN6 / 4);
// Themis: JCT / (work x N)
constexpr double kR1 = 10 / (10 * kN1), kR2 = 13 / (4 * kN2), kR3 = 19 / (7 * kN3),
                 kR4 = 30 / (12 * kN4), kR5 = 28 / (11 * kN5), kR6 = 20 / (4 * kN6);
// Speeds of service: 1 / slowdown
constexpr double kV1 = 1, kV2 = 4.0 / 13, kV3 = 7.0 / 19, kV4 = 12.0 / 30, kV5 = 11.0 / 28,
                 kV6 = 4.0 / 20;
constexpr double kV = kV1 + kV2 + kV3 + kV4 + kV5 + kV6;
constexpr double kVV = kV1 * kV1 + kV2 * kV2 + kV3 * kV3 + kV4 * kV4 + kV5 * kV5 + kV6 * kV6;

INSTANTIATE_TEST_SUITE_P(
    FifoOnT6, OnPaper,
    ::testing::Values(
        Expected{"jobs", 6}, Expected{"finished", 6}, Expected{"completed", 6},
        Expected{"failed", 0}, Expected{"cancelled", 0}, Expected{"rejected", 0},
        Expected{"unfinished", 0}, Expected{"avg_jct", 120.0 / 6},  // 10 + 13 + 19 + 30 + 28 + 20
        Expected{"median_jct", 19.5},                               // sorted 10 13 19 | 20 28 30
        Expected{"p95_jct", 29.5},                                  // position 4.75: 28 + 0.75 x 2
        Expected{"p99_jct", 29.9},                                  // position 4.95: 28 + 0.95 x 2
        Expected{"max_jct", 30}, Expected{"avg_queue_time", 72.0 / 6},  // 0 + 9 + 12 + 18 + 17 + 16
        Expected{"median_queue_time", 14},                              // sorted 0 9 12 | 16 17 18
        Expected{"p95_queue_time", 17.75}, Expected{"p99_queue_time", 17.95},
        Expected{"max_queue_time", 18},
        Expected{"avg_run_time", 48.0 / 6},  // 10 + 4 + 7 + 12 + 11 + 4
        Expected{"makespan", 33}, Expected{"gpu_utilization", 93.0 / 132},  // 0.7045
        Expected{"gpu_allocation", 93.0 / 132},  // no overhead: all held time is useful
        Expected{"goodput", 1}, Expected{"preemptions", 0}, Expected{"migrations", 0},
        Expected{"lost_attempts", 0}, Expected{"retries", 0}, Expected{"wasted_gpu_hours", 0},
        Expected{"avg_slowdown", (1 + 13.0 / 4 + 19.0 / 7 + 2.5 + 28.0 / 11 + 5) / 6},
        Expected{"median_slowdown", (28.0 / 11 + 19.0 / 7) / 2},
        Expected{"p95_slowdown", 3.25 + 0.75 * (5 - 3.25)}, Expected{"max_slowdown", 5},
        // works below 10 s count as 10 s: 10/10, 13/10, 19/10, 30/12, 28/11, 20/10
        Expected{"avg_bounded_slowdown", (1 + 1.3 + 1.9 + 2.5 + 28.0 / 11 + 2) / 6},
        Expected{"median_bounded_slowdown", (1.9 + 2.0) / 2},
        Expected{"p95_bounded_slowdown", 2.5 + 0.75 * (28.0 / 11 - 2.5)},
        Expected{"avg_ftf", (kF1 + kF2 + kF3 + kF4 + kF5 + kF6) / 6},
        Expected{"max_ftf", kF6},  // 4.444: job 6 waits behind larger ones
        Expected{"p95_ftf", kF5 + 0.75 * (kF6 - kF5)},
        Expected{"unfair_share", 4.0 / 6},  // jobs 2 (1.32), 4, 5 and 6
        Expected{"avg_rho", (kR1 + kR2 + kR3 + kR4 + kR5 + kR6) / 6},
        Expected{"max_rho", 20.0 / 18},                 // job 6: 20 / (4 x 4.5)
        Expected{"p95_rho", kR2 + 0.75 * (kR6 - kR2)},  // the two largest: 0.660 and 1.111
        Expected{"jain", kV* kV / (6 * kVV)},
        // free GPUs: 1 in [0,10), 2 in [10,14), 0, 1 in [21,25), 2 in [25,32), 3 in [32,33): 39
        // GPU-s. In [1,3) the one free GPU is too few for job 2, the smallest that waits: 2 GPU-s
        // stranded.
        Expected{"fragmentation", 2.0 / 39},
        Expected{"idle_while_queued", (9.0 * 1 + 4 * 2) / 132},  // jobs wait in [1,21)
        Expected{"avg_queue_length",
                 72.0 / 33},              // every second of waiting is one job for one second
        Expected{"max_queue_length", 5},  // jobs 2 … 6 from t=5 on
        Expected{"avg_running", 48.0 / 33}, Expected{"deadline_jobs", 0},
        Expected{"gpu_hours", 93.0 / 3600}, Expected{"overhead_gpu_hours", 0},
        Expected{"energy_kwh",
                 (93.0 * 270 + 39 * 42) / 3.6e6},  // generic device: 270 W busy, 42 W idle
        Expected{"jobs_per_hour", 6 * 3600.0 / 33}, Expected{"wall_seconds", 0.25}),
    [](const auto& row) { return std::string(row.param.metric); });

TEST(Summary, LeavesOutWhatDoesNotApply) {
  const Summary summary = fifo_on_t6().summary;
  EXPECT_FALSE(summary.deadline_misses);     // because no job has a deadline
  EXPECT_FALSE(summary.avg_estimate_error);  // because FIFO asks for no estimate
  EXPECT_FALSE(summary.jain_users);          // because the trace names no users
}

TEST(Summary, WithoutARecorderHasTheSameNumbersExceptTheRecordedOnes) {
  auto run = recorded({.policy = "fifo", .cluster = "1x4", .jobs = t6()});
  const Summary with =
      summarise(*run->engine, run->trace, run->cluster, run->recorder.get(), run->labels);
  const Summary without = summarise(*run->engine, run->trace, run->cluster, nullptr, run->labels);
  const std::set<std::string_view> recorded_only{
      "fragmentation", "idle_while_queued", "avg_queue_length", "max_queue_length", "avg_running"};
  for (const Metric& metric : metrics()) {
    if (recorded_only.contains(metric.name))
      EXPECT_FALSE(without.*metric.field) << metric.name;
    else
      EXPECT_EQ(with.*metric.field, without.*metric.field) << metric.name;
  }
}

TEST(Summary, CountsEndsApart) {
  // four at once on four GPUs: completed, failed, killed by its user at 5 s; one waits and is
  // cancelled at 6 s; one never fits
  auto run = recorded({.policy = "fifo",
                       .cluster = "1x4",
                       .jobs = {{0, 1, 10}, {0, 1, 8}, {0, 2, 100}, {1, 4, 5}, {2, 9, 5}}},
                      kRecordAll, [](Trace& trace) {
                        trace.jobs[1].status = TraceStatus::Failed;
                        trace.jobs[2].cancel_at = seconds_to_time(5);
                        trace.jobs[3].cancel_at = seconds_to_time(6);
                      });
  const RunData data = run->analysed();
  const Summary& summary = data.summary;
  EXPECT_EQ(summary.jobs, 5);
  EXPECT_EQ(summary.completed, 1);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.cancelled, 2);
  EXPECT_EQ(summary.rejected, 1);
  EXPECT_EQ(summary.finished, 3);  // the job cancelled in the queue never ran
  EXPECT_DOUBLE_EQ(*summary.avg_jct, (10 + 8 + 5) / 3.0);
  EXPECT_EQ(summary.makespan, 10);
  EXPECT_DOUBLE_EQ(*summary.goodput,
                   10.0 / (10 + 8 + 2 * 5));  // only the completed job's work counts
  ASSERT_EQ(data.rejected.size(), 1U);
  EXPECT_EQ(data.rejected[0].first, "5");
  EXPECT_FALSE(data.rejected[0].second.empty());
  EXPECT_DOUBLE_EQ(*summary.avg_queue_length, 5.0 / 10);  // job 4 waits from 1 to 6
}

TEST(Summary, CountsDeadlinesAndEstimateErrors) {
  auto run = recorded({.policy = "sjf",
                       .cluster = "1x1",
                       .estimator = "limit",
                       .jobs = {{.submit = 0, .gpus = 1, .duration = 10, .estimate = 20},
                                {.submit = 0, .gpus = 1, .duration = 10, .estimate = 30}}},
                      kRecordAll, [](Trace& trace) {
                        trace.jobs[0].deadline = seconds_to_time(10);  // ends exactly then: met
                        trace.jobs[1].deadline = seconds_to_time(19);  // ends at 20: missed
                      });
  const Summary summary = run->analysed().summary;
  EXPECT_EQ(summary.deadline_jobs, 2);
  EXPECT_EQ(summary.deadline_misses, 1);
  EXPECT_EQ(summary.strict_deadline_misses, 1);
  EXPECT_EQ(summary.soft_deadline_misses, 0);
  EXPECT_DOUBLE_EQ(*summary.avg_tardiness, 0.5);  // 0 and 1 s
  EXPECT_NEAR(*summary.avg_estimate_error, (std::log(2.0) + std::log(3.0)) / 2, 1e-12);
}

TEST(Summary, EnergyByWhatTheNodesWereDoing) {
  SecondNodeOff manager;
  Scenario scenario{.cluster = "2x1:v100",
                    .placement = "best-fit",
                    .jobs = {{.submit = 0, .gpus = 1, .duration = 100}}};
  scenario.power = &manager;
  scenario.sim.boot = std::chrono::seconds{20};
  auto run = recorded(scenario);
  const DeviceType& v100 = run->cluster.pools[0];
  const Summary summary = run->analysed().summary;
  EXPECT_NEAR(*summary.energy_busy_kwh, 100 * v100.busy_watts / 3.6e6, 1e-12);
  EXPECT_NEAR(*summary.energy_boot_kwh, 20 * v100.idle_watts / 3.6e6, 1e-12);
  EXPECT_NEAR(*summary.energy_idle_kwh, 40 * v100.idle_watts / 3.6e6, 1e-12);  // from 60 s on
  EXPECT_NEAR(*summary.energy_saved_kwh, 40 * v100.idle_watts / 3.6e6, 1e-12);
  EXPECT_NEAR(*summary.energy_kwh,
              *summary.energy_busy_kwh + *summary.energy_boot_kwh + *summary.energy_idle_kwh,
              1e-12);
  EXPECT_NEAR(*summary.avg_nodes_off, 0.4, 1e-12);
  EXPECT_NEAR(*summary.cost, 100.0 / 3600 * price_of(v100), 1e-12);
  EXPECT_EQ(summary.power_ons, 1);
  // One node of two has a job all the time; the other is off for 40 s of 100.
  EXPECT_DOUBLE_EQ(*summary.node_utilization, 0.5);
  EXPECT_DOUBLE_EQ(*summary.node_utilization_on, 100.0 / 160);
  EXPECT_DOUBLE_EQ(*summary.wake_ups_per_day, 864);  // one in 100 s
  EXPECT_EQ(summary.nodes_per_wake_up, 1);
  EXPECT_EQ(summary.boot_delayed_jobs, 0);
}

// The second job comes at 30 and has to wait for the node that boots from 40 to 60, the third at 70
// finds it ready.
TEST(Summary, CountsJobsThatWaitedForANodeToBoot) {
  SecondNodeOff manager;
  Scenario scenario{.cluster = "2x2:v100",
                    .placement = "best-fit",
                    .jobs = {{.submit = 0, .gpus = 2, .duration = 100},
                             {.submit = 30, .gpus = 1, .duration = 100},
                             {.submit = 70, .gpus = 1, .duration = 10}}};
  scenario.power = &manager;
  scenario.sim.boot = std::chrono::seconds{20};
  const Summary summary = recorded(scenario)->analysed().summary;
  EXPECT_EQ(summary.boot_delayed_jobs, 1);
  EXPECT_EQ(summary.max_queue_time, 30);
}

TEST(Summary, WithoutDevicesNothingIsSaidOfNodes) {
  const Summary summary =
      recorded({.cluster = "2x1", .jobs = {{.submit = 0, .gpus = 1, .duration = 10}}})
          ->analysed()
          .summary;
  EXPECT_FALSE(summary.node_utilization.has_value());
  EXPECT_FALSE(summary.wake_ups_per_day.has_value());
}

TEST(Summary, OverheadIsHeldButNotUseful) {
  Scenario scenario{.policy = "srtf", .cluster = "1x2", .jobs = {{0, 2, 10}, {4, 2, 3}}};
  scenario.sim.costs.resume = seconds_to_duration(2);
  const Summary summary =
      recorded(scenario)->analysed().summary;  // 1: 0-4, 7-15 (2 s restart); 2: 4-7
  EXPECT_EQ(summary.makespan, 15);
  EXPECT_EQ(summary.preemptions, 1);
  EXPECT_DOUBLE_EQ(*summary.gpu_utilization, 26.0 / 30);
  EXPECT_DOUBLE_EQ(*summary.gpu_allocation, 1);
  EXPECT_DOUBLE_EQ(*summary.goodput, 26.0 / 30);
  EXPECT_DOUBLE_EQ(*summary.overhead_gpu_hours, 2 * 2 / 3600.0);
  EXPECT_DOUBLE_EQ(*summary.avg_queue_time, (3 + 0) / 2.0);
}

TEST(Summary, CountsFragmentsOnNodes) {
  // n0: jobs 1 and 2, n1: job 3; from t=2 each node has one GPU free. Job 4 wants both of one node
  // and waits in [1,10).
  const auto run = recorded({.policy = "fifo",
                             .cluster = "2x2",
                             .placement = "consolidated",
                             .jobs = {{0, 1, 10}, {0, 1, 2}, {0, 1, 10}, {1, 2, 5}}});
  ASSERT_EQ(run->engine->jobs().first_start[JobId{3}], seconds_to_time(10));
  const Summary summary = run->analysed().summary;
  // free: 1 in [0,2), 2 in [2,10), 2 in [10,15) = 28 GPU-s; stranded: 1 in [1,2), 2 in [2,10) = 17
  EXPECT_DOUBLE_EQ(*summary.fragmentation, 17.0 / 28);
  EXPECT_DOUBLE_EQ(*summary.idle_while_queued, 17.0 / 60);
}

TEST(Summary, EnergyFollowsThePoolThatWasUsed) {
  // 10 s on one of 2 a100 (390 / 60 W); the 2 v100 (270 / 42 W) stay idle.
  const Summary summary =
      recorded({.policy = "fifo",
                .cluster = "1x2:v100,1x2:a100",
                .jobs = {{.submit = 0, .gpus = 1, .duration = 10, .type = "a100"}}})
          ->analysed()
          .summary;
  EXPECT_DOUBLE_EQ(*summary.energy_kwh, (10 * 390 + 10 * 60 + 20 * 42) / 3.6e6);
}

TEST(Groups, BySizeAndByUser) {
  std::vector<JobSpec> jobs = t6();
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].user = i < 2 ? "ann" : "bob";
  const RunData data = recorded({.policy = "fifo", .cluster = "1x4", .jobs = jobs})->analysed();
  ASSERT_EQ(data.by_size.size(), 3U);
  EXPECT_EQ(data.by_size[0].label, "1");
  EXPECT_EQ(data.by_size[0].jobs, 3U);  // jobs 4, 5, 6
  EXPECT_DOUBLE_EQ(data.by_size[0].avg_jct, (30 + 28 + 20) / 3.0);
  EXPECT_DOUBLE_EQ(data.by_size[0].median_jct, 28);
  EXPECT_DOUBLE_EQ(data.by_size[0].avg_queue_time, (18 + 17 + 16) / 3.0);
  EXPECT_EQ(data.by_size[1].label, "2");
  EXPECT_EQ(data.by_size[2].label, "3-4");
  EXPECT_EQ(data.by_size[2].jobs, 2U);  // jobs 1 and 3
  ASSERT_EQ(data.by_user.size(), 2U);
  EXPECT_EQ(data.by_user[0].label, "bob");  // 28 + 12 + 11 + 4 = 55 GPU-s before 38
  EXPECT_DOUBLE_EQ(data.by_user[0].gpu_hours, 55.0 / 3600);
  EXPECT_DOUBLE_EQ(data.by_user[1].gpu_hours, 38.0 / 3600);
  EXPECT_EQ(data.preemption_histogram, (std::map<std::uint32_t, std::size_t>{{0, 6}}));
}

TEST(Groups, ThirtyUsersAndTheRestTogether) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 40; ++i)
    jobs.push_back(
        {.submit = 0, .gpus = 1, .duration = 100.0 - i, .user = "u" + std::to_string(i)});
  const RunData data = recorded({.policy = "fifo", .cluster = "10x4", .jobs = jobs})->analysed();
  ASSERT_EQ(data.by_user.size(), 31U);
  EXPECT_EQ(data.by_user.front().label, "u0");
  EXPECT_EQ(data.by_user.back().label, "10 others");
  EXPECT_EQ(data.by_user.back().jobs, 10U);
}

TEST(Gantt, GivesCountedJobsTheLowestFreeLanes) {
  const RunData data = fifo_on_t6();
  ASSERT_TRUE(data.gantt);
  EXPECT_EQ(data.gantt->total, 3U + 2 + 4 + 1 + 1 + 1);
  ASSERT_EQ(data.gantt->bars.size(), 12U);
  const GanttBar& first = data.gantt->bars.front();  // lane 0 begins with job 1
  EXPECT_EQ(first.lane, 0U);
  EXPECT_EQ(data.gantt->jobs[first.job].id, "1");
  EXPECT_EQ(first.end, seconds_to_time(10));
}

TEST(Gantt, KeepsTheLongestBarsUnderALimit) {
  auto run = recorded({.policy = "fifo", .cluster = "1x4", .jobs = t6()});
  const Outcomes jobs = outcomes_of(*run->engine, run->trace);
  const Gantt gantt = gantt_of(run->recorder->take_intervals(), jobs, run->cluster, 3);
  EXPECT_EQ(gantt.total, 12U);
  ASSERT_EQ(gantt.bars.size(), 3U);  // jobs 4 (12 s), 5 (11 s); 1 has three; 3 has four; 6 or 2 …
  std::set<std::string> shown;
  for (const GanttBar& bar : gantt.bars) shown.insert(gantt.jobs[bar.job].id);
  EXPECT_EQ(shown, (std::set<std::string>{"4", "5", "6"}));  // 2 lasts 4 s too, but needs two bars
}

TEST(Seeds, MeanAndIntervalOfEveryMetric) {
  RunData run = fifo_on_t6();
  std::vector<Summary> seeds(3, run.summary);
  seeds[0].avg_jct = 18;
  seeds[1].avg_jct = 20;
  seeds[2].avg_jct = 22;
  combine_seeds(run, seeds);
  EXPECT_DOUBLE_EQ(*run.summary.avg_jct, 20);
  EXPECT_EQ(run.summary.policy, "fifo");
  const auto interval = confidence_of(run, *find_metric("avg_jct"));
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->half_width, 4.3027 * 2 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(confidence_of(run, *find_metric("makespan"))->half_width,
            0);  // because all seeds agree
  EXPECT_FALSE(confidence_of(run, *find_metric("deadline_misses")));
}

TEST(Metrics, NamesAreUniqueAndDocumented) {
  std::ifstream file(std::string(BERTH_SOURCE_DIR) + "/docs/metrics.md");
  std::stringstream text;
  text << file.rdbuf();
  std::set<std::string_view> names;
  for (const Metric& metric : metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_NE(text.str().find("`" + std::string(metric.name) + "`"), std::string::npos)
        << metric.name << " is not in docs/metrics.md";
    EXPECT_FALSE(metric.description.empty());
  }
}

}  // namespace
}  // namespace berth::test
