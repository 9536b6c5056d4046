// Gandiva in the engine: exact finish times of the worked examples, and what is never done.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/random_scenario.h"
#include "support/run.h"
#include "support/scaling_models.h"

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
  return {.policy = "gandiva",
          .settings = {{"grow_step", step}},
          .cluster = "1x4",
          .placement = "best-fit",
          .jobs = {{.submit = 0, .gpus = 1, .duration = 2570, .gpus_max = 4},
                   {.submit = 1000, .gpus = 2, .duration = 400}},
          .profiles = perfect(),  // K GPUs, K times as fast
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

/// Two jobs that ask a lot of their server's bus, the second 100 s later on the same server.
Scenario bad_company_scenario(const std::string& cluster, const Settings& settings) {
  ProfileSet profiles;
  Profile loud;
  loud.name = "loud";
  loud.bus = 0.9;
  profiles.add(loud);
  return {.policy = "gandiva",
          .settings = with({{"packing", "off"}}, settings),
          .cluster = cluster,
          .placement = "best-fit",
          .jobs = {{.submit = 0, .duration = 1000, .model = "loud"},
                   {.submit = 100, .duration = 1000, .model = "loud"}},
          .profiles = profiles,
          .effects = {.server = true}};
}

// Together each takes 1 + 0.4 x (0.9 + 0.9 - 1) = 1.32 times as long. A has run alone before and
// knows; the tick at 120 moves it to the empty server for 2 s. B has never seen better and stays.
TEST(Gandiva, LeavesBadCompanyForAnEmptyServer) {
  Log log;
  const Outcome outcome = run(bad_company_scenario("2x2", {}), &log);
  EXPECT_EQ(outcome.migrations, (std::vector<int>{1, 0}));
  const auto moved = std::ranges::find(log.entries, ActionKind::Migrate, &Log::Entry::kind);
  ASSERT_NE(moved, log.entries.end());
  EXPECT_EQ(moved->at, 120);
  const double together = 20 / 1.32;  // of either, between 100 and 120
  EXPECT_NEAR(outcome.finish[0], 122 + 1000 - 100 - together, 1e-3);
  EXPECT_NEAR(outcome.finish[1], 120 + 1000 - together, 1e-3);
}

TEST(Gandiva, StaysInBadCompanyWithoutAnEmptyServerOrAGain) {
  const double finish = 100 + 900 * 1.32;  // of A; B is alone from then on
  EXPECT_NEAR(run(bad_company_scenario("1x2", {})).finish[0], finish, 1e-3);
  // in a second a move wins 0.24 s and costs 2
  const Outcome short_sighted = run(bad_company_scenario("2x2", {{"horizon", "1"}}));
  EXPECT_EQ(short_sighted.migrations, (std::vector<int>{0, 0}));
  EXPECT_NEAR(short_sighted.finish[0], finish, 1e-3);
}

/// Three servers with four small jobs each, of which two soon leave, and two gangs of four that
/// take turns on the last server.
Scenario unbalanced_scenario(const std::string& rebalance) {
  Scenario scenario{.policy = "gandiva",
                    .settings = {{"packing", "off"}, {"rebalance", rebalance}},
                    .cluster = "4x4",
                    .placement = "best-fit",
                    .jobs = {}};
  for (int i = 0; i < 12; ++i)
    scenario.jobs.push_back({.submit = 0, .duration = i % 4 < 2 ? 5000.0 : 30.0});
  scenario.jobs.push_back({.submit = 1, .gpus = 4, .duration = 1000});
  scenario.jobs.push_back({.submit = 2, .gpus = 4, .duration = 1000});
  return scenario;
}

// Small jobs want 6 GPUs and have servers with 12, gangs want 8 and have 4: of 16 GPUs they deserve
// 6 and 8. At 100 the two jobs of one server join those of another, and the gang whose turn it is
// not goes there.
TEST(Gandiva, GivesAServerToTheClassThatHasLessThanItDeserves) {
  Log log;
  const Outcome outcome = run(unbalanced_scenario("100"), &log);
  std::set<std::uint32_t> moved;
  for (const auto& entry : log.entries) {
    if (entry.at == 100) moved.insert(entry.job);
  }
  EXPECT_EQ(moved, (std::set<std::uint32_t>{0, 1, 12}));
  EXPECT_EQ(outcome.migrations[0] + outcome.migrations[1], 2);
  EXPECT_EQ(outcome.finish[0], 5002) << "the pause of one migration";
  // turns begin when Y comes: X 1-62, Y 63-1063; X from 102 on
  EXPECT_EQ(outcome.finish[12], 102 + 1000 - 61);
  EXPECT_EQ(outcome.finish[13], 1063);
}

TEST(Gandiva, ClassesKeepTheirServersWithoutRebalancing) {
  Log log;
  const Outcome outcome = run(unbalanced_scenario("0"), &log);
  EXPECT_EQ(log.count(ActionKind::Migrate), 0);
  EXPECT_GT(outcome.finish[13], 1900) << "two gangs take turns to the end";
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
