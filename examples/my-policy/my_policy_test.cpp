// What every policy owes its users, checked on yours: no device twice, gangs whole, work conserved,
// every feasible job ends, the same bytes again.
#include "my_policy.h"

#include <gtest/gtest.h>

#include "support/policy_suite.h"
#include "support/run.h"

namespace {

std::unique_ptr<berth::Policy> make() { return std::make_unique<my::LeastServedUser>(); }

TEST(LeastServedUser, IsSound) { berth::test::expect_sound(make); }

TEST(LeastServedUser, LetsTheUserWithoutServiceGoFirst) {
  berth::test::Scenario scenario{.cluster = "1x1", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 10, .user = "ann"},
                   {.submit = 1, .gpus = 1, .duration = 10, .user = "ann"},
                   {.submit = 2, .gpus = 1, .duration = 10, .user = "bob"}};
  const auto policy = make();
  const berth::test::Outcome outcome = berth::test::run_with(scenario, *policy);
  EXPECT_EQ(outcome.start[2], 10) << "bob has had nothing yet";
  EXPECT_EQ(outcome.start[1], 20);
}

}  // namespace
