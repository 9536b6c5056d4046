// Predictors of run times: the figures of their specifications, and that they learn from the past
// alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/rng.h"
#include "perf/predict/helios.h"
#include "perf/predict/recurrence.h"
#include "perf/predict/rolling_mean.h"

namespace berth {
namespace {

TEST(EditDistance, CountsChangesUpToALimit) {
  EXPECT_EQ(edit_distance("resnet50_lr0.1", "resnet50_lr0.01", 20), 1U);
  EXPECT_EQ(edit_distance("resnet50_lr0.1", "bert_base", 20), 11U);
  const auto similarity = [](std::string_view a, std::string_view b) {
    const auto longest = std::max(a.size(), b.size());
    return 1 - static_cast<double>(edit_distance(a, b, longest)) / static_cast<double>(longest);
  };
  EXPECT_NEAR(similarity("resnet50_lr0.1", "resnet50_lr0.01"), 0.933333, 1e-6);
  EXPECT_NEAR(similarity("resnet50_lr0.1", "bert_base"), 0.214286, 1e-6);
  EXPECT_EQ(edit_distance("resnet50_lr0.1", "bert_base", 5), 6U) << "beyond the limit";
  EXPECT_EQ(edit_distance("", "abc", 9), 3U);
  EXPECT_EQ(edit_distance("same", "same", 0), 0U);
  EXPECT_TRUE(are_similar("resnet50_lr0.1", "resnet50_lr0.01"));
  EXPECT_FALSE(are_similar("resnet50_lr0.1", "bert_base"));
}

std::size_t plain_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
    }
  }
  return d[a.size()][b.size()];
}

TEST(EditDistance, EqualsTheWholeTableOnRandomTexts) {
  Rng rng{1};
  const auto text = [&] {
    std::string result;
    for (std::size_t i = rng.below(9); i > 0; --i)
      result += static_cast<char>('a' + static_cast<char>(rng.below(3)));
    return result;
  };
  for (int trial = 0; trial < 5000; ++trial) {
    const std::string a = text(), b = text();
    const std::size_t limit = rng.below(10);
    ASSERT_EQ(edit_distance(a, b, limit), std::min(plain_distance(a, b), limit + 1))
        << a << " " << b << " " << limit;
  }
}

class RollingExample : public ::testing::Test {
 protected:
  RollingExample() {
    rolling.add(user, names.intern("resnet50_lr0.1"), 4, 3600);
    rolling.add(user, names.intern("bert_base"), 8, 20000);
    rolling.add(user, names.intern("resnet50_lr0.01"), 4, 5400);
    rolling.add(user, names.intern("resnet50_lr0.3"), 4, 4500);
  }
  Names names;
  NameId user = names.intern("u1");
  NameId stranger = names.intern("u2");
  RollingMean rolling{names};
};

TEST_F(RollingExample, TheNewestOfTheSimilarNamesCountsMost) {
  const NameId next = names.intern("resnet50_lr0.5");
  EXPECT_NEAR(*rolling.predict(user, next, 4), (0.25 * 3600 + 0.5 * 5400 + 4500) / 1.75, 1e-9);
  EXPECT_NEAR(4 * mixed_prediction(*rolling.predict(user, next, 4), 6000, 0.5), 21257.143, 1e-3);
  EXPECT_NEAR(4 * mixed_prediction(*rolling.predict(user, next, 4), 6000, 0.1), 23451.429, 1e-3);
  EXPECT_EQ(mixed_prediction(4500, 0, 0.1), 4500) << "no trees, no mixing";
}

TEST_F(RollingExample, WithoutASimilarNameTheUsersJobsOfThatSizeThenAllOfThem) {
  const NameId other = names.intern("something-else-entirely");
  EXPECT_NEAR(*rolling.predict(user, other, 4), 4500, 1e-9);
  EXPECT_NEAR(*rolling.predict(user, other, 2), (3600 + 20000 + 5400 + 4500) / 4.0, 1e-9);
  EXPECT_NEAR(*rolling.predict(user, names.intern("bert_base2"), 4), 20000, 1e-9)
      << "a similar name of another size";
}

TEST_F(RollingExample, AStrangerGetsEverybodysJobsOfThatSize) {
  EXPECT_NEAR(*rolling.predict(stranger, names.intern("bert_base"), 8), 20000, 1e-9);
  EXPECT_NEAR(*rolling.predict(stranger, names.intern("x"), 4), 4500, 1e-9);
  RollingMean empty{names};
  EXPECT_FALSE(empty.predict(user, stranger, 1).has_value());
}

TEST_F(RollingExample, NamesMayCountAcrossUsers) {
  RollingMean shared{names, {.names_across_users = true}};
  shared.add(user, names.intern("resnet50_lr0.1"), 4, 3600);
  shared.add(user, names.intern("bert_base"), 4, 20000);
  EXPECT_NEAR(*shared.predict(stranger, names.intern("resnet50_lr0.2"), 4), 3600, 1e-9);
}

