// The run facade and the random outages below it, without the program around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run.h"

namespace berth {
namespace {

Trace one_job(int gpus, double seconds) {
  Trace trace;
  TraceJob job;
  job.id = trace.names.intern("a");
  job.gpus = gpus;
  job.duration = seconds_to_duration(seconds);
  trace.jobs.push_back(job);
  trace.normalise();
  return trace;
}

TEST(Run, RecordsAsMuchAsAsked) {
  const Trace trace = one_job(2, 10);
  const Cluster cluster = *load_cluster("1x4");
  const auto recorded = [&](Recording recording) {
    return make_run(trace, cluster, {.recording = recording})->run();
  };
  const auto none = recorded(Recording::None);
  const auto totals = recorded(Recording::Totals);
  const auto everything = recorded(Recording::Everything);
  ASSERT_TRUE(none && totals && everything);
  EXPECT_EQ(none->summary.avg_jct, 10);
  EXPECT_EQ(none->summary.digest, everything->summary.digest);
  EXPECT_TRUE(totals->timeline.empty());
  EXPECT_FALSE(everything->timeline.empty());
  ASSERT_TRUE(everything->actions);
  EXPECT_EQ(everything->actions->rows.size(), 1U);
}

TEST(Run, ABadSpecIsAnErrorNotACrash) {
  const Trace trace = one_job(2, 10);
  const Cluster cluster = *load_cluster("1x4");
  EXPECT_FALSE(make_run(trace, cluster, {.policy = "nobody"}));
  EXPECT_FALSE(make_run(trace, cluster, {.placement = "nowhere"}));
  EXPECT_FALSE(make_run(trace, cluster, {.estimator = "nothing"}));
  const auto all = make_run(trace, cluster,
                            {.policy = "nobody", .placement = "nowhere", .estimator = "nothing"});
  ASSERT_FALSE(all);
  EXPECT_GE(all.error().messages.size(), 3U);
}

TEST(Run, RefusesPartsThatLeaveEachOtherNothingToDo) {
  const Trace trace = one_job(2, 10);
  const Cluster cluster = *load_cluster("1x4");
  const auto refusals = [&](const RunSpec& spec) -> std::size_t {
    const auto made = make_run(trace, cluster, spec);
    return made ? 0 : made.error().messages.size();
  };
  EXPECT_EQ(refusals({.policy = "fifo", .placement = "count"}), 0U);
  EXPECT_EQ(refusals({.policy = "fifo", .placement = "count", .cpu = "bind"}), 1U);
  EXPECT_EQ(refusals({.policy = "fifo", .placement = "count", .power = "ces"}), 1U);
  EXPECT_EQ(refusals({.policy = "gandiva", .placement = "count"}), 1U);  // it shares devices
  EXPECT_EQ(refusals({.policy = "gandiva"}), 0U);
  EXPECT_EQ(refusals({.policy = "fifo", .cpu = "nobody", .power = "nobody"}), 2U);
}

TEST(RunDeathTest, ARunIsRunOnce) {
  const Trace trace = one_job(2, 10);
  const Cluster cluster = *load_cluster("1x4");
  auto run = make_run(trace, cluster, {});
  ASSERT_TRUE(run.has_value());
  ASSERT_TRUE(run->run().has_value());
  EXPECT_DEATH({ const auto again = run->run(); }, "a run is run once");
}

TEST(Run, KnowsWhetherItsRunTimesAreLearnt) {
  const Trace trace = one_job(2, 10);
  const Cluster cluster = *load_cluster("1x4");
  const auto learns = [&](const RunSpec& spec) {
    return make_run(trace, cluster, spec)->learns_run_times();
  };
  EXPECT_TRUE(learns({.policy = "sjf", .estimator = "history"}));
  EXPECT_FALSE(learns({.policy = "sjf", .estimator = "limit"}));
  EXPECT_FALSE(learns({.policy = "fifo", .estimator = "history"}));  // it asks for none
}

TEST(Outages, AreDrawnFromTheSeedAndDoNotOverlap) {
  const Cluster cluster = *load_cluster("3x4");
  const RandomOutages random{.mtbf = seconds_to_duration(3600), .repair = seconds_to_duration(600)};
  const Time horizon = seconds_to_time(86'400);
  const auto first = draw_outages(cluster, random, horizon, 1);
  const auto again = draw_outages(cluster, random, horizon, 1);
  const auto other = draw_outages(cluster, random, horizon, 2);
  ASSERT_TRUE(first && again && other);
  // about 3 x 86400 / 4200 = 62 of them
  EXPECT_GT(first->size(), 30U);
  EXPECT_LT(first->size(), 120U);
  ASSERT_EQ(first->size(), again->size());
  EXPECT_NE(first->front().down, other->front().down);
  for (std::size_t i = 0; i < first->size(); ++i) {
    EXPECT_EQ((*first)[i].down, (*again)[i].down);
    EXPECT_LT((*first)[i].down, (*first)[i].up);
    EXPECT_LT((*first)[i].down, horizon);
    const bool same_node = i > 0 && (*first)[i].node == (*first)[i - 1].node;
    EXPECT_TRUE(!same_node || (*first)[i].down >= (*first)[i - 1].up) << i;
  }
}

TEST(Outages, NoneWithoutMtbfAndAnErrorForTooMany) {
  const Cluster cluster = *load_cluster("3x4");
  EXPECT_TRUE(draw_outages(cluster, {}, seconds_to_time(1e9), 1)->empty());
  const RandomOutages flicker{.mtbf = Duration{1}, .repair = Duration{1}};
  EXPECT_FALSE(draw_outages(cluster, flicker, seconds_to_time(1e6), 1));
}

}  // namespace
}  // namespace berth
