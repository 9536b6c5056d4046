// Fits find what made the points, and say how far they are from those they have not seen.
#include "perf/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "perf/rate_function.h"

namespace berth {
namespace {

using testing::HasSubstr;

struct Truth {
  IterationParams params{.alpha = 0.03, .beta = 0.002, .gradient_bytes = 2e8, .overlap = 1.6};
  double t4 = 0.4;
};

double seconds(const Truth& truth, const StepPoint& point, const Link& link) {
  const double speed = point.device == "t4" ? truth.t4 : 1;
  const double compute = (truth.params.alpha + truth.params.beta * point.batch) / speed;
  return overlapped(compute, sync_time(truth.params.gradient_bytes, point.gpus, link),
                    truth.params.overlap, 0);
}

/// Two device types, three levels, gangs of 1 to 16, times off by `noise`.
std::vector<StepPoint> made_points(const Truth& truth, double noise, double rack_bandwidth = 5e9) {
  std::vector<StepPoint> points;
  Rng rng(3);
  Links links;
  links.rack = rack_bandwidth;
  for (const char* device : {"t4", "v100"}) {
    for (const std::int32_t gpus : {1, 2, 4, 8, 16}) {
      for (const double batch : {8.0, 16.0, 32.0, 64.0}) {
        const Level level = gpus == 1 ? Level::Device : gpus > 8 ? Level::Rack : Level::Server;
        StepPoint point{device, "here", gpus, level, batch, 0};
        point.seconds = seconds(truth, point, links.at(level)) * (1 + noise * rng.normal());
        points.push_back(point);
      }
    }
  }
  return points;
}

TEST(IterationFit, RecoversWhatMadeThePoints) {
  const Truth truth;
  const auto fit = fit_iteration(made_points(truth, 0), {});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->params.alpha, truth.params.alpha, 1e-5);
  EXPECT_NEAR(fit->params.beta, truth.params.beta, 1e-6);
  EXPECT_NEAR(fit->params.gradient_bytes, truth.params.gradient_bytes, 1e5);
  EXPECT_NEAR(fit->params.overlap, truth.params.overlap, 1e-3);
  ASSERT_EQ(fit->speeds.size(), 1U);
  EXPECT_EQ(fit->speeds[0].first, "t4");
  EXPECT_NEAR(fit->speeds[0].second, truth.t4, 1e-4);
  EXPECT_EQ(fit->reference, "v100");
  EXPECT_LT(fit->error.held_back, 1e-4);
  EXPECT_EQ(fit->error.held_back_points, 10);  // 40 points, each fourth
  EXPECT_EQ(fit->error.training_points, 30);
}

TEST(IterationFit, FindsTheLinkWhenTheGradientIsKnown) {
  const Truth truth;
  IterationFitOptions options;
  options.gradient_bytes = truth.params.gradient_bytes;
  const auto fit = fit_iteration(made_points(truth, 0, 1.2e9), options);
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->error.held_back, 1e-3);
  const auto rack = std::ranges::find(fit->links, Level::Rack, &LinkFit::level);
  ASSERT_NE(rack, fit->links.end());
  // All racks here have gangs of 16, so only the time itself is known, not which part is latency.
  EXPECT_NEAR(sync_time(truth.params.gradient_bytes, 16, rack->link),
              sync_time(truth.params.gradient_bytes, 16, {1.2e9, Links{}.rack_latency}), 0.01);
}

TEST(IterationFit, NoiseShowsInBothErrors) {
  const auto fit = fit_iteration(made_points(Truth{}, 0.05), {});
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->error.training, 0.01);
  EXPECT_LT(fit->error.training, 0.08);
  EXPECT_GT(fit->error.held_back, 0.01);
  EXPECT_LT(fit->error.held_back, 0.10);
}

TEST(IterationFit, DoesNotDependOnTheOrderOfPoints) {
  std::vector<StepPoint> points = made_points(Truth{}, 0.03);
  const auto forward = fit_iteration(points, {});
  std::ranges::reverse(points);
  const auto backward = fit_iteration(points, {});
  ASSERT_TRUE(forward && backward);
  EXPECT_EQ(forward->params.alpha, backward->params.alpha);
  EXPECT_EQ(forward->params.gradient_bytes, backward->params.gradient_bytes);
  EXPECT_EQ(forward->error.held_back, backward->error.held_back);
}

TEST(IterationFit, AFewWildPointsDoNotBendTheRest) {
  const Truth truth;
  std::vector<StepPoint> points = made_points(truth, 0);
  points[13].seconds *= 10;
  points[29].seconds *= 10;
  const auto fit = fit_iteration(points, {});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->params.beta, truth.params.beta, 0.15 * truth.params.beta);
}

TEST(IterationFit, OneBatchSizeCannotTellAlphaFromBeta) {
  const auto fit = fit_iteration({{"v100", "", 1, Level::Device, 32, 0.16}}, {});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->params.alpha, 0);
  EXPECT_NEAR(fit->params.beta, 0.005, 1e-9);  // 0.16 s / 32
  EXPECT_EQ(fit->params.overlap, IterationParams{}.overlap);
}