TraceJob job_of(Trace& trace, const std::string& user, const std::string& name, int gpus,
                double seconds, double submit = 0) {
  TraceJob job;
  job.id = trace.names.intern("job" + std::to_string(trace.jobs.size()));
  job.user = trace.names.intern(user);
  job.name = trace.names.intern(name);
  job.gpus = gpus;
  job.duration = seconds_to_duration(seconds);
  job.submit = seconds_to_time(submit);
  trace.jobs.push_back(job);
  return job;
}

TEST(Recurrence, GoesFromTheClosestLevelToTheWidest) {
  Trace trace;
  for (const double newest : {0.0, 0.5}) {
    RecurrenceEstimator pai{{.newest = newest}};
    for (const double seconds : {100.0, 140.0, 120.0}) {
      const TraceJob job = job_of(trace, "u1", "g7", 1, seconds);
      pai.learn(job, job.duration);
    }
    EXPECT_DOUBLE_EQ(to_seconds(pai.estimate(job_of(trace, "u1", "g7", 1, 1))), 120);
    const TraceJob wide = job_of(trace, "u1", "g7", 2, 300);
    EXPECT_DOUBLE_EQ(to_seconds(pai.estimate(job_of(trace, "u2", "new", 1, 1))), 120)
        << "the median of everybody's jobs of that size";
    pai.learn(wide, wide.duration);
    EXPECT_DOUBLE_EQ(to_seconds(pai.estimate(job_of(trace, "u1", "g7", 2, 1))), 300);
    if (newest == 0) {
      EXPECT_DOUBLE_EQ(to_seconds(pai.estimate(job_of(trace, "u1", "g7", 4, 1))), 165);
    }
  }
  RecurrenceEstimator nothing;
  EXPECT_EQ(nothing.estimate(job_of(trace, "u", "n", 1, 5)), std::chrono::hours{1});
}

TEST(Recurrence, AFailedAttemptOfLessThanAMinuteSaysNothing) {
  Trace trace;
  RecurrenceEstimator pai;
  TraceJob failed = job_of(trace, "u1", "g", 1, 30);
  failed.status = TraceStatus::Failed;
  pai.learn(failed, failed.duration);
  EXPECT_EQ(pai.estimate(failed), std::chrono::hours{1});
}

TEST(Helios, TreesLearnWhatTheRollingMeanCannot) {
  // Night jobs take ten hours, those of the day one; names and users say nothing.
  Trace trace;
  Rng rng{7};
  HeliosEstimator with_trees{{.rolling_share = 0, .least_rows = 300}};
  HeliosEstimator rolling_only{{.rolling_share = 1, .least_rows = 300}};
  std::vector<TraceJob> jobs;
  for (int i = 0; i < 900; ++i) {
    const int gpus = 1 << rng.below(4);
    jobs.push_back(
        job_of(trace, "u" + std::to_string(i), "n" + std::to_string(rng.below(1000000)), gpus,
               (i * 600 % 86400 < 43200 ? 36000.0 : 3600.0) * rng.lognormal(0, 0.1), i * 600.0));
  }
  with_trees.begin(trace);
  rolling_only.begin(trace);
  double trees_error = 0, rolling_error = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double guess = to_seconds(with_trees.estimate(jobs[i]));
    const double rolling = to_seconds(rolling_only.estimate(jobs[i]));
    const double truth = to_seconds(jobs[i].duration);
    if (i >= 600) trees_error += std::abs(guess / truth - 1) / 300;
    if (i >= 600) rolling_error += std::abs(rolling / truth - 1) / 300;
    with_trees.learn(jobs[i], jobs[i].duration);
    rolling_only.learn(jobs[i], jobs[i].duration);
  }
  EXPECT_LT(trees_error, 0.2);
  EXPECT_GT(rolling_error, 1);
}

TEST(Helios, WhatHasNotEndedIsNotKnown) {
  Trace trace;
  const TraceJob first = job_of(trace, "u", "n", 1, 50);
  const TraceJob second = job_of(trace, "u", "n", 1, 70, 10);
  HeliosEstimator qssf;
  qssf.begin(trace);
  EXPECT_EQ(qssf.estimate(first), std::chrono::hours{1});
  EXPECT_EQ(qssf.estimate(second), std::chrono::hours{1}) << "the first is still running";
  qssf.learn(first, first.duration);
  EXPECT_DOUBLE_EQ(to_seconds(qssf.estimate(second)), 50);
}

TEST(Estimators, TakeTheirOptionsAndRefuseOthers) {
  for (const char* good :
       {"qssf", "qssf:0.5", "qssf:names-across-users", "qssf:0.5,names-across-users", "pai",
        "pai:user", "pai:group", "pai:group-gpu", "pai:stable", "pai:group,stable,moving"})
    EXPECT_TRUE(make_estimator(good, 1)) << good;
  for (const char* bad :
       {"qssf:2", "qssf:", "qssf:0.5,", "qssf:names", "pai:", "pai:gpu", "pai:stable,", "qsf"})
    EXPECT_FALSE(make_estimator(bad, 1)) << bad;
}

