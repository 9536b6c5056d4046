// What a history file tells predictors before a run begins.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "base/rng.h"
#include "perf/checkpoints.h"
#include "perf/predict/helios.h"
#include "perf/predict/past.h"

namespace berth::past_tests {
namespace {

struct Row {
  std::string user, name;
  int gpus = 1;
  double seconds = 0;
  double submit = 0;
};

Trace trace_of(const std::vector<Row>& rows) {
  Trace trace;
  trace.names.intern("a name the other trace does not have");
  for (const Row& row : rows) {
    TraceJob job;
    job.id = trace.names.intern(fmt::format("{}-{}", row.name, trace.jobs.size()));
    job.user = trace.names.intern(row.user);
    job.name = trace.names.intern(row.name);
    job.gpus = row.gpus;
    job.duration = seconds_to_duration(row.seconds);
    job.submit = seconds_to_time(row.submit);
    trace.jobs.push_back(job);
  }
  trace.normalise();
  return trace;
}

/// What is believed of the first job of the run.
double first_estimate(const std::string& estimator, const Trace& history, Trace run,
                      Clocks clocks = Clocks::Apart) {
  auto informed =
      with_past(*make_estimator(estimator, 1), std::make_shared<const Past>(history, run, clocks));
  informed->begin(run);
  return to_seconds(informed->estimate(run.jobs.front()));
}

// specs: the newest of three similar names counts most, (0.25*3600 + 0.5*5400 + 4500) / 1.75
TEST(Past, TheFirstPredictionOfQssfIsThatOfTheWorkedExample) {
  const Trace history = trace_of({{"u1", "resnet50_lr0.1", 4, 3600, 0},
                                  {"u1", "bert_base", 8, 20000, 0},
                                  {"u1", "resnet50_lr0.01", 4, 5400, 30000},
                                  {"u1", "resnet50_lr0.3", 4, 4500, 40000}});
  const Trace run = trace_of({{"u1", "resnet50_lr0.5", 4, 1, 0}});
  EXPECT_NEAR(first_estimate("qssf", history, run), 4628.571, 1e-3);
  EXPECT_EQ(first_estimate("qssf", trace_of({{"u", "n", 1, 50, 0}}), run), 50)
      << "a stranger is like everybody";
}

// 100, 140, 120 on one GPU and 300 on two
TEST(Past, TheFirstPredictionsOfPaiAreThoseOfTheWorkedExample) {
  const Trace history = trace_of({{"u1", "g7", 1, 100, 0},
                                  {"u1", "g7", 1, 140, 200},
                                  {"u1", "g7", 1, 120, 400},
                                  {"u1", "g7", 2, 300, 600}});
  EXPECT_EQ(first_estimate("pai", history, trace_of({{"u1", "g7", 2, 1, 0}})), 300);
  EXPECT_EQ(first_estimate("pai", history, trace_of({{"u1", "g7", 4, 1, 0}})), 165);
  EXPECT_EQ(first_estimate("pai", history, trace_of({{"u2", "new", 1, 1, 0}})), 120);
  EXPECT_EQ(first_estimate("history", history, trace_of({{"u1", "g7", 1, 1, 0}})), 165);
}

TEST(Past, IsLearntInTheOrderOfEnds) {
  // Submitted first, ended last: it is the newest.
  const Trace history = trace_of({{"u", "n", 1, 1000, 0}, {"u", "n", 1, 10, 5}});
  EXPECT_NEAR(first_estimate("qssf", history, trace_of({{"u", "n", 1, 1, 0}})),
              (1000 + 0.5 * 10) / 1.5, 1e-5);
}

TEST(Past, TheFutureOfTheRunIsLeftOut) {
  const Trace history = trace_of({{"u", "n", 1, 100, 0}, {"u", "n", 1, 900, 50}});
  Trace run = trace_of({{"u", "n", 1, 1, 500}});
  const Past past{history, run, Clocks::Same};
  EXPECT_EQ(past.size(), 1U);
  EXPECT_EQ(past.left_out(), 1U) << "it ended at 950, the run begins at 500";
  EXPECT_EQ(first_estimate("qssf", history, run, Clocks::Same), 100);
  EXPECT_EQ((Past{history, run, Clocks::Apart}).left_out(), 0U);
}

TEST(Past, CalendarsAreCompared) {
  const double october = 1.5e9;
  const Trace history = trace_of({{"u", "n", 1, 100, october}, {"u", "n", 1, 700, october + 50}});
  Trace run = trace_of({{"u", "n", 1, 1, october + 500}});
  EXPECT_EQ((Past{history, run, Clocks::Same}).left_out(), 1U);
}

// Night jobs take ten hours, those of the day one; only the trees know the hour.
TEST(Past, TreesAreTrainedOnItBeforeTheRun) {
  std::vector<Row> rows;
  Rng rng{3};
  for (int i = 0; i < 900; ++i) {
    const double submit = i * 600.0;
    const bool night = std::fmod(submit, 86400) < 43200;
    rows.push_back({fmt::format("u{}", i), fmt::format("n{}", rng.below(1000000)), 1,
                    (night ? 36000.0 : 3600.0) * rng.lognormal(0, 0.1), submit});
  }
  const Trace history = trace_of(rows);
  const Trace night = trace_of({{"x", "y", 1, 1, 7 * 86400 + 7200}});
  const Trace day = trace_of({{"x", "y", 1, 1, 7 * 86400 + 64800}});
  EXPECT_NEAR(first_estimate("qssf:0", history, night), 36000, 6000);
  EXPECT_NEAR(first_estimate("qssf:0", history, day), 3600, 600);
}

// specs: cost 60 s, 5e7 s of a GPU, 512 of them
TEST(Checkpoints, AreAsFarApartAsFailuresAndSavesCostTheSame) {
  const CheckpointRule rule{seconds_to_duration(60), seconds_to_duration(5e7)};
  EXPECT_NEAR(to_seconds(checkpoint_interval(rule, 512)), 3423, 0.5);
  EXPECT_NEAR(to_seconds(checkpoint_interval(rule, 128)), 2 * 3423.3, 0.5) << "a quarter: twice";
}

TEST(Past, SaysWhoLearns) {
  for (const char* learner : {"history", "pai", "qssf"})
    EXPECT_TRUE((*make_estimator(learner, 1))->learns()) << learner;
  for (const char* other : {"oracle", "oracle:1", "limit"})
    EXPECT_FALSE((*make_estimator(other, 1))->learns()) << other;
}

}  // namespace
}  // namespace berth::past_tests
