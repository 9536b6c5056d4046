#include "lab/reproduce/replay_error.h"

#include <array>

#include <gtest/gtest.h>

#include "lab/reproduction.h"

namespace berth::test {
namespace {

TEST(ReplayError, IsZeroForTheSameTimes) {
  const std::array<double, 3> times{10, 20, 30};
  const ReplayError error = replay_error(times, times);
  EXPECT_EQ(error.per_job, 0);
  EXPECT_EQ(error.of_average, 0);
  EXPECT_NEAR(error.rank, 1, 1e-12);
}

// Ours 20, 20, 15 for 10, 20, 30: errors 1, 0 and 0.5; averages 55/3 and 20; ranks 1.5 1.5 0 and 0
// 1 2, whose covariance is -1.5 and whose variances are 1.5 and 2.
TEST(ReplayError, CountsJobsTheAverageAndTheOrder) {
  const std::array<double, 3> ours{20, 20, 15};
  const std::array<double, 3> measured{10, 20, 30};
  const ReplayError error = replay_error(ours, measured);
  EXPECT_NEAR(error.per_job, 0.5, 1e-12);
  EXPECT_NEAR(error.of_average, 55.0 / 60 - 1, 1e-12);
  EXPECT_NEAR(error.rank, -1.5 / 1.7320508075688772, 1e-9);
}

TEST(Verdict, IsByTheLowerEndOfWhatWasPublished) {
  EXPECT_EQ(judged(1.5, 1.43), Judgement::Reproduced);
  EXPECT_EQ(judged(1.2, 1.43), Judgement::InShape);
  EXPECT_EQ(judged(1.01, 1.43), Judgement::Missed);
  EXPECT_EQ(judged_everywhere(0.9, 20, 14.7), Judgement::InShape);
  EXPECT_EQ(judged_everywhere(1.1, 20, 14.7), Judgement::Reproduced);
  EXPECT_EQ(judged_everywhere(0.3, 0.9, 14.7), Judgement::Missed);
}

}  // namespace
}  // namespace berth::test
