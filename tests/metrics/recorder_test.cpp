// What the recorder writes down must add up to what the engine booked, whatever happened in
// between.
#include "metrics/recorder.h"

#include <bit>
#include <map>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "metrics/recorded_run.h"

namespace berth::test {
namespace {

std::vector<JobSpec> random_jobs(std::uint64_t seed, int count, int most_gpus) {
  Rng rng{seed};
  std::vector<JobSpec> jobs;
  double submit = 0;
  for (int i = 0; i < count; ++i) {
    const int gpus = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(most_gpus)));
    jobs.push_back({.submit = submit,
                    .gpus = gpus,
                    .duration = 0.5 + static_cast<double>(rng.below(4000)) / 100,
                    .user = rng.below(2) == 0 ? "ann" : "bob"});
    submit += static_cast<double>(rng.below(500)) / 100;
  }
  return jobs;
}

struct Case {
  std::string name;
  std::string policy;
  Settings settings;
  std::string placement;
  double cost = 0;  // of every switch
  bool outages = false;
  std::string cluster = "3x4:v100,2x2:a100";
};

class Conservation : public ::testing::TestWithParam<std::tuple<Case, int>> {
 protected:
  [[nodiscard]] static std::unique_ptr<RecordedRun> make() {
    const auto& [row, seed] = GetParam();
    Scenario scenario{.policy = row.policy,
                      .settings = row.settings,
                      .cluster = row.cluster,
                      .placement = row.placement,
                      .jobs = random_jobs(static_cast<std::uint64_t>(seed), 120, 4)};
    const Duration cost = seconds_to_duration(row.cost);
    scenario.sim.costs = {.start = cost, .preempt = cost, .resume = cost * 2, .migrate = cost};
    if (row.outages) {
      scenario.sim.outages = {{NodeId{0}, seconds_to_time(40), seconds_to_time(90)},
                              {NodeId{3}, seconds_to_time(60), seconds_to_time(61)}};
    }
    return recorded(scenario, kRecordAll, [&](Trace& trace) {  // some users lose patience
      for (std::size_t i = 0; i < trace.jobs.size(); i += 9)
        trace.jobs[i].cancel_at = trace.jobs[i].submit + seconds_to_duration(20);
    });
  }
};

TEST_P(Conservation, IntervalsAddUpToWhatJobsHeld) {
  const auto run = make();
  const JobTable& jobs = run->engine->jobs();
  std::int64_t held = 0, overhead = 0, kept = 0, kept_overhead = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    held += jobs.held[JobId{i}].count() * run->trace.jobs[i].gpus;
    overhead += jobs.overhead[JobId{i}].count() * run->trace.jobs[i].gpus;
  }
  Int128 by_pool = 0;
  for (const Int128 pool : run->recorder->integrals().held) by_pool += pool;
  const IntervalLog log = run->recorder->take_intervals();
  EXPECT_EQ(log.total, log.rows.size());
  for (const Interval& interval : log.rows) {
    ASSERT_LT(interval.start, interval.end);
    const std::int64_t area = (interval.end - interval.start).count() * interval.gpus;
    kept += area;
    if (interval.kind == IntervalKind::Overhead) kept_overhead += area;
    if (interval.devices != 0) {
      ASSERT_EQ(std::popcount(interval.devices), interval.gpus);
    }
  }
  EXPECT_GT(held, 0);
  EXPECT_EQ(kept, held);
  EXPECT_EQ(kept_overhead, overhead);
  EXPECT_EQ(static_cast<std::int64_t>(by_pool), held);
}

TEST_P(Conservation, QueueAndRunningIntegralsMatchTheJobs) {
  const auto run = make();
  const RunData data = run->analysed();
  const auto& [row, seed] = GetParam();
  if (row.cost > 0) return;  // with costs a granted job may still wait for devices being saved
  double waited = 0, ran = 0, busy = 0;
  for (const JobOutcome& job : data.jobs.rows) {
    if (job.state == JobState::Rejected) continue;
    ran += to_seconds(job.run_time);
    busy += to_seconds(job.run_time) * job.gpus;
    waited += to_seconds(*job.finish - job.submit - job.run_time);
  }
  const Integrals& integrals = run->recorder->integrals();
  EXPECT_NEAR(static_cast<double>(integrals.queue) * 1e-6, waited, 1e-5);
  EXPECT_NEAR(static_cast<double>(integrals.running) * 1e-6, ran, 1e-5);
  EXPECT_NEAR(static_cast<double>(integrals.busy) * 1e-6, busy, 1e-5);
  double from_timeline = 0;
  for (std::size_t i = 0; i + 1 < data.timeline.size(); ++i) {
    from_timeline +=
        data.timeline[i].levels.busy * to_seconds(data.timeline[i + 1].at - data.timeline[i].at);
  }
  EXPECT_NEAR(from_timeline / busy, 1, 1e-9);
  EXPECT_EQ(data.timeline.back().levels.queue, 0);
  EXPECT_EQ(data.timeline.back().levels.busy, 0);
}