TEST(IterationFit, WithoutAV100TheDeviceCatalogueSetsTheScale) {
  // An A100 is twice a V100 in the device catalogue: 0.1 s there are 0.2 s of a V100.
  const auto fit = fit_iteration({{"a100", "", 1, Level::Device, 10, 0.1}}, {});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->reference, "a100");
  EXPECT_NEAR(fit->params.beta * 10, 0.2, 1e-9);
}

TEST(IterationFit, RefusesWhatIsNoMeasurement) {
  EXPECT_FALSE(fit_iteration({}, {}));
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    const auto fit = fit_iteration({{"v100", "", 1, Level::Device, 32, bad}}, {});
    ASSERT_FALSE(fit);
    EXPECT_THAT(fit.error().text(), HasSubstr("cannot be fitted"));
  }
  EXPECT_FALSE(fit_iteration({{"v100", "", 1, Level::Device, 0, 1}}, {}));
  EXPECT_FALSE(fit_iteration({{"v100", "", 0, Level::Device, 1, 1}}, {}));
}

TEST(LocalityFit, RecoversTheGradientFromSlowdowns) {
  const Links links;
  std::vector<LocalityPoint> points;
  for (const std::int32_t gpus : {2, 4, 8}) {
    for (const Level level : {Level::Rack, Level::CrossRack}) {
      const auto time = [&](Level at) {
        return overlapped(0.2, sync_time(528e6, gpus, links.at(at)), 2, 0);
      };
      points.push_back({gpus, level, time(Level::Server) / time(level)});
    }
  }
  const auto fit = fit_locality(points, {.compute = 0.2, .gradient_bytes = {}, .links = links});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->gradient_bytes, 528e6, 1e5);
  EXPECT_NEAR(fit->overlap, 2, 1e-3);
  EXPECT_LT(fit->error.training, 1e-5);

  const auto other = fit_locality(points, {.compute = {}, .gradient_bytes = 528e6, .links = links});
  ASSERT_TRUE(other);
  EXPECT_NEAR(other->compute, 0.2, 1e-3);
}

TEST(LocalityFit, RefusesWhatIsNoMeasurement) {
  EXPECT_FALSE(fit_locality({}, {}));
  EXPECT_FALSE(fit_locality({{1, Level::Rack, 0.9}}, {}));
  EXPECT_FALSE(fit_locality({{4, Level::Rack, 0}}, {}));
  EXPECT_FALSE(fit_locality({{4, Level::Rack, std::nan("")}}, {}));
}

PairPoint pair(const char* of, const char* beside, double slowdown) {
  return {.of = of, .beside = beside, .slowdown = slowdown};
}

TEST(PairFit, TakesTheGeometricMeanOfEachPairAndNothingBelowOne) {
  const auto fit =
      fit_pairs({pair("b", "a", 1.2), pair("a", "b", 2), pair("a", "b", 8), pair("b", "b", 0.9)});
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->rows.size(), 3U);  // in the order of names
  EXPECT_EQ(fit->rows[0].of, "a");
  EXPECT_NEAR(fit->rows[0].slowdown, 4, 1e-12);  // sqrt(2 * 8)
  EXPECT_EQ(fit->rows[0].points, 2);
  EXPECT_NEAR(fit->rows[1].slowdown, 1.2, 1e-12);
  EXPECT_EQ(fit->rows[2].slowdown, 1);
  EXPECT_EQ(fit->clipped, 1);
}

TEST(PairFit, RegressionFindsTheLineOfUtilisations) {
  std::vector<PairPoint> points;
  for (int i = 0; i < 20; ++i) {
    const double u = 0.4 + 0.02 * i;
    points.push_back({.of = "a",
                      .beside = "b",
                      .slowdown = 0.7 + 0.5 * (u + 0.5) + 0.1 * 0.3 * i,
                      .of_utilisation = u,
                      .beside_utilisation = 0.5,
                      .memory_utilisation = 0.3 * i});
  }
  points.push_back({.of = "a",
                    .beside = "b",
                    .slowdown = 0.7 + 0.5 * 1.5,
                    .of_utilisation = 1,
                    .beside_utilisation = 0.5});
  const auto fit = fit_pairs(points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->base, 0.7, 1e-6);
  EXPECT_NEAR(fit->compute, 0.5, 1e-6);
  EXPECT_NEAR(fit->memory, 0.1, 1e-6);
  EXPECT_LT(fit->regression.held_back, 1e-6);
  EXPECT_GT(fit->rule.held_back, 0.01);
}

TEST(PairFit, RefusesWhatIsNoMeasurement) {
  EXPECT_FALSE(fit_pairs({}));
  EXPECT_FALSE(fit_pairs({pair("a", "b", 0)}));
  EXPECT_FALSE(fit_pairs({pair("a", "b", -2)}));
  EXPECT_FALSE(fit_pairs({pair("a", "b", std::nan(""))}));
}

