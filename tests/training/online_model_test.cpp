// Synthetic jobs that obey a known curve: what the model asks for, and how well it then knows them.
#include "training/online_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace berth {
namespace {

/// A worker whose data loading keeps up with the GPU from `theta` cores on.
struct Worker {
  std::int32_t theta = 8;
  double plateau = 160;  // samples a second
  double noise = 0.02;   // deviation of one report, relative
  std::int64_t batch = 32;
  std::int32_t sub_steps = 1;

  [[nodiscard]] double speed(double cores) const {
    const auto shape = [](double c) { return std::log(c) + 0.2 * c; };
    return cores >= theta ? plateau : plateau * shape(cores) / shape(theta);
  }
};

struct Training {
  OnlineModel model;
  Rng rng{7};
  double now = 0;

  /// Trains with these cores until the model has learned something, or for so many reports.
  bool train(JobNumber job, const Worker& worker, double cores, int most = 200) {
    model.set_cores(job, cores);
    static_cast<void>(model.take_changed());
    for (int i = 0; i < most; ++i) {
      const double exact = static_cast<double>(worker.batch) / worker.speed(cores);
      double seconds = exact * (1 + worker.noise * (rng.uniform() + rng.uniform() - 1));
      if (i % 17 == 3) seconds *= 4;  // somebody wrote a log file
      now += seconds * 2;
      model.add(job,
                {.seconds = seconds,
                 .iterations = 2,
                 .batch = static_cast<double>(worker.batch),
                 .sub_steps = worker.sub_steps},
                now);
      const bool learned = !model.take_changed().empty();
      if (learned && i > 3) return true;  // before, it only began to speak
    }
    return false;
  }
  /// What the tuner does. Answers how many core counts were tried.
  int profile(JobNumber job, const Worker& worker, std::int32_t most) {
    train(job, worker, most, 4);  // it begins to speak
    int tried = 0;
    while (const auto cores = model.probe(job, most, now)) {
      EXPECT_TRUE(train(job, worker, *cores)) << *cores << " cores";
      if (++tried > 20) break;
    }
    return tried;
  }
};

/// The fewest cores with at least 95 % of the best speed, by the truth.
std::int32_t fewest_that_do(const Worker& worker) {
  std::int32_t cores = 1;
  while (worker.speed(cores) < 0.95 * worker.plateau) ++cores;
  return cores;
}

TEST(OnlineModel, FindsTheSweetPointInFewSteps) {
  for (const std::int32_t most : {8, 16, 24, 64}) {
    for (std::int32_t theta = 1; theta <= most; theta = theta < 4 ? theta + 1 : theta + 3) {
      Training run;
      const Worker worker{.theta = theta};
      run.model.begin(1, "", 1, 0);
      const int tried = run.profile(1, worker, most);
      EXPECT_LE(tried, 6) << "theta " << theta << " of " << most;
      const auto curve = run.model.curve(1);
      ASSERT_TRUE(curve.has_value());
      EXPECT_GE(worker.speed(curve->theta), 0.95 * worker.plateau)
          << "theta " << theta << " of " << most << ", found " << curve->theta;
      // Little more than it takes: six points do not tell every core of a large server apart.
      EXPECT_LE(curve->theta, theta + std::max(2, most / 16))
          << "theta " << theta << " of " << most;
      EXPECT_GE(curve->theta, fewest_that_do(worker) - 1);
      EXPECT_NEAR(*run.model.seconds_per_iteration(1, most), 32 / worker.speed(most),
                  0.05 * 32 / worker.speed(most));
    }
  }
}

TEST(OnlineModel, TwoCoresAreADesignToo) {
  Training run;
  run.model.begin(1, "", 1, 0);
  const Worker hungry{.theta = 4};
  EXPECT_EQ(run.profile(1, hungry, 2), 2);
  EXPECT_EQ(run.model.curve(1)->theta, 2);
  run.model.begin(2, "", 1, 0);
  EXPECT_EQ(run.profile(2, {.theta = 1}, 2), 2);
  EXPECT_EQ(run.model.curve(2)->theta, 1);
}

TEST(OnlineModel, SaysNothingOfJobsThatSayNothing) {
  OnlineModel model;
  model.set_cores(1, 4);
  EXPECT_FALSE(model.probe(1, 24, 0).has_value());
  EXPECT_FALSE(model.curve(1).has_value());
  EXPECT_FALSE(model.seconds_per_iteration(1, 2).has_value());
}

TEST(OnlineModel, LearnsNothingWhileCoresAreNotBound) {
  Training run;
  run.model.begin(1, "", 1, 0);
  EXPECT_FALSE(run.train(1, {}, 0));
}

TEST(OnlineModel, RemembersAModelByItsName) {
  Training run;
  const Worker worker{.theta = 6};
  run.model.begin(1, "ResNet", 1, 0);
  run.profile(1, worker, 24);
  const CpuCurve known = *run.model.curve(1);
  run.model.forget(1);

  run.model.begin(2, "ResNet", 1, run.now);
  EXPECT_EQ(run.profile(2, worker, 24), 0);
  EXPECT_EQ(*run.model.curve(2), known);

  run.model.begin(3, "ResNet", 1, run.now + 8 * 86'400);  // after a week it is looked at anew
  EXPECT_GT(run.profile(3, worker, 24), 0);
}

TEST(OnlineModel, AJobThatChangedItsWaysIsMeasuredAgain) {
  Training run;
  Worker worker{.theta = 6};
  run.model.begin(1, "", 1, 0);
  run.profile(1, worker, 24);
  worker.plateau /= 2;  // the same curve, half as high: larger pictures
  EXPECT_TRUE(run.train(1, worker, 6));
  const auto again = run.model.probe(1, 24, run.now);
  ASSERT_EQ(again, 7);
  EXPECT_TRUE(run.train(1, worker, *again));
  EXPECT_FALSE(run.model.probe(1, 24, run.now).has_value());
  EXPECT_NEAR(run.model.curve(1)->plateau, 80, 4);
}

TEST(OnlineModel, ANewSubBatchNeedsItsPlateauOnly) {
  Training run;
  Worker worker{.theta = 12};
  run.model.begin(1, "", 1, 0);
  const int first = run.profile(1, worker, 24);
  // Accumulating makes the GPU slower: fewer cores feed it, along the same curve.
  const Worker whole = worker;
  worker.sub_steps = 4;
  worker.theta = 6;
  worker.plateau = whole.speed(6);
  const int second = run.profile(1, worker, 24);
  EXPECT_LE(second, first);
  EXPECT_GE(worker.speed(run.model.curve(1)->theta), 0.95 * worker.plateau);
}

TEST(OnlineModel, GivesUpACoreCountAtWhichTheJobGoesSilent) {
  Training run;
  run.model.begin(1, "", 1, 0);
  const Worker worker{.theta = 6};
  run.train(1, worker, 24, 4);
  const auto first = run.model.probe(1, 24, run.now);
  ASSERT_EQ(first, 24);
  EXPECT_EQ(run.model.probe(1, 24, run.now + 100), 24);
  EXPECT_NE(run.model.probe(1, 24, run.now + 121), 24);
}

}  // namespace
}  // namespace berth
