// The clock of a live scheduler never stands where a policy wished: it wakes late by microseconds,
// by seconds, now and then by hours, and what it hears from training code may be late, missing or
// nonsense. Whatever that does to its decisions, under every policy of the registry every job that
// fits ends, and no device is held by two who may not share it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/policy_suite.h"
#include "support/registry_scenario.h"
#include "support/run.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

/// Rounds as long as the policy has them by default, jobs that are long beside them: where a policy
/// waits for its moment, that moment has to come.
Scenario with_default_periods(Scenario scenario) {
  const auto keeps = [](const auto& setting) {
    return setting.first == "unmet" || setting.first == "reject_to_besteffort" ||
           setting.first == "population" || setting.first == "generations" ||
           setting.first == "max_gpus";
  };
  std::erase_if(scenario.settings, [&](const auto& setting) { return !keeps(setting); });
  for (JobSpec& job : scenario.jobs) {
    job.submit *= 60;
    job.duration *= 60;
    if (job.deadline > 0) job.deadline *= 60;
  }
  return scenario;
}

/// As under `berth serve`.
Scenario with_live_defaults(Scenario scenario) {
  for (const ParamSpec& spec : (*find_policy(scenario.policy))->params) {
    const auto is_set = std::ranges::find(scenario.settings, spec.key, [](const auto& setting) {
                          return setting.first;
                        }) != scenario.settings.end();
    if (!spec.live_default.empty() && !is_set)
      scenario.settings.emplace_back(spec.key, spec.live_default);
  }
  return scenario;
}

class Unkind : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_all_end(Lateness lateness) const {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(fmt::format("seed {}", seed));
      Scenario scenario = scenario_for(GetParam(), seed);
      if (seed % 2 == 0) scenario = with_default_periods(std::move(scenario));
      if (seed % 4 >= 2) scenario = with_live_defaults(std::move(scenario));
      scenario.open = true;
      scenario.lateness = lateness;
      scenario.seed = seed;
      Auditor auditor;
      auditor.expect(**make_policy(GetParam()));
      const Outcome outcome = run(scenario, &auditor);
      for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
        ASSERT_EQ(outcome.state[i], JobState::Completed) << "job " << i + 1;
      ASSERT_FALSE(HasFailure());
    }
  }
};

TEST_P(Unkind, EveryJobEndsThoughTheClockIsLateByMicroseconds) {
  expect_all_end(Lateness::Microseconds);
}
TEST_P(Unkind, EveryJobEndsThoughTheClockIsLateBySeconds) { expect_all_end(Lateness::Seconds); }
TEST_P(Unkind, EveryJobEndsThoughTheClockIsLateByHours) { expect_all_end(Lateness::Hours); }

INSTANTIATE_TEST_SUITE_P(Registry, Unkind, ::testing::ValuesIn(all_policies()), kByName);

}  // namespace
}  // namespace berth::test