/// What is believed of the next job of u1 and g7 on one GPU after these run times.
double after_runs(const std::string& estimator, const std::vector<double>& seconds) {
  Trace trace;
  auto pai = *make_estimator(estimator, 1);
  for (const double duration : seconds) {
    const TraceJob job = job_of(trace, "u1", "g7", 1, duration);
    pai->learn(job, job.duration);
  }
  return to_seconds(pai->estimate(job_of(trace, "u1", "g7", 1, 1)));
}

TEST(Recurrence, StableModeBelievesThreeJobsAndNotFewer) {
  EXPECT_DOUBLE_EQ(after_runs("pai:stable", {100, 200, 600}), 300) << "their mean";
  EXPECT_DOUBLE_EQ(after_runs("pai", {100, 300}), 200);
  // Two runs: every level of the user has too few, so the median of everybody's jobs of that size.
  EXPECT_DOUBLE_EQ(after_runs("pai:stable", {100, 300}), 200);
  Trace trace;
  auto stable = *make_estimator("pai:stable", 1);
  for (const double other : {1000.0, 2000.0, 3000.0}) {
    const TraceJob job = job_of(trace, "u2", "else", 1, other);
    stable->learn(job, job.duration);
  }
  const TraceJob first = job_of(trace, "u1", "g7", 1, 100);
  stable->learn(first, first.duration);
  EXPECT_DOUBLE_EQ(to_seconds(stable->estimate(first)), 1500) << "of 100, 1000, 2000, 3000";
}

TEST(Recurrence, AMovingMeanGivesTheNewestHalf) {
  EXPECT_DOUBLE_EQ(after_runs("pai:moving", {100, 140, 120}), 120);
  EXPECT_DOUBLE_EQ(after_runs("pai:moving", {100, 300}), 200);
  EXPECT_DOUBLE_EQ(after_runs("pai:moving", {100, 300, 500}), 350);
}

TEST(Recurrence, KeepsTheLastTenOfAKey) {
  std::vector<double> seconds(5, 5000);
  for (int i = 0; i < 10; ++i) seconds.push_back(100);
  EXPECT_DOUBLE_EQ(after_runs("pai", seconds), 100);
}

TEST(Helios, NamesMayCountAcrossUsersIfAsked) {
  Trace trace;
  const TraceJob known = job_of(trace, "u1", "resnet50_lr0.1", 4, 3600);
  const TraceJob other = job_of(trace, "u1", "something else", 4, 100);
  const TraceJob stranger = job_of(trace, "u2", "resnet50_lr0.2", 4, 1);
  for (const auto& [text, seconds] :
       {std::pair{"qssf:1,names-across-users", 3600.0}, std::pair{"qssf:1", 1850.0}}) {
    auto qssf = *make_estimator(text, 1);
    qssf->begin(trace);
    qssf->learn(known, known.duration);
    qssf->learn(other, other.duration);
    EXPECT_DOUBLE_EQ(to_seconds(qssf->estimate(stranger)), seconds) << text;
  }
}

TEST_F(RollingExample, OnlyTheLastTenSimilarJobsCount) {
  RollingMean many{names};
  for (int i = 0; i < 10; ++i) many.add(user, names.intern("a_run_1"), 1, 1e9);
  for (int i = 0; i < 10; ++i) many.add(user, names.intern("a_run_2"), 1, 100);
  EXPECT_DOUBLE_EQ(*many.predict(user, names.intern("a_run_3"), 1), 100);
}

// Trees are fitted to jobs that are over: what runs while they are fitted changes nothing.
TEST(Helios, TreesAreFittedToJobsThatHaveEnded) {
  const auto prediction = [](bool unfinished) {
    Trace trace;
    HeliosEstimator qssf{{.rolling_share = 0, .least_rows = 50}};
    qssf.begin(trace);
    for (int i = 0; i < 100; ++i) {
      const TraceJob job = job_of(trace, "u", "n", 1 + i % 2, i % 2 == 0 ? 100 : 1000, i * 60.0);
      static_cast<void>(qssf.estimate(job));
      qssf.learn(job, job.duration);
      if (unfinished)  // submitted, and never ends
        static_cast<void>(qssf.estimate(job_of(trace, "u", "n", 1, 1e7, i * 60.0 + 1)));
    }
    return to_seconds(qssf.estimate(job_of(trace, "u", "n", 2, 1, 14 * 86400.0)));
  };
  EXPECT_NEAR(prediction(false), 1000, 100);
  EXPECT_DOUBLE_EQ(prediction(false), prediction(true));
}

}  // namespace
}  // namespace berth
