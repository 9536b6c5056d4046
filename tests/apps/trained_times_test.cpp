#include "lab/reproduce/trained_times.h"

#include <gtest/gtest.h>

namespace berth::test {
namespace {

/// 100 samples a second on a V100 whatever the batch, half of that on a T4; nothing to synchronise.
Profile plain() {
  Profile profile;
  profile.name = "plain";
  profile.batch = 100;
  profile.iteration = {.alpha = 0, .beta = 0.01, .gradient_bytes = 0, .overlap = 1};
  profile.speeds = {{"t4", 0.5}};
  profile.batch_limits.most_per_gpu = 200;
  return profile;
}

constexpr TrainedOn kT4{.speed = 0.5, .link = {.bandwidth = 1e9, .latency = 0}};

// 1,000 s on one T4 are 50,000 samples.
TEST(TrainedTimes, AreTheNominalOnesWhereNothingIsLost) {
  EXPECT_NEAR(trained_seconds(plain(), 1000, 1, 100, kT4), 1000, 1e-9);
  EXPECT_NEAR(trained_seconds(plain(), 1000, 4, 400, kT4), 250, 1e-9);
  EXPECT_NEAR(trained_seconds(plain(), 1000, 1, 100, {.speed = 1, .link = kT4.link}), 500, 1e-9);
}

// Gradients of 0.5 GB over 1 GB/s: 2 (K-1)/K * 0.5 = 0.5 s for two GPUs, beside 2 s of computing
// 100 samples each: 500 iterations per 100,000 samples become 250 of 2.5 s.
TEST(TrainedTimes, GrowWithWhatSynchronisingCosts) {
  Profile profile = plain();
  profile.iteration.gradient_bytes = 0.5e9;
  EXPECT_NEAR(trained_seconds(profile, 1000, 2, 200, kT4), 250 * 2.5, 1e-6);
}

// M0 = 100. At noise scale 100 a sample in a batch of 300 is worth (100+100)/(100+300) = 1/2, at
// 300 it is (300+100)/(300+300) = 2/3: half the training at each, 0.5 * 2 + 0.5 * 1.5 = 1.75.
TEST(TrainedTimes, GrowWithWhatALargeBatchLosesOverTheTraining) {
  Profile profile = plain();
  profile.noise = {{0, 100}, {0.5, 300}};
  EXPECT_NEAR(trained_seconds(profile, 1000, 3, 300, kT4), 1000.0 / 3 * 1.75, 1e-6);
}

}  // namespace
}  // namespace berth::test