TEST(MemoryFit, SplitsFixedFromPerSample) {
  const auto fit = fit_memory({{32, 3000 + 32 * 50}, {64, 3000 + 64 * 50}, {128, 3000 + 128 * 50}});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->params.fixed_mib, 3000, 1e-6);
  EXPECT_NEAR(fit->params.per_sample_mib, 50, 1e-8);
  EXPECT_FALSE(fit_memory({}));
  EXPECT_FALSE(fit_memory({{32, -1}}));
}

TEST(MemoryFit, NeverSaysThatSamplesGiveMemoryBack) {
  const auto fit = fit_memory({{32, 4000}, {64, 3900}});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->params.per_sample_mib, 0);
  EXPECT_GT(fit->params.fixed_mib, 3900);
}

TEST(MemoryByFitting, TellsPairsThatFitFromThoseThatDoNot) {
  // Truth: "big" takes 6000 + 50 m, "small" 1000 + 10 m, and a device has 16 GiB.
  const auto need = [](const std::string& model, double batch) {
    return model == "big" ? 6000 + 50 * batch : 1000 + 10 * batch;
  };
  std::vector<FittingPoint> points;
  for (const std::string a : {"big", "small"}) {
    for (const std::string b : {"big", "small"}) {
      for (const double m : {16.0, 32.0, 64.0, 128.0}) {
        for (const double n : {16.0, 32.0, 64.0, 128.0})
          points.push_back({a, b, m, n, 16384, need(a, m) + need(b, n) <= 16384});
      }
    }
  }
  const NamedMemory known{"small", {1000, 10}};
  const auto fit = fit_memory_by_fitting(points, std::span(&known, 1));
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->models.size(), 1U);
  EXPECT_EQ(fit->models[0].model, "big");
  EXPECT_LT(fit->error.training, 0.05);
  EXPECT_LT(fit->error.held_back, 0.10);
}

TEST(NoiseFit, IsAStaircaseOfGeometricMeans) {
  // Fewer than eight points are all used.
  const auto fit = fit_noise({{0.1, 100}, {0.2, 400}, {0.4, 200}, {0.6, 1000}, {0.9, 4000}},
                             {.steps = 2, .first = 100, .most = 1600});
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->points.size(), 2U);
  EXPECT_EQ(fit->points[0].progress, 0);
  EXPECT_NEAR(fit->points[0].scale, 200, 1e-9);
  EXPECT_EQ(fit->points[1].progress, 0.5);
  EXPECT_NEAR(fit->points[1].scale, 2000, 1e-9);
  // In a batch of 400 a sample is worth (phi + 100) / (phi + 400).
  const auto worth = [](double phi) { return (phi + 100) / (phi + 400); };
  const double error =
      std::abs(worth(200) / worth(100) - 1) + std::abs(worth(200) / worth(400) - 1) +
      std::abs(worth(2000) / worth(1000) - 1) + std::abs(worth(2000) / worth(4000) - 1);
  EXPECT_NEAR(fit->error.training, error / 5, 1e-9);
}

TEST(NoiseFit, AnEmptyStepKeepsWhatWasBefore) {
  const auto fit = fit_noise({{0.05, 10}, {0.95, 1000}}, {.steps = 4});
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->points.size(), 2U);
  EXPECT_NEAR(noise_scale_at(fit->points, 0.7), 10, 1e-9);
  EXPECT_NEAR(noise_scale_at(fit->points, 0.75), 1000, 1e-9);
  EXPECT_FALSE(fit_noise({}, {}));
  EXPECT_FALSE(fit_noise({{0.5, -1}}, {}));
}

TEST(LinkSharing, DividingTheBandwidthExplainsWhatItMade) {
  std::vector<LinkPoint> points;
  for (const double bytes : {10e6, 20e6, 40e6}) {
    for (std::int32_t jobs = 1; jobs <= 4; ++jobs)
      points.push_back({jobs, bytes, 0.002 + bytes * jobs / 1e9});
  }
  const auto fit = check_link_sharing(points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->bandwidth, 1e9, 1);
  EXPECT_NEAR(fit->latency, 0.002, 1e-9);
  EXPECT_LT(fit->error.training, 1e-9);
  EXPECT_FALSE(check_link_sharing({{2, 1e6, 1}}));
}

TEST(ErrorMeter, HoldsBackEachFourthOfEightAndNothingOfSeven) {
  ErrorMeter eight(8);
  for (int i = 0; i < 8; ++i) eight.add(i % 4 == 3 ? 1.5 : 1.1, 1);
  EXPECT_EQ(eight.result().held_back_points, 2);
  EXPECT_NEAR(eight.result().held_back, 0.5, 1e-12);
  EXPECT_NEAR(eight.result().training, 0.1, 1e-12);
  ErrorMeter seven(7);
  for (int i = 0; i < 7; ++i) seven.add(1.1, 1);
  EXPECT_EQ(seven.result().held_back_points, 0);
  EXPECT_EQ(seven.result().training_points, 7);
}

}  // namespace
}  // namespace berth
