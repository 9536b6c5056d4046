// The row of what was recorded: the same definitions as for a run, so that what a run did, written
// into the trace as its record, gives the run's own figures again.
#include "metrics/recorded.h"

#include <gtest/gtest.h>

#include "metrics/recorded_run.h"

namespace berth::test {
namespace {

/// The trace of a run with what became of its jobs as their record.
Trace with_record(const Trace& trace, const RunData& run) {
  Trace recorded = trace;
  for (std::size_t i = 0; i < recorded.jobs.size(); ++i) {
    const JobOutcome& row = run.jobs.rows[i];
    recorded.jobs[i].recorded = berth::RecordedRun{
        .start = *row.start, .end = *row.finish, .held = row.run_time, .restarts = 0};
  }
  return recorded;
}

TEST(Recorded, WhatARunDidAsItsRecordGivesItsFiguresAgain) {
  const auto made = recorded({.policy = "fifo", .cluster = "1x4", .jobs = t6()});
  const RunData run = made->analysed();
  const auto again = recorded_run(with_record(made->trace, run), made->cluster);
  ASSERT_TRUE(again);
  for (const std::string_view name :
       {"jobs",           "finished",          "avg_jct",      "median_jct",
        "p95_jct",        "p99_jct",           "max_jct",      "avg_queue_time",
        "p95_queue_time", "makespan",          "avg_run_time", "gpu_utilization",
        "gpu_allocation", "goodput",           "completed",    "avg_slowdown",
        "avg_ftf",        "max_rho",           "jain",         "gpu_hours",
        "jobs_per_hour",  "avg_response_time", "preemptions",  "avg_bounded_slowdown"}) {
    const Metric* metric = find_metric(name);
    ASSERT_NE(metric, nullptr) << name;
    EXPECT_EQ(again->run.summary.*metric->field, run.summary.*metric->field) << name;
  }
  EXPECT_TRUE(again->run.summary.is_recorded);
  EXPECT_EQ(again->run.summary.label, "as recorded");
  EXPECT_EQ(again->most_gpus, 4);               // job 3 holds all four
  EXPECT_FALSE(again->run.summary.energy_kwh);  // nobody knows which devices
}

// A was put back: 10 s of work on 2 GPUs within 30 s. B waited 5 s of its 15.
//   JCT 30 and 15; waiting 20 and 5; GPU-seconds 2 x 10 + 1 x 10 = 30 of 4 x 30.
TEST(Recorded, ARestartIsAPreemptionAndTheTimeBetweenIsWaiting) {
  Trace trace = make_trace(
      {{.submit = 0, .gpus = 2, .duration = 10}, {.submit = 0, .gpus = 1, .duration = 10}});
  trace.jobs[0].recorded = berth::RecordedRun{.start = seconds_to_time(0),
                                              .end = seconds_to_time(30),
                                              .held = seconds_to_duration(10),
                                              .restarts = 2};
  trace.jobs[1].recorded = berth::RecordedRun{.start = seconds_to_time(5),
                                              .end = seconds_to_time(15),
                                              .held = seconds_to_duration(10),
                                              .is_cut = true};
  const auto done = recorded_run(trace, load_cluster("1x4").value());
  ASSERT_TRUE(done);
  const Summary& summary = done->run.summary;
  EXPECT_EQ(summary.avg_jct, 22.5);
  EXPECT_EQ(summary.avg_queue_time, 12.5);
  EXPECT_EQ(summary.makespan, 30);
  EXPECT_EQ(summary.gpu_utilization, 30.0 / 120);
  EXPECT_EQ(summary.preemptions, 2);
  EXPECT_EQ(done->restarted, 1U);
  EXPECT_EQ(done->cut, 1U);
  EXPECT_EQ(done->most_gpus, 1);  // when A held its two is not known
}

TEST(Recorded, JobsThatNobodyTakesOrKnowsOfAreNoPartOfTheMeans) {
  Trace trace = make_trace({{.submit = 0, .gpus = 1, .duration = 10},
                            {.submit = 0, .gpus = 9, .duration = 10},
                            {.submit = 0, .gpus = 1, .duration = 10}});
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    trace.jobs[i].recorded = berth::RecordedRun{.start = seconds_to_time(0),
                                                .end = seconds_to_time(i == 0 ? 10 : 90),
                                                .held = seconds_to_duration(10)};
  const auto done = recorded_run(trace, load_cluster("1x4").value(), {false, true, false});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->run.summary.avg_jct, 10);
  EXPECT_EQ(done->run.summary.finished, 1);
  EXPECT_EQ(done->run.summary.rejected, 1);
  EXPECT_EQ(done->run.summary.unfinished, 1);
  EXPECT_EQ(done->unknown, 1U);
}

TEST(Recorded, ATraceThatDoesNotTellItHasNoRow) {
  EXPECT_FALSE(recorded_run(make_trace(t6()), load_cluster("1x4").value()));
}

TEST(Recorded, TheTimelineFollowsTheRecord) {
  Trace trace = make_trace({{.submit = 0, .gpus = 2, .duration = 10}});
  trace.jobs[0].recorded = berth::RecordedRun{
      .start = seconds_to_time(5), .end = seconds_to_time(15), .held = seconds_to_duration(10)};
  const auto points = recorded_run(trace, load_cluster("1x4").value())->run.timeline;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].levels.queue, 1);
  EXPECT_EQ(points[0].levels.queued_gpus, 2);
  EXPECT_EQ(points[1].at, seconds_to_time(5));
  EXPECT_EQ(points[1].levels.busy, 2);
  EXPECT_EQ(points[1].levels.queue, 0);
  EXPECT_EQ(points[2].at, seconds_to_time(15));
  EXPECT_EQ(points[2].levels.busy, 0);
  EXPECT_EQ(points[2].levels.capacity, 4);
}

}  // namespace
}  // namespace berth::test
