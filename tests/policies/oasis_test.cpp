// OASiS in the engine: who is accepted, how many GPUs in which slot, and what becomes of promises
// when jobs are early or late or nodes are lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "policies/common/parameter_servers.h"
#include "policies/oasis/slot_clock.h"
#include "policies/oasis/speed.h"
#include "support/run.h"
#include "support/scaling_models.h"
#include "support/slotted.h"

namespace berth::test {
namespace {

using oasis::demand_for;
using oasis::SlotClock;
using oasis::Speed;

/// Slots of a second, a soft utility, prices from the jobs.
Scenario oasis_on(const std::string& cluster, std::vector<JobSpec> jobs,
                  const Settings& more = {}) {
  return slotted("oasis", cluster, std::move(jobs), more);
}

const Settings kFixed{{"elastic", "declared"}};

/// Devices granted to a job over time: (second, GPUs), stops as 0.
class Sizes final : public Observer {
 public:
  explicit Sizes(std::uint32_t job) : job_(job) {}
  void append(Time now, const Action& action) override {
    if (action.job.value != job_) return;
    const bool stops = action.kind == ActionKind::Preempt || action.kind == ActionKind::Suspend;
    sizes.emplace_back(to_seconds(now), stops ? 0 : action.gpus);
  }
  std::vector<std::pair<double, int>> sizes;

