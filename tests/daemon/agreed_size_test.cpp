// Elastic means agreed: under every policy only a job whose request gives a range is started with
// another number of devices than it asked for. The world itself writes down a violation otherwise
// (E1, as in all lives); here are the requests that tempt a policy to it.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/registry.h"
#include "support/live_world.h"
#include "support/random_life.h"
#include "support/suite_name.h"

namespace berth::test::agreed_size_tests {
namespace {

class AgreedSize : public ::testing::TestWithParam<std::string> {};

WorldOptions options_for(const std::string& policy) {
  WorldOptions options;
  options.cluster = "1x4";
  options.scheduling.policy = affordable(policy);
  // Whoever says "all" still speaks of traces only.
  const auto registry = policy_registry();
  const auto entry = std::ranges::find(registry, policy, &PolicyEntry::name);
  if (std::ranges::any_of(entry->params, [](const ParamSpec& p) { return p.key == "elastic"; }))
    options.scheduling.policy.settings.emplace_back("elastic", "all");
  options.host.device_limit = static_cast<std::int32_t>(kMaxSharers);
  options.deadline = 1e6;
  return options;
}

TEST_P(AgreedSize, ARigidJobHasItsOwnSizeWhateverThePolicyThinks) {
  LiveWorld world{options_for(GetParam())};
  std::vector<JobNumber> jobs;
  const auto submit = [&](double at, std::int32_t gpus, std::int32_t least, std::int32_t most) {
    world.at(at, [&, gpus, least, most](LiveService& service) {
      JobSpec spec = spec_of({"run", "900"}, gpus);
      spec.gpus_min = least;
      spec.gpus_max = most;
      spec.model = gpus == 4 ? "resnet50" : "";
      spec.estimate = 900;
      jobs.push_back(world.submit(service, spec));
    });
  };
  submit(1, 4, 0, 0);
  submit(10, 2, 0, 0);
  submit(400, 1, 0, 0);
  submit(500, 2, 1, 4);
  submit(1300, 4, 0, 0);
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
  ASSERT_EQ(jobs.size(), 5U);
  for (const JobNumber job : jobs) EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, AgreedSize, ::testing::ValuesIn(all_policies()), kByName);

}  // namespace
}  // namespace berth::test::agreed_size_tests
