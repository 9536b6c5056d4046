// Gandiva in the engine: exact finish times of the worked examples, and what is never done.
#include <gtest/gtest.h>

#include <map>

#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

const Settings kTurnsOnly{{"packing", "off"}, {"migration", "off"}, {"growing", "off"}};

Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

/// Remembers every action.
class Log final : public Observer {
 public:
  struct Entry {
    double at;
    ActionKind kind;
    Reason reason;
    std::uint32_t job;
    int gpus;
  };
  void append(Time now, const Action& action) override {
    entries.push_back({to_seconds(now), action.kind, action.reason, action.job.value, action.gpus});
    if (action.kind != ActionKind::Reject && action.gpus < trace->jobs[action.job.value].gpus)
      ++below_request;
  }
  [[nodiscard]] int count(ActionKind kind) const {
    return static_cast<int>(std::ranges::count(entries, kind, &Entry::kind));
  }
  std::vector<Entry> entries;
  int below_request = 0;
};

TEST(Gandiva, TwoJobsTakeTurnsOnOneGpu) {
  const Outcome outcome = run({.policy = "gandiva",
                               .settings = kTurnsOnly,
                               .cluster = "1x1",
                               .placement = "best-fit",
                               .jobs = {{0, 1, 90}, {0, 1, 60}}});
  // A 0-60, switch, B 61-121, switch, A 122-152
  EXPECT_EQ(outcome.finish, (std::vector<double>{152, 121}));
  EXPECT_EQ(outcome.suspensions, (std::vector<int>{1, 0}));
}

TEST(Gandiva, AJobThatRunsInTheNextSliceTooIsNotSuspended) {
  const Outcome outcome = run({.policy = "gandiva",
                               .settings = with(kTurnsOnly, {{"switch_cost", "0"}}),
                               .cluster = "1x4",
                               .placement = "best-fit",
                               .jobs = {{0, 2, 120}, {0, 2, 120}, {0, 2, 120}}});
  // {A,B} {C,A} {B,C}
  EXPECT_EQ(outcome.finish, (std::vector<double>{120, 180, 180}));
  EXPECT_EQ(outcome.suspensions, (std::vector<int>{0, 1, 0}));
}

TEST(Gandiva, AFinishEndsTheSliceForAll) {
  const Outcome outcome = run({.policy = "gandiva",
                               .settings = with(kTurnsOnly, {{"max_height", "0"}}),
                               .cluster = "1x1",
                               .placement = "best-fit",
                               .jobs = {{0, 1, 20}, {0, 1, 100}, {0, 1, 60}}});
  // A 0-20; B 21-81; C 82-142 done; B 143-183
  EXPECT_EQ(outcome.finish, (std::vector<double>{20, 183, 142}));
}

TEST(Gandiva, BeyondTheLargestHeightAJobWaits) {
  const Outcome outcome = run({.policy = "gandiva",
                               .settings = kTurnsOnly,
                               .cluster = "1x1",
                               .placement = "best-fit",
                               .jobs = {{0, 1, 30}, {0, 1, 30}, {0, 1, 30}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 30, 61}));
  // B 31-61 after a switch; C, placed at 30 behind B, pays one too
  EXPECT_EQ(outcome.finish, (std::vector<double>{30, 61, 92}));
}

TEST(Gandiva, PullsAWaitingNeighbourWhereSomebodyLeft) {
  const Outcome outcome = run({.policy = "gandiva",
                               .settings = {{"packing", "off"}},
                               .cluster = "2x1",
                               .placement = "best-fit",
                               .jobs = {{0, 1, 1000}, {0, 1, 100}, {0, 1, 1000}}});
  // A 0-60, then C from 61 on; at 100 B leaves its server and A, suspended, goes there: 102-1042
  EXPECT_EQ(outcome.finish, (std::vector<double>{1042, 100, 1061}));
}

TEST(Gandiva, EmptiesALooseServerForAGang) {
  Scenario scenario{.policy = "gandiva", .cluster = "4x4", .placement = "best-fit", .jobs = {}};
  const std::vector<int> used{1, 2, 3, 4};
  for (const int staying : used) {
    for (int i = 0; i < 4; ++i)
      scenario.jobs.push_back({.submit = 0, .gpus = 1, .duration = i < staying ? 5000.0 : 30.0});
  }
  scenario.jobs.push_back({.submit = 70, .gpus = 4, .duration = 10});
  Log log;
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(log.count(ActionKind::Migrate), 1);
  EXPECT_EQ(outcome.migrations[0], 1);
  EXPECT_EQ(outcome.finish[0], 5002) << "the pause of one migration";
  EXPECT_EQ(outcome.start.back(), 70);
  EXPECT_EQ(outcome.finish.back(), 80);
}

