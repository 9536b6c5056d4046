// Another policy takes over what runs. Nobody waits, so nobody has to make room: no policy of the
// registry stops, moves or resizes a job because it has come to power.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/live_world.h"
#include "support/registry_scenario.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

using LiveSpec = berth::JobSpec;

/// They fit side by side; some agree to other sizes than the one they have.
std::vector<LiveSpec> fitting_jobs(Rng& rng, std::int32_t devices) {
  std::vector<LiveSpec> jobs;
  while (devices > 0 && jobs.size() < 3) {
    const std::int32_t gpus = std::min<std::int32_t>(devices, 1 << rng.below(3));
    LiveSpec spec = spec_of({"run", fmt::format("{:.6f}", 300 + 100 * rng.uniform())}, gpus);
    spec.key = fmt::format("job-{}", jobs.size());
    spec.user = fmt::format("u{}", rng.below(2));
    spec.model = rng.below(2) == 0 ? "resnet50" : "";
    if (rng.below(3) > 0) {
      spec.gpus_min = 1;
      spec.gpus_max = gpus;
    }
    devices -= gpus;
    jobs.push_back(std::move(spec));
  }
  return jobs;
}

class TakesOver : public ::testing::TestWithParam<std::string> {};

TEST_P(TakesOver, AndDisturbsNobodyWhileNobodyWaits) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng = Rng{seed}.fork("takeover");
    WorldOptions options;
    options.cluster = seed % 2 == 0 ? "1x4" : "2x4";
    options.seed = seed;
    options.deadline = 100'000;
    options.scheduling.policy = {"fifo", {}};
    options.scheduling.min_run = 0;  // which would hide it
    options.scheduling.spare_slots = 64;
    options.host.device_limit = (*make_policy(GetParam()))->traits().shares_devices ? 8 : 1;
    LiveWorld world{options};
    std::vector<JobNumber> jobs;
    for (const LiveSpec& spec : fitting_jobs(rng, seed % 2 == 0 ? 4 : 8))
      world.at(rng.uniform(), [&world, &jobs, spec](LiveService& service) {
        jobs.push_back(world.submit(service, spec));
      });
    const double at = 5 + 100 * rng.uniform();
    world.at(at,
             [](LiveService& service) { ASSERT_TRUE(service.set_policy(kRoot, GetParam(), {})); });
    world.at(at + 1, [&](LiveService&) {
      for (const JobNumber job : jobs)
        EXPECT_EQ(world.host().disturbances(job), 0) << "seed " << seed << ", job " << job;
    });
    world.run();
    ASSERT_EQ(world.violations(), std::vector<std::string>{}) << "seed " << seed;
    if (HasFailure()) {
      for (const std::string& act : world.acts()) fmt::print("{}\n", act);
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, TakesOver, ::testing::ValuesIn(all_policies()), kByName);

}  // namespace
}  // namespace berth::test
