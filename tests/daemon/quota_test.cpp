// Limits by GPUs, jobs and GPU time hold under any policy; a budget that is spent opens again when
// use has been forgotten.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/live_world.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

JobSpec of_ann(const char* seconds, std::int32_t gpus) {
  JobSpec spec = spec_of({"run", seconds}, gpus);
  spec.user = "ann";
  spec.group = "ml";
  return spec;
}

class Quotas : public ::testing::TestWithParam<std::string> {
 protected:
  LiveWorld world{{.cluster = "2x4", .scheduling = {.policy = {.policy = GetParam()}}}};
  std::vector<JobNumber> jobs;

  void limit(const ShareView& share) {
    world.at(0.5, [share](LiveService& service) { ASSERT_TRUE(service.set_share(kRoot, share)); });
  }
  void submit(double at, int count, const char* seconds, std::int32_t gpus) {
    world.at(at, [=, this](LiveService& service) {
      for (int i = 0; i < count; ++i) jobs.push_back(world.submit(service, of_ann(seconds, gpus)));
    });
  }
  /// Most GPUs and jobs of these at one time, from their first and only attempts.
  std::pair<std::int32_t, std::int32_t> most() {
    std::pair<std::int32_t, std::int32_t> most{0, 0};
    for (const JobNumber one : jobs) {
      const std::int64_t at = world.over().at(one).started;
      std::int32_t gpus = 0, count = 0;
      for (const JobNumber other : jobs) {
        const JobView& view = world.over().at(other);
        EXPECT_EQ(view.attempts, 1);
        if (view.started > at || view.ended <= at) continue;
        gpus += view.spec->gpus;
        ++count;
      }
      most = {std::max(most.first, gpus), std::max(most.second, count)};
    }
    return most;
  }
  void run() {
    world.run();
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
  }
};

TEST_P(Quotas, GpusOfAUser) {
  limit({.kind = "user", .name = "ann", .gpu_limit = 3});
  submit(1, 6, "10", 1);
  submit(2, 3, "10", 2);
  run();
  EXPECT_EQ(most().first, 3);
}

TEST_P(Quotas, JobsOfAGroup) {
  limit({.kind = "group", .name = "ml", .job_limit = 2});
  submit(1, 6, "10", 1);
  run();
  EXPECT_EQ(most().second, 2);
}

TEST_P(Quotas, GpuTimeOfAUserUntilItIsForgotten) {
  // 100 GPU-seconds are allowed; the first job uses 2 x 100. Nothing more starts until the half
  // life of a week has passed and they count 100.
  limit({.kind = "user", .name = "ann", .gpu_seconds_limit = 100});
  submit(1, 1, "100", 2);
  submit(50, 1, "10", 1);   // the budget is not spent yet: use counts when an attempt ends
  submit(200, 1, "10", 1);  // 210 are used now
  world.at(300, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, jobs.at(2))->state, LiveState::Blocked);
  });
  run();
  const auto waited =
      static_cast<double>(world.over().at(jobs.at(2)).started - world.over().at(jobs.at(0)).ended) *
      1e-6;
  const double week = 7 * 86'400.0;
  EXPECT_NEAR(waited, week * 1.07, 0.01 * week);  // log2(210 / 100) = 1.07
}

TEST_P(Quotas, WhoIsInLineLeavesItWhenTheBudgetIsSpent) {
  // Four gangs of the whole cluster at once, each of 8 x 20 = 160 GPU-seconds.
  limit({.kind = "group", .name = "ml", .gpu_seconds_limit = 100});
  submit(1, 4, "20", 8);
  world.at(60, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, jobs.at(0))->state, LiveState::Completed);
    for (std::size_t i = 1; i < 4; ++i)
      EXPECT_EQ(service.job(kRoot, jobs.at(i))->state, LiveState::Blocked);
  });
  run();
  EXPECT_EQ(most().second, 1);
}

INSTANTIATE_TEST_SUITE_P(Policies, Quotas,
                         ::testing::Values("fifo", "easy", "fair-share", "srtf", "drf"), kByName);

}  // namespace
}  // namespace berth::test
