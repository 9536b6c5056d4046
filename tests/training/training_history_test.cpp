#include "training/training_history.h"

#include <gtest/gtest.h>

#include "training/steady_speed.h"

namespace berth {
namespace {

Report at(std::int64_t iteration, std::optional<double> loss = {},
          std::optional<double> epoch = {}) {
  Report report;
  report.iteration = iteration;
  report.loss = loss;
  report.epoch = epoch;
  report.batch = 32;
  return report;
}

TEST(TrainingHistory, RatesAreMediansSoThatAPauseDoesNotShow) {
  TrainingHistory history;
  double now = 100;
  for (std::int64_t i = 0; i <= 20; ++i) {
    // Ten iterations a second, but for one validation that takes 8 s.
    now += i == 10 ? 8.0 : 1.0;
    history.add(at(10 * i), now);
  }
  const TrainingFigures figures = history.figures(now + 3);
  EXPECT_EQ(figures.iterations, 200);
  EXPECT_DOUBLE_EQ(figures.iterations_per_second, 10);
  EXPECT_DOUBLE_EQ(figures.samples_per_second, 320);
  EXPECT_DOUBLE_EQ(figures.last_heard_seconds_ago, 3);
}

TEST(TrainingHistory, BelievesTheSecondsItIsTold) {
  TrainingHistory history;
  history.add(at(0), 0);
  Report report = at(10);
  report.seconds = 2;  // of the 5 s between the two reports
  const auto sample = history.add(report, 5);
  ASSERT_TRUE(sample.has_value());
  EXPECT_DOUBLE_EQ(sample->seconds, 0.2);
  EXPECT_EQ(sample->iterations, 10);
}

TEST(TrainingHistory, ARestartFromACheckpointIsNoSample) {
  TrainingHistory history;
  history.add(at(0), 0);
  history.add(at(100), 10);
  history.begin_attempt();
  EXPECT_FALSE(history.add(at(50), 1000).has_value());  // the first of its attempt
  EXPECT_EQ(history.figures(1000).iterations, 50);
  EXPECT_FALSE(
      history.add(at(40), 1001).has_value());  // and one that goes back says nothing either
  EXPECT_TRUE(history.add(at(60), 1002).has_value());
}

TEST(TrainingHistory, KeepsTheLossOfEachWholeEpoch) {
  TrainingHistory history;
  EXPECT_FALSE(history.report().has_value());
  history.add(at(0, 2.0, 0.0), 0);
  history.add(at(5, 1.5, 0.5), 1);
  history.add(at(10, 1.0, 1.0), 2);
  history.add(at(35, 0.5, 3.5), 3);  // reports were lost in between
  std::vector<double> losses;
  history.losses(0, losses);
  EXPECT_EQ(losses, (std::vector<double>{2.0, 1.0, 0.5, 0.5}));
  losses.clear();
  history.losses(3, losses);
  EXPECT_EQ(losses, (std::vector<double>{0.5}));
  ASSERT_TRUE(history.report().has_value());
  EXPECT_DOUBLE_EQ(history.report()->epochs, 3.5);
  EXPECT_DOUBLE_EQ(history.report()->loss, 0.5);
  history.add(at(36, 0.4, 1e300), 4);  // nobody trains so long
  losses.clear();
  history.losses(0, losses);
  EXPECT_LE(losses.size(), 100'000U);
}

TEST(SteadySpeed, DiscardsTheChangeAndTheWarmUp) {
  SteadySpeed speed;
  speed.add(9, 3);                              // holds the change
  for (int i = 0; i < 5; ++i) speed.add(5, 1);  // warm-up
  for (int i = 0; i < 19; ++i) speed.add(0.5, 1);
  EXPECT_FALSE(speed.seconds().has_value());  // 19 of 20
  speed.add(7, 1);                            // a straggler
  EXPECT_EQ(speed.seconds(), 0.5);
  speed.restart();
  EXPECT_FALSE(speed.seconds().has_value());
}

TEST(SteadySpeed, HalfAMinuteIsEnoughForSlowIterations) {
  SteadySpeed speed;
  speed.add(40, 1);
  speed.add(40, 1);  // warm-up
  speed.add(40, 1);
  EXPECT_EQ(speed.seconds(), 40);
}

TEST(SteadySpeed, MedianOfAnEvenCountIsBetweenTheMiddleTwo) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({5, 1, 3}), 3);
}

}  // namespace
}  // namespace berth
