#include "metrics/timeline.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace berth {
namespace {

double integral(const std::vector<TimelinePoint>& points, double Levels::*level) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    sum += points[i].levels.*level * to_seconds(points[i + 1].at - points[i].at);
  }
  return sum;
}

TEST(Timeline, KeepsAFewInstantsAsTheyAre) {
  Timeline timeline;
  timeline.add(seconds_to_time(0), {.queue = 2});
  timeline.add(seconds_to_time(5), {.queue = 9});
  timeline.add(seconds_to_time(5), {.queue = 1});  // the last word of an instant counts
  timeline.add(seconds_to_time(8), {.queue = 0});
  const auto points = timeline.points();
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].levels.queue, 2);
  EXPECT_EQ(points[1].at, seconds_to_time(5));
  EXPECT_EQ(points[1].levels.queue, 1);
  EXPECT_EQ(points[2].at, seconds_to_time(8));
}

TEST(Timeline, StaysSmallAndKeepsItsIntegral) {
  Timeline timeline;
  Rng rng{7};
  double now = 0, queue = 0, busy = 0, queue_sum = 0, busy_sum = 0;
  for (int i = 0; i < 200'000; ++i) {
    timeline.add(seconds_to_time(now), {.queue = queue, .busy = busy});
    const auto span =
        static_cast<double>(rng.below(50));  // zero now and then: the same instant again
    queue_sum += queue * span;
    busy_sum += busy * span;
    now += span;
    queue = static_cast<double>(rng.below(1000));
    busy = static_cast<double>(rng.below(64));
    if (span == 0) timeline.add(seconds_to_time(now), {.queue = queue, .busy = busy});
  }
  timeline.add(seconds_to_time(now), {});
  const auto points = timeline.points();
  EXPECT_LE(points.size(), Timeline::kMaxPoints + 2);
  EXPECT_GE(points.size(), Timeline::kMaxPoints / 5);
  EXPECT_NEAR(integral(points, &Levels::queue) / queue_sum, 1, 1e-9);
  EXPECT_NEAR(integral(points, &Levels::busy) / busy_sum, 1, 1e-9);

  const auto fewer = thinned(points, 500);
  EXPECT_LE(fewer.size(), 500U);
  EXPECT_EQ(fewer.front().at, points.front().at);
  EXPECT_EQ(fewer.back().at, points.back().at);
  EXPECT_NEAR(integral(fewer, &Levels::queue) / queue_sum, 1, 1e-9);
}

TEST(Timeline, KeepsQuietTimesExactBesideABusyOne) {
  Timeline timeline;
  for (int i = 0; i <= 100'000; ++i)
    timeline.add(seconds_to_time(i), {.busy = static_cast<double>(i % 8)});
  timeline.add(seconds_to_time(200'000), {.busy = 3});  // then two steps of more than a day
  timeline.add(seconds_to_time(300'000), {.busy = 0});
  const auto points = thinned(timeline.points(), 200);
  ASSERT_LE(points.size(), 200U);
  EXPECT_EQ(points.back().at, seconds_to_time(300'000));
  const auto& step = points[points.size() - 2];
  EXPECT_EQ(step.at, seconds_to_time(200'000));
  EXPECT_DOUBLE_EQ(step.levels.busy, 3);
}

}  // namespace
}  // namespace berth
