// What every policy owes its users, and what this one is for.
#include "largest_gain.h"

#include <gtest/gtest.h>

#include "support/policy_suite.h"
#include "support/run.h"

namespace {

using std::chrono::seconds;

std::unique_ptr<berth::Policy> make() { return std::make_unique<my::LargestGain>(seconds{10}); }

TEST(LargestGain, IsSound) { berth::test::expect_sound(make); }

TEST(LargestGain, AJobGrowsIntoWhatIsFreeAndShrinksForANewcomer) {
  berth::test::Scenario scenario{.cluster = "1x4", .placement = "best-fit", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 200, .gpus_max = 4},
                   {.submit = 15, .gpus = 2, .duration = 20}};
  const auto policy = make();
  const berth::test::Outcome outcome = berth::test::run_with(scenario, *policy);
  EXPECT_EQ(outcome.start[0], 0);
  EXPECT_EQ(outcome.start[1], 20) << "at the first round after it came";
  EXPECT_LT(outcome.finish[0], 200) << "more GPUs make it faster";
  EXPECT_EQ(outcome.finish[1], 40) << "two of four GPUs are its own until its end";
}

}  // namespace
