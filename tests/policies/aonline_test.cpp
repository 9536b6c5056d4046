// A_online in the engine: windows, late jobs, long jobs, types.
#include <gtest/gtest.h>

#include "support/run.h"
#include "support/scaling_models.h"
#include "support/slotted.h"

namespace berth::test {
namespace {

Scenario aonline_on(const std::string& cluster, std::vector<JobSpec> jobs,
                    const Settings& more = {}) {
  return slotted("aonline", cluster, std::move(jobs), more);
}

/// a, b, c, d of the worked example; sizes 1, 2, 4 are offered for all of them.
std::vector<JobSpec> example() {
  return {{.submit = 0, .gpus = 2, .duration = 1, .weight = 3},
          {.submit = 0, .gpus = 2, .duration = 2, .weight = 6},
          {.submit = 1, .gpus = 4, .duration = 2, .weight = 5},
          {.submit = 1, .gpus = 1, .duration = 1, .weight = 1}};
}
const Settings kPlainWindows{{"early", "off"}, {"origin", "off"}};

TEST(Aonline, WorkedExampleExactly) {
  const Outcome outcome = run(aonline_on("1x4", example(), kPlainWindows));
  EXPECT_EQ(outcome.finish, (std::vector<double>{5, 2, 4, 5}));
  EXPECT_EQ(outcome.start, (std::vector<double>{4, 1, 2, 4}));
}

TEST(Aonline, WorkedExampleByPrices) {
  Settings settings = kPlainWindows;
  settings.emplace_back("exact_jobs", "0");
  const Outcome outcome = run(aonline_on("1x4", example(), settings));
  EXPECT_EQ(outcome.finish, (std::vector<double>{2, 3, 6, 2}));
}

TEST(Aonline, AnIdleClusterStartsAJobAtOnce) {
  const Outcome outcome = run(aonline_on("1x4", {{.submit = 0.3, .gpus = 4, .duration = 5}}));
  EXPECT_DOUBLE_EQ(outcome.start[0], 0.3);  // windows of 1, 2 and 4 slots hold nobody: the next
  EXPECT_DOUBLE_EQ(outcome.finish[0], 5.3);
}

TEST(Aonline, WindowsBeginSmallAgainOnceTheClusterWasEmpty) {
  // The first ends at 8 s. The second, at 20 s, and the third, at 20.5 s: had the windows grown on,
  // the third would wait for the end of a long one; as it is it waits for the second to end.
  const std::vector<JobSpec> jobs{{.gpus = 4, .duration = 8},
                                  {.submit = 20, .gpus = 2, .duration = 1},
                                  {.submit = 20.5, .gpus = 2, .duration = 1}};
  const Settings late{{"early", "off"}, {"elastic", "declared"}};
  EXPECT_EQ(run(aonline_on("1x4", jobs, late)).start, (std::vector<double>{7, 20, 21}));
  Settings growing = late;
  growing.emplace_back("origin", "off");
  // Windows [8, 16), [16, 32), [32, 64): both wait for 32 s.
  EXPECT_EQ(run(aonline_on("1x4", jobs, growing)).start, (std::vector<double>{8, 32, 32}));
}

TEST(Aonline, ALateJobKeepsItsGpusAndThePlanShifts) {
  // In one window: the first for two slots, then the second. The first takes three.
  Scenario scenario = aonline_on("1x4",
                                 {{.gpus = 4, .duration = 3, .estimate = 2, .weight = 5},
                                  {.gpus = 4, .duration = 2, .estimate = 2},
                                  {.gpus = 4, .duration = 20, .estimate = 20}},
                                 {{"elastic", "declared"}, {"early", "off"}, {"origin", "off"}});
  scenario.estimator = "limit";
  const Outcome outcome = run(scenario);
  // [2, 4) holds the first; it is late until 5. In [4, 8) the second is planned behind it.
  EXPECT_DOUBLE_EQ(outcome.finish[0], 5);
  EXPECT_GE(outcome.start[1], 5);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(Aonline, AJobLongerThanTheLongestWindowRunsOn) {
  const std::vector<JobSpec> jobs{{.gpus = 4, .duration = 30}, {.submit = 1, .gpus = 4}};
  const Outcome outcome =
      run(aonline_on("1x4", jobs, {{"elastic", "declared"}, {"max_window", "4"}}));
  EXPECT_EQ(outcome.finish, (std::vector<double>{30, 31}));
}

TEST(Aonline, OrIsRefusedWithItsNumbers) {
  const Outcome outcome =
      run(aonline_on("1x4", {{.gpus = 4, .duration = 30}},
                     {{"elastic", "declared"}, {"max_window", "4"}, {"too_long", "reject"}}));
  ASSERT_EQ(outcome.state[0], JobState::Rejected);
  EXPECT_NE(outcome.rejected[0].find("needs 30 slots"), std::string::npos) << outcome.rejected[0];
}

TEST(Aonline, ANarrowerSizeMakesRoomForMoreWeight) {
  // Two jobs of two GPU-slots each on two GPUs: one after the other on both GPUs, never slower.
  const Outcome outcome =
      run(aonline_on("1x2", {{.gpus = 2, .duration = 1}, {.gpus = 2, .duration = 1}}));
  EXPECT_EQ(outcome.finish, (std::vector<double>{1, 2}));
}

TEST(Aonline, GoesToTheTypeOnWhichItIsDoneInTime) {
  Scenario scenario = aonline_on("1x4:v100,1x4:a100",
                                 {{.gpus = 4, .duration = 4, .type = "v100|a100"},
                                  {.gpus = 4, .duration = 4, .type = "v100|a100"}},
                                 {{"elastic", "declared"}});
  scenario.effects.device = true;
  const Outcome outcome = run(scenario);
  const double sum = outcome.finish[0] + outcome.finish[1];
  EXPECT_LT(sum, 8);    // one of them is on the faster type
  EXPECT_GE(sum, 4.1);  // and the other is not
}

TEST(Aonline, JobsOfALostNodeJoinTheNextBatch) {
  Scenario scenario = aonline_on("2x4", {{.gpus = 4, .duration = 6}, {.gpus = 4, .duration = 6}},
                                 {{"elastic", "declared"}});
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(2), seconds_to_time(100)}};
  const Outcome outcome = run(scenario);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
  EXPECT_GE(std::max(outcome.finish[0], outcome.finish[1]), 10);
}

}  // namespace
}  // namespace berth::test