TEST_P(Conservation, NoDeviceIsDrawnTwiceAtOneTime) {
  const auto run = make();
  const RunData data = run->analysed();
  ASSERT_TRUE(data.gantt);
  std::map<std::uint32_t, Time> busy_until;
  for (const GanttBar& bar : data.gantt->bars) {  // by lane, then start
    const auto [entry, is_new] = busy_until.try_emplace(bar.lane, bar.end);
    if (!is_new) {
      ASSERT_GE(bar.start, entry->second) << "lane " << bar.lane;
      entry->second = bar.end;
    }
    ASSERT_LT(bar.lane, 16U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, Conservation,
    ::testing::Combine(
        ::testing::Values(
            Case{"fifo_count", "fifo", {}, "count"}, Case{"srtf_count", "srtf", {}, "count"},
            Case{"srtf_count_costs", "srtf", {}, "count", 1.5},
            Case{"srtf_nodes", "srtf", {}, "best-fit"},
            Case{"srtf_nodes_costs", "srtf", {}, "best-fit", 1.5},
            Case{"las_nodes_costs", "las", {{"quantum", "5"}}, "best-fit", 0.25, false, "4x4:v100"},
            Case{"las_nodes_outages", "las", {{"quantum", "5"}}, "best-fit", 0, true},
            Case{"easy_nodes_outages", "easy", {}, "best-fit", 0.5, true}),
        ::testing::Values(1, 2, 3)),
    [](const auto& row) {
      return std::get<0>(row.param).name + "_" + std::to_string(std::get<1>(row.param));
    });

TEST(Recorder, ActionsTellWhatWhenWhyAndWhere) {
  const auto run = recorded({.policy = "srtf",
                             .cluster = "1x2",
                             .placement = "best-fit",
                             .jobs = {{0, 2, 10}, {4, 2, 3}}});
  const ActionLog log = run->recorder->take_actions();
  ASSERT_EQ(log.rows.size(), 4U);  // start 1, preempt 1, start 2, resume 1
  EXPECT_EQ(log.rows[0].kind, ActionKind::Start);
  EXPECT_EQ(log.rows[0].at, seconds_to_time(0));
  EXPECT_EQ(log.rows[0].gpus, 2);
  ASSERT_EQ(log.rows[0].slices, 1U);
  EXPECT_EQ(log.slices[log.rows[0].first_slice].devices, 0b11U);
  EXPECT_EQ(log.rows[1].kind, ActionKind::Preempt);
  EXPECT_EQ(log.rows[1].at, seconds_to_time(4));
  EXPECT_EQ(log.rows[2].kind, ActionKind::Start);
  EXPECT_EQ(log.rows[3].kind, ActionKind::Resume);
  EXPECT_EQ(log.rows[3].at, seconds_to_time(7));
}

TEST(Recorder, ShowsOverheadApartFromRunning) {
  // 1 runs 0-4, saves 4-5; 2 is granted at 4, waits for the save, pays its start 5-7, runs 7-10;
  // 1 resumes at 10, pays 2 s, does its other 6 s: 12-18.
  Scenario scenario{
      .policy = "srtf", .cluster = "1x2", .placement = "best-fit", .jobs = {{0, 2, 10}, {4, 2, 3}}};
  scenario.sim.costs = {.start = seconds_to_duration(2),
                        .preempt = seconds_to_duration(1),
                        .resume = seconds_to_duration(2),
                        .migrate = {}};
  scenario.jobs[0].duration = 8;  // 2 s start, so 2 s of work by t=4 and 6 s left
  const auto run = recorded(scenario);
  const IntervalLog log = run->recorder->take_intervals();
  const auto seconds = [](Time time) { return to_seconds(time); };
  std::vector<std::tuple<std::uint32_t, double, double, IntervalKind>> rows;
  for (const Interval& i : log.rows)
    rows.emplace_back(i.job.value, seconds(i.start), seconds(i.end), i.kind);
  using enum IntervalKind;
  EXPECT_EQ(rows, (std::vector<std::tuple<std::uint32_t, double, double, IntervalKind>>{
                      {0, 0, 2, Overhead},
                      {0, 2, 4, Run},
                      {0, 4, 5, Overhead},
                      {1, 5, 7, Overhead},
                      {1, 7, 10, Run},
                      {0, 10, 12, Overhead},
                      {0, 12, 18, Run}}));
}

TEST(Recorder, ForgetsTheShortestIntervalsWhenThereAreTooMany) {
  RecordOptions few = kRecordAll;
  few.max_intervals = 10;
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 50; ++i) jobs.push_back({.submit = 0, .gpus = 1, .duration = 1.0 + i});
  const auto run =
      recorded({.policy = "fifo", .cluster = "13x4", .placement = "count", .jobs = jobs}, few);
  const IntervalLog log = run->recorder->take_intervals();
  EXPECT_EQ(log.total, 50U);
  ASSERT_EQ(log.rows.size(), 10U);
  for (const Interval& interval : log.rows)
    EXPECT_GT(interval.end, seconds_to_time(40));  // the ten longest: 41 … 50 s
}

TEST(Recorder, DoesNotChangeTheRun) {
  const Scenario scenario{
      .policy = "las", .settings = {{"quantum", "1"}}, .cluster = "1x4", .jobs = t6()};
  EXPECT_EQ(recorded(scenario)->engine->digest(), run(scenario).digest);
}

}  // namespace
}  // namespace berth::test
