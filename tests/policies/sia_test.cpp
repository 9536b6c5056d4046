// Sia in the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "support/run.h"
#include "support/scaling_models.h"

namespace berth::test::sia_tests {
namespace {

class Log final : public Observer {
 public:
  struct Entry {
    double at;
    ActionKind kind;
    std::uint32_t job;
    std::int32_t gpus;
    std::uint32_t pool;
    std::size_t nodes;
  };
  void append(Time now, const Action& action) override {
    if (sets_terms(action.kind)) return;
    entries.push_back({to_seconds(now.time_since_epoch()), action.kind, action.job.value,
                       action.gpus, action.pool.value, action.slices.size()});
  }
  std::vector<Entry> entries;
};

Scenario sia_on(std::string cluster, std::vector<JobSpec> jobs) {
  Scenario scenario;
  scenario.policy = "sia";
  scenario.cluster = std::move(cluster);
  scenario.placement = "best-fit";
  scenario.profiles = scalable();
  scenario.effects = {.sharing = true, .device = true};
  scenario.jobs = std::move(jobs);
  return scenario;
}

TEST(Sia, ALoneJobGrowsOnTheFasterType) {
  Log log;
  const Outcome outcome =
      run(sia_on("1x4:t4,1x4:a100", {{.submit = 0, .gpus = 1, .duration = 20000}}), &log);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  const auto& last = log.entries.back();
  EXPECT_EQ(last.gpus, 4);
  EXPECT_EQ(last.pool, 1U) << "four A100";
}

TEST(Sia, SizesArePowersOfTwoOrWholeServers) {
  Log log;
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 7; ++i)
    jobs.push_back({.submit = 40.0 * i, .gpus = 1, .duration = 4000.0 + 700 * i});
  const Outcome outcome = run(sia_on("3x4:t4,2x8:a100", jobs), &log);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
  for (const auto& entry : log.entries) {
    const std::vector<std::int32_t> allowed =
        entry.pool == 0 ? std::vector{1, 2, 4, 8, 12} : std::vector{1, 2, 4, 8, 16};
    EXPECT_NE(std::ranges::find(allowed, entry.gpus), allowed.end()) << entry.gpus;
    const std::int32_t server = entry.pool == 0 ? 4 : 8;
    if (entry.kind == ActionKind::Start || entry.kind == ActionKind::Resize) {
      EXPECT_EQ(static_cast<std::int32_t>(entry.nodes),
                std::max(1, entry.gpus / server));  // never split
    }
  }
}

TEST(Sia, GrowthDoublesAndChangesComeInRounds) {
  Log log;
  static_cast<void>(run(sia_on("1x8:a100", {{.submit = 0, .gpus = 1, .duration = 9000}}), &log));
  std::vector<std::int32_t> sizes;
  for (const auto& entry : log.entries) {
    if (entry.kind == ActionKind::Resize) sizes.push_back(entry.gpus);
  }
  EXPECT_EQ(sizes, (std::vector<std::int32_t>{2, 4, 8}));
}

TEST(Sia, RigidJobsKeepTheirSizeAndMayChangeTheirType) {
  Log log;
  Scenario scenario = sia_on("1x4:t4,1x4:a100", {{.submit = 0, .gpus = 3, .duration = 9000},
                                                 {.submit = 0, .gpus = 3, .duration = 9000}});
  scenario.settings = {{"elastic", "declared"}};
  const Outcome outcome = run(scenario, &log);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
  for (const auto& entry : log.entries) EXPECT_EQ(entry.gpus, 3);
}

// Eight jobs on single GPUs leave holes in both servers; a gang of four needs one of them whole.
TEST(Sia, SmallJobsMoveTogetherForAGangThatNeedsAWholeServer) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 6; ++i)
    jobs.push_back(
        {.submit = 0, .gpus = 1, .duration = i % 2 == 0 ? 100.0 : 5000.0, .gpus_max = 1});
  jobs.push_back({.submit = 130, .gpus = 4, .duration = 1000});
  Log log;
  Scenario scenario = sia_on("2x4", jobs);
  scenario.placement = "spread";
  scenario.settings = {{"elastic", "declared"}};
  const Outcome outcome = run(scenario, &log);
  bool started = false;
  for (const auto& entry : log.entries) {
    if (entry.job != 6 || entry.kind != ActionKind::Start) continue;
    started = true;
    EXPECT_LE(entry.at, 181) << "it does not wait for the long jobs to end";
  }
  EXPECT_TRUE(started);
  EXPECT_EQ(outcome.state[6], JobState::Completed);
}

TEST(Sia, GangsOfUnknownTypesAreTriedInTheBootstrappedModel) {
  Scenario scenario = sia_on("1x4:t4,1x4:a100", {{.submit = 0, .gpus = 1, .duration = 20000}});
  scenario.settings = {{"gangs", "bootstrapped"}};
  Log log;
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  EXPECT_EQ(log.entries.back().gpus, 4);
}

}  // namespace
}  // namespace berth::test::sia_tests