Scenario growing_scenario(const std::string& step) {
  ProfileSet profiles;
  profiles.edit(ProfileSet::fallback()).iteration.gradient_bytes = 0;  // K GPUs, K times as fast
  return {.policy = "gandiva",
          .settings = {{"grow_step", step}},
          .cluster = "1x4",
          .placement = "best-fit",
          .jobs = {{.submit = 0, .gpus = 1, .duration = 2570, .gpus_max = 4},
                   {.submit = 1000, .gpus = 2, .duration = 400}},
          .profiles = profiles,
          .edit_cluster = [](Cluster& cluster) {
            Links& links = cluster.links;
            links.nvlink_latency = links.pcie_latency = links.socket_latency = 0;
          }};
}

TEST(Gandiva, GrowsIntoIdleGpusAndGivesThemBack) {
  Log log;
  const Outcome outcome = run(growing_scenario("double"), &log);
  std::map<double, int> sizes;
  for (const auto& entry : log.entries) {
    if (entry.kind == ActionKind::Resize) sizes[entry.at] = entry.gpus;
  }
  EXPECT_EQ(sizes, (std::map<double, int>{{300, 2}, {600, 4}, {1000, 1}}));
  EXPECT_EQ(outcome.start[1], 1000);
  EXPECT_EQ(outcome.finish[1], 1400);
  // 300 + 2 x 295 + 4 x 395 = 2470 by 1000; 100 more from 1005
  EXPECT_EQ(outcome.finish[0], 1105);
}

TEST(Gandiva, GrowsByAllIdleGpusAtOnceIfToldSo) {
  Log log;
  static_cast<void>(run(growing_scenario("all"), &log));
  EXPECT_EQ(log.entries[1].kind, ActionKind::Resize);
  EXPECT_EQ(log.entries[1].at, 300);
  EXPECT_EQ(log.entries[1].gpus, 4);
}

Scenario packing_scenario(double slowdown) {
  ProfileSet profiles;
  Profile small;
  small.name = "small";
  const ProfileId id = profiles.add(small);
  profiles.set_slowdown(id, id, slowdown);
  Scenario scenario{.policy = "gandiva",
                    .cluster = "1x1",
                    .placement = "best-fit",
                    .jobs = {{.submit = 0, .gpus = 1, .duration = 3000, .model = "small"},
                             {.submit = 0, .gpus = 1, .duration = 3000, .model = "small"}},
                    .profiles = profiles};
  return scenario;
}

TEST(Gandiva, KeepsAPackingThatBeatsTakingTurns) {
  Log log;
  const Outcome packed = run(packing_scenario(1.25), &log);
  EXPECT_EQ(log.count(ActionKind::Share), 1) << "packed once and never parted";
  const Outcome turns = [] {
    Scenario scenario = packing_scenario(1.25);
    scenario.settings = {{"packing", "off"}};
    return run(scenario);
  }();
  EXPECT_LT(packed.makespan, 0.7 * turns.makespan) << "2 x 0.8 against 1 less the switches";
}

TEST(Gandiva, UndoesAPackingThatDoesNotAndRemembersThePair) {
  Log log;
  const Outcome outcome = run(packing_scenario(2.5), &log);
  EXPECT_EQ(log.count(ActionKind::Share), 1);
  EXPECT_GT(outcome.suspensions[0] + outcome.suspensions[1], 20) << "they take turns again";
}

TEST(Gandiva, APackingMustFitTheMemory) {
  Scenario scenario = packing_scenario(1.25);
  scenario.profiles.edit(*scenario.profiles.find("small")).memory.fixed_mib = 9000;
  scenario.edit_cluster = [](Cluster& cluster) { cluster.pools[0].memory_mib = 16000; };
  Log log;
  static_cast<void>(run(scenario, &log));
  EXPECT_EQ(log.count(ActionKind::Share), 0);
}

// Jobs that may grow, jobs that take turns, gangs larger than a server: nobody is shrunk below what
// he asked for, and all end.
TEST(Gandiva, NeverGivesLessThanRequested) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 25, .many_nodes = true});
    scenario.policy = "gandiva";
    scenario.placement = "best-fit";
    scenario.settings = {{"slice", "4"},     {"tick", "3"},        {"idle_period", "3"},
                         {"rebalance", "7"}, {"resize_cost", "1"}, {"migrate_cooldown", "5"}};
    for (std::size_t i = 0; i < scenario.jobs.size(); i += 2)
      scenario.jobs[i].gpus_max = scenario.jobs[i].gpus * 4;
    Log log;
    const Outcome outcome = run(scenario, &log);
    EXPECT_EQ(log.below_request, 0) << "seed " << seed;
    for (const JobState state : outcome.state) ASSERT_EQ(state, JobState::Completed) << seed;
  }
}

}  // namespace
}  // namespace berth::test