 private:
  std::uint32_t job_;
};
using Changes = std::vector<std::pair<double, int>>;

TEST(OasisClock, SlotsLieOnAGridFromTimeZero) {
  SlotClock clock{std::chrono::seconds{10}};
  clock.start(seconds_to_time(25));
  EXPECT_EQ(clock.begin(0), seconds_to_time(20));
  EXPECT_EQ(clock.at(seconds_to_time(29.9)), 0);
  EXPECT_EQ(clock.first_whole(seconds_to_time(25)), 1);
  EXPECT_EQ(clock.first_whole(seconds_to_time(30)), 1);
  SlotClock before{std::chrono::seconds{10}};
  before.start(seconds_to_time(-5));
  EXPECT_EQ(before.begin(0), seconds_to_time(-10));
}

TEST(OasisSpeed, ProportionalWorkIsCountedInGpuSlots) {
  const auto demand = demand_for(7, {.range = {1, 3}, .per_slot = {2, 4, 6}}, {}, 128);
  EXPECT_TRUE(demand.is_linear());
  EXPECT_EQ(demand.units, 4);  // 3.5 GPU-slots
  EXPECT_EQ(demand.workers_for, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(OasisSpeed, AJobOfOneSizeIsOneWorker) {
  const auto demand = demand_for(7, {.range = {4, 4}, .per_slot = {2}}, {}, 128);
  EXPECT_TRUE(demand.is_linear());
  EXPECT_EQ(demand.units, 4);
  EXPECT_EQ(demand.worker, (oasis::Amounts{4}));
}

TEST(OasisSpeed, OtherWorkIsCutIntoPartsOfAFullSlot) {
  // Two GPUs do 1.5, three 1.8 and four 2 in a slot; four parts of 0.5 each.
  const Speed speed{.range = {1, 4}, .per_slot = {1, 1.5, 1.8, 2}};
  const auto demand = demand_for(3, speed, {}, 2);
  EXPECT_EQ(demand.workers_for, (std::vector<std::int64_t>{0, 1, 1, 2, 4}));
  EXPECT_EQ(demand.units, 6);  // a slot and a half at full size
}

TEST(ParameterServersRule, AreNoMoreThanWorkers) {
  EXPECT_EQ((ParameterServers{}.count_for(8)), 0);
  EXPECT_EQ((ParameterServers{.workers_each = 3}.count_for(8)), 3);
  EXPECT_EQ((ParameterServers{.workers_each = 0.5}.count_for(2)), 2);
}

TEST(Oasis, AnEmptyClusterIsUsedWholeByAJobInAHurry) {
  // Eight GPU-seconds on four GPUs: two slots, because a later finish is worth less.
  Scenario scenario =
      oasis_on("1x4", {{.gpus = 1, .duration = 8}}, {{"sensitivity", "2"}, {"target", "1"}});
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start, (std::vector<double>{0}));
  EXPECT_NEAR(outcome.finish[0], 2, 1e-5);
}

TEST(Oasis, WaitsForTheBeginningOfASlot) {
  const Outcome outcome =
      run(oasis_on("1x4", {{.submit = 0.25, .gpus = 2, .duration = 2}}, kFixed));
  EXPECT_DOUBLE_EQ(outcome.start[0], 1);
  EXPECT_DOUBLE_EQ(outcome.finish[0], 3);
}

TEST(Oasis, TakesWhatIsLeftInEachSlot) {
  // The first holds three GPUs in slots 0 and 1; the second, of six GPU-seconds, gets one in each
  // of these and four in slot 2.
  Scenario scenario =
      oasis_on("1x4", {{.gpus = 3, .duration = 2}, {.gpus = 1, .duration = 6, .gpus_max = 4}},
               {{"elastic", "declared"}, {"sensitivity", "2"}, {"target", "0"}});
  Sizes sizes{1};
  const Outcome outcome = run(scenario, &sizes);
  EXPECT_DOUBLE_EQ(outcome.finish[0], 2);
  EXPECT_NEAR(outcome.finish[1], 3, 1e-5);
  EXPECT_EQ(sizes.sizes, (Changes{{0, 1}, {2, 4}}));
}

TEST(Oasis, RefusesWhatIsNotWorthItsPriceAndSaysSo) {
  const Settings prices{{"price_low", "1"}, {"price_high", "1"}, {"elastic", "declared"}};
  const Outcome outcome = run(oasis_on("1x4", {{.gpus = 4, .duration = 2}}, prices));
  ASSERT_EQ(outcome.state[0], JobState::Rejected);
  EXPECT_DOUBLE_EQ(outcome.start[0], -1);
  ASSERT_EQ(outcome.rejected.size(), 1U);
  EXPECT_NE(outcome.rejected[0].find("takes 8 GPU-slots"), std::string::npos)
      << outcome.rejected[0];
  EXPECT_NE(outcome.rejected[0].find("costs 8"), std::string::npos) << outcome.rejected[0];
}

TEST(Oasis, RefusesWhatFitsNowhereAhead) {
  const Outcome outcome =
      run(oasis_on("1x4", {{.gpus = 4, .duration = 20}},
                   {{"horizon", "10"}, {"elastic", "declared"}, {"target", "1000"}}));
  ASSERT_EQ(outcome.state[0], JobState::Rejected);
  EXPECT_NE(outcome.rejected[0].find("fit nowhere into the 10 slots"), std::string::npos)
      << outcome.rejected[0];
}

TEST(Oasis, AcceptsAtAPriceWhatItRefusesAtAHigherOne) {
  for (const auto& [price, state] :
       {std::pair{"0.01", JobState::Completed}, std::pair{"1", JobState::Rejected}}) {
    const Outcome outcome =
        run(oasis_on("1x4", {{.gpus = 1, .duration = 2}},
                     {{"price_low", price}, {"price_high", price}, {"elastic", "declared"}}));
    EXPECT_EQ(outcome.state[0], state) << price;
  }
}

TEST(Oasis, ARefusedJobMayRunOnGpusNobodyWasPromised) {
  const Outcome outcome = run(oasis_on("1x4", {{.gpus = 4, .duration = 2}},
                                       {{"price_low", "1"},
                                        {"price_high", "1"},
                                        {"elastic", "declared"},
                                        {"reject_to_besteffort", "on"}}));
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  EXPECT_DOUBLE_EQ(outcome.finish[0], 2);
}

TEST(Oasis, AGuestGivesWayToAPromise) {
  // The first is worth too little and runs as a guest; the second is worth much and gets its slot.
  const Outcome outcome = run(oasis_on("1x4",
                                       {{.gpus = 4, .duration = 5, .weight = 1},
                                        {.submit = 2, .gpus = 4, .duration = 2, .weight = 100}},
                                       {{"price_low", "1"},
                                        {"price_high", "1"},
                                        {"elastic", "declared"},
                                        {"reject_to_besteffort", "on"}}));
  EXPECT_DOUBLE_EQ(outcome.start[1], 2);
  EXPECT_DOUBLE_EQ(outcome.finish[1], 4);
  EXPECT_DOUBLE_EQ(outcome.finish[0], 7);
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{1, 0}));
}

TEST(Oasis, AcceptedJobsAreNeverDisplacedByLaterOnes) {
  const Outcome outcome = run(oasis_on("1x4",
                                       {{.gpus = 4, .duration = 5, .weight = 1},
                                        {.submit = 2, .gpus = 4, .duration = 2, .weight = 100}},
                                       kFixed));
  EXPECT_EQ(outcome.finish, (std::vector<double>{5, 7}));
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(Oasis, ALateJobAsksAgainAndGoesOn) {
  // Said to take 2 s, takes 5: asks for as much as it has done, twice.
  Scenario scenario = oasis_on("1x4", {{.gpus = 1, .duration = 5, .estimate = 2}}, kFixed);
  scenario.estimator = "limit";
  const Outcome outcome = run(scenario);
  EXPECT_DOUBLE_EQ(outcome.finish[0], 5);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(Oasis, ALateJobThatIsWorthNothingAnyMoreIsAGuest) {
  // Its deadline was at 2 s; the second is promised the GPUs from 2 s on.
  Scenario scenario = oasis_on("1x4",
                               {{.gpus = 4, .duration = 5, .estimate = 2, .deadline = 2},
                                {.submit = 1, .gpus = 4, .duration = 3, .estimate = 3}},
                               kFixed);
  scenario.estimator = "limit";
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.finish, (std::vector<double>{8, 5}));
}

TEST(Oasis, AnEarlyEndFreesWhatWasPromised) {
  Scenario scenario = oasis_on("1x4",
                               {{.gpus = 4, .duration = 2, .estimate = 10},
                                {.submit = 3, .gpus = 4, .duration = 2, .estimate = 2}},
                               kFixed);
  scenario.estimator = "limit";
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.finish, (std::vector<double>{2, 5}));
}

TEST(Oasis, ADeadlineThatCannotBeMetIsRefused) {
  const Outcome outcome = run(oasis_on("1x4",
                                       {{.gpus = 4, .duration = 3, .deadline = 3},
                                        {.gpus = 4, .duration = 3, .deadline = 3},
                                        {.gpus = 4, .duration = 3, .deadline = 6}},
                                       kFixed));
  EXPECT_EQ(outcome.state,
            (std::vector<JobState>{JobState::Completed, JobState::Rejected, JobState::Completed}));
  EXPECT_DOUBLE_EQ(outcome.finish[2], 6);
}

TEST(Oasis, JobsOnALostNodePlanAgainBeforeNewOnes) {
  Scenario scenario = oasis_on("2x4",
                               {{.gpus = 4, .duration = 6},
                                {.gpus = 4, .duration = 6},
                                {.submit = 2, .gpus = 4, .duration = 2}},
                               kFixed);
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(2), seconds_to_time(100)}};
  const Outcome outcome = run(scenario);
  // Node 0 is lost at 2 s with one of the first two; it waits for the other node, then goes on for
  // the 4 s it has left, ahead of the third.
  EXPECT_EQ(outcome.finish, (std::vector<double>{10, 6, 12}));
}

