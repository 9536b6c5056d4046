// What is believed of what training code says of its progress, and what never is.
#include <gtest/gtest.h>

#include "training/progress.h"

namespace berth::test {
namespace {

Report at(std::int64_t iteration) {
  Report report;
  report.iteration = iteration;
  return report;
}
Report with_seconds(std::int64_t iteration, double seconds) {
  Report report = at(iteration);
  report.seconds = seconds;
  return report;
}
Report with_epoch(std::int64_t iteration, double epoch) {
  Report report = at(iteration);
  report.epoch = epoch;
  return report;
}

/// Ten iterations a second, reported once a second from `begin` on.
void train(ProgressMeter& meter, double begin, int seconds, std::int64_t first, int per_second) {
  for (int i = 0; i <= seconds; ++i)
    EXPECT_EQ(meter.add(at(first + std::int64_t{per_second} * i), begin + i), std::nullopt);
}

TEST(ProgressMeter, MeasuresThePaceOfTheClockOnTheWall) {
  ProgressMeter meter;
  EXPECT_FALSE(meter.measured(0));
  train(meter, 100, 2, 500, 10);
  EXPECT_EQ(meter.measured(102)->per_second, 0);  // two stretches are anybody's guess
  train(meter, 103, 7, 530, 10);
  const auto progress = meter.measured(111);
  EXPECT_DOUBLE_EQ(progress->per_second, 10);
  EXPECT_EQ(progress->iterations, 600);
  EXPECT_DOUBLE_EQ(progress->seconds_ago, 1);
  EXPECT_DOUBLE_EQ(progress->first_seconds_ago, 11);
}

// because a checkpoint of ten seconds is no slow training
TEST(ProgressMeter, APauseIsNoOtherPace) {
  ProgressMeter meter;
  train(meter, 0, 10, 0, 10);
  train(meter, 20, 10, 110, 10);  // ten seconds of nothing: the mean is 7
  EXPECT_DOUBLE_EQ(meter.measured(30)->per_second, 10);
}

// The scheduler did not get a processor for ten seconds and hears all of it in one moment.
TEST(ProgressMeter, ReportsThatAreHeardTogetherAreNoNonsense) {
  ProgressMeter meter;
  for (int i = 0; i <= 20; ++i) EXPECT_EQ(meter.add(with_seconds(10 * i, 1), i), std::nullopt);
  EXPECT_EQ(meter.add(with_seconds(210, 1), 31), std::nullopt);
  EXPECT_EQ(meter.add(with_seconds(260, 5), 31), std::nullopt);
  EXPECT_EQ(meter.add(with_seconds(300, 4), 31), std::nullopt);
  EXPECT_TRUE(meter.is_believed());
  EXPECT_NE(meter.add(with_seconds(310, 60), 31), std::nullopt);  // more than has passed since ever
}

// because the pace beside nobody says nothing of the pace beside somebody
TEST(ProgressMeter, OtherConditionsAreMeasuredAnew) {
  ProgressMeter meter;
  train(meter, 0, 10, 0, 10);
  meter.conditions_changed();
  EXPECT_EQ(meter.measured(10)->per_second, 0);
  EXPECT_EQ(meter.measured(10)->iterations, 100);
  train(meter, 11, 10, 105, 5);
  EXPECT_DOUBLE_EQ(meter.measured(21)->per_second, 5);
}

TEST(ProgressMeter, AnAttemptMayBeginAtItsCheckpoint) {
  ProgressMeter meter;
  train(meter, 0, 10, 1000, 10);
  meter.begin_attempt();
  EXPECT_FALSE(meter.measured(10));
  EXPECT_EQ(meter.add(at(480), 20), std::nullopt);
  EXPECT_EQ(meter.measured(20)->iterations, 480);
  meter.reconnect();  // the same attempt, a wrapper that began its program anew
  EXPECT_EQ(meter.add(at(470), 21), std::nullopt);
  EXPECT_TRUE(meter.is_believed());
}

TEST(ProgressMeter, WhatCannotBeIsNeverBelieved) {
  const auto verdict = [](const Report& report) {
    ProgressMeter meter;
    EXPECT_EQ(meter.add(with_epoch(100, 2), 0), std::nullopt);
    const auto fault = meter.add(report, 1);
    EXPECT_EQ(meter.is_believed(), !fault);
    EXPECT_EQ(meter.measured(1).has_value(), !fault);
    EXPECT_EQ(meter.add(at(110), 2), std::nullopt);  // said once
    EXPECT_EQ(meter.is_believed(), !fault);
    return fault.value_or("");
  };
  EXPECT_EQ(verdict(at(101)), "");
  EXPECT_NE(verdict(at(99)), "");                     // backwards
  EXPECT_NE(verdict(at(100 + 1'000'000)), "");        // a million a second
  EXPECT_NE(verdict(at(std::int64_t{1} << 53)), "");  // as many as fit
  EXPECT_NE(verdict(with_seconds(101, 1e9)), "");     // more seconds than have passed
  EXPECT_NE(verdict(with_seconds(200, 1e-9)), "");
  EXPECT_NE(verdict(with_epoch(101, 1e300)), "");
  EXPECT_NE(verdict(with_epoch(101, 1.0)), "");
  EXPECT_NE(verdict(with_epoch(101, 1e5)), "");
}

TEST(ProgressMeter, MemoryIsBounded) {
  ProgressMeter meter;
  for (int i = 0; i < 100'000; ++i) EXPECT_EQ(meter.add(at(i), 0.01 * i), std::nullopt);
  EXPECT_NEAR(meter.measured(1000)->per_second, 100, 1);
}

}  // namespace
}  // namespace berth::test