TEST(Oasis, PromisesBeyondTheGpusThatAreLeftArePlannedAgain) {
  // Both are promised slots ahead; the node goes while only the first has begun.
  Scenario scenario = oasis_on(
      "2x2", {{.gpus = 2, .duration = 4}, {.gpus = 4, .duration = 2}, {.gpus = 2, .duration = 4}},
      kFixed);
  scenario.sim.outages = {{NodeId{1}, seconds_to_time(1), seconds_to_time(20)}};
  const Outcome outcome = run(scenario);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
  EXPECT_GE(outcome.finish[1], 22);  // four GPUs are there again from 20 s on
}

TEST(Oasis, ParameterServersLimitHowManyWorkersRun) {
  // Eight cores, four for the parameter server of each worker: two workers at a time.
  Scenario scenario = oasis_on(
      "1x4", {{.gpus = 1, .duration = 1}, {.gpus = 1, .duration = 1}, {.gpus = 1, .duration = 1}},
      {{"elastic", "declared"}, {"ps_workers", "1"}, {"ps_cores", "4"}});
  scenario.node_cpus = 8;
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 1}));
}

TEST(Oasis, PrefersTheFasterTypeIfThatPays) {
  Scenario scenario =
      oasis_on("1x4:v100,1x4:a100", {{.gpus = 1, .duration = 8, .type = "v100|a100"}},
               {{"elastic", "declared"}, {"sensitivity", "1"}, {"target", "0"}});
  scenario.effects.device = true;
  const Outcome outcome = run(scenario);
  EXPECT_LT(outcome.finish[0], 8);  // the A100 is faster than the V100 its duration stands for
}

TEST(Oasis, BadSettingsAreNamed) {
  for (const Settings& settings : std::vector<Settings>{{{"slot", "0"}},
                                                        {{"price_low", "1"}},
                                                        {{"price_low", "2"}, {"price_high", "1"}},
                                                        {{"horizon", "0"}}}) {
    EXPECT_FALSE(make_policy("oasis", settings).has_value()) << settings[0].first;
  }
}

}  // namespace
}  // namespace berth::test
