// The policy `agents` where distance and neighbours matter: room made for gangs that are held back,
// disturbing neighbours kept apart and parted.
#include <gtest/gtest.h>

#include "policies/agents/pods.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

/// wide: a quarter slower over a rack at four GPUs (as VGG16). loud: two of them on a server slow
/// each other down by 1 + 0.4 (0.8 + 0.8 - 1) = 1.24. calm: disturbs nobody. chatty: twice as long
/// over racks as inside of one.
ProfileSet classes() {
  ProfileSet profiles;
  Profile wide;
  wide.name = "wide";
  wide.iteration = {.alpha = 0.20, .beta = 0, .gradient_bytes = 528e6, .overlap = 2};
  wide.bus = 0.1;
  Profile calm;
  calm.name = "calm";
  calm.iteration = {.alpha = 0.18, .beta = 0, .gradient_bytes = 98e6, .overlap = 2};
  calm.bus = 0.1;
  Profile loud = calm;
  loud.name = "loud";
  loud.bus = 0.8;
  Profile chatty = calm;
  chatty.name = "chatty";
  chatty.iteration = {.alpha = 0.05, .beta = 0, .gradient_bytes = 2e9, .overlap = 2};
  profiles.add(wide);
  profiles.add(calm);
  profiles.add(loud);
  profiles.add(chatty);
  return profiles;
}

constexpr Effects kLocality{.sharing = true, .locality = true};
constexpr Effects kServer{.sharing = true, .server = true};

/// Who moved why.
class Moved final : public Observer {
 public:
  void append(Time now, const Action& action) override {
    if (action.kind != ActionKind::Migrate) return;
    if (action.reason == Reason::Lease && pod_devices > 0) expect_same_pod(action);
    moves.push_back({to_seconds(now), action.reason,
                     std::string(trace->text(trace->jobs[action.job.value].id))});
  }
  struct Move {
    double at = 0;
    Reason reason = Reason::None;
    std::string job;
  };
  std::vector<Move> moves;
  std::int64_t pod_devices = 0;

 private:
  void expect_same_pod(const Action& action) const {
    const agents::Pods pods(engine->cluster(), pod_devices);
    const agents::PodId from = pods.pod_of(action.left);
    if (from == pods.root()) return;
    EXPECT_EQ(pods.pod_of(action.slices), from) << "a holder stays in its pod";
  }
};

/// At 400 the first job ends and leaves three devices beside a small job; one more is free on the
/// other server. The last one, of four, would accept that at 1,680.
Scenario fragmented() {
  return {.policy = "agents",
          .cluster = "2x4",
          .placement = "topology",
          .jobs = {{.gpus = 3, .duration = 400, .model = "calm"},
                   {.gpus = 3, .duration = 9000, .model = "calm"},
                   {.gpus = 1, .duration = 9000, .model = "calm"},
                   {.submit = 1, .gpus = 4, .duration = 10'000, .model = "wide"}},
          .profiles = classes(),
          .effects = kLocality};
}

TEST(AgentsDefragmentation, LetsABlockedGangStart) {
  Scenario scenario = fragmented();
  Moved moved;
  const Outcome outcome = run(scenario, &moved);
  EXPECT_EQ(outcome.start[3], 400);
  ASSERT_EQ(moved.moves.size(), 1U);
  EXPECT_EQ(moved.moves[0].at, 400);
  EXPECT_EQ(moved.moves[0].reason, Reason::Defragment);
  EXPECT_EQ(outcome.migrations, (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(outcome.overhead[2], 60);  // what the move costs
  EXPECT_NEAR(outcome.finish[3], 400 + 10'000, 1e-3);
  scenario.settings = {{"defragment", "off"}};
  EXPECT_GT(run(scenario).start[3], 1680);
}

// The wait that is saved is 1,679 - 399 s until it would go over the rack and the 1,679 s it would
// lose there: 2,959 s for four devices, worth 5,918 s for the one that moves.
TEST(AgentsDefragmentation, IsNotDoneUnlessItSavesTwiceItsCost) {
  Scenario scenario = fragmented();
  scenario.settings = {{"migration_cost", "5800"}};
  EXPECT_EQ(run(scenario).start[3], 400);
  scenario.settings = {{"migration_cost", "6000"}};
  EXPECT_GT(run(scenario).start[3], 400);
}

// At 3,500 three devices are free beside the small job that was moved at 400, two beside a job of
// two. To move the small one would cost less, but it rests.
TEST(AgentsDefragmentation, AJobThatHasMovedRests) {
  Scenario scenario = fragmented();
  scenario.jobs = {{.gpus = 3, .duration = 400, .model = "calm"},
                   {.gpus = 3, .duration = 3500, .model = "calm"},
                   {.gpus = 1, .duration = 20'000, .model = "calm"},
                   {.submit = 1, .gpus = 4, .duration = 3000, .model = "wide"},
                   {.submit = 3450, .gpus = 2, .duration = 20'000, .model = "calm"},
                   {.submit = 3460, .gpus = 4, .duration = 10'000, .model = "wide"}};
  scenario.settings = {{"lease", "1d"}, {"migration_pause", "2h"}};
  const Outcome rested = run(scenario);
  EXPECT_EQ(rested.start[5], 3500);
  EXPECT_EQ(rested.migrations, (std::vector<int>{0, 0, 1, 0, 1, 0}));
  scenario.settings.back() = {"migration_pause", "30m"};
  const Outcome restless = run(scenario);
  EXPECT_EQ(restless.start[5], 3500);
  EXPECT_EQ(restless.migrations, (std::vector<int>{0, 0, 2, 0, 0, 0}));
}

// The same in one of two pods. If the other pod has a server free at 400, nobody has to move.
TEST(AgentsDefragmentation, ComesAfterTheOtherPods) {
  Scenario scenario = fragmented();
  scenario.settings = {{"pod_devices", "8"}};
  scenario.cluster = "3x4";
  scenario.jobs.insert(scenario.jobs.begin() + 1, {.gpus = 4, .duration = 9000, .model = "calm"});
  const Outcome full = run(scenario);
  EXPECT_EQ(full.start[4], 400);
  EXPECT_EQ(full.migrations, (std::vector<int>{0, 0, 0, 1, 0}));
  scenario.jobs[1].duration = 400;
  const Outcome idle = run(scenario);
  EXPECT_EQ(idle.start[4], 400);
  EXPECT_EQ(idle.migrations, (std::vector<int>{0, 0, 0, 0, 0}));
}

// A gang of eight needs a rack. One has seven devices free, the other three: the job that is in the
// way goes over.
TEST(AgentsDefragmentation, EmptiesARackForAGangLargerThanAServer) {
  Scenario scenario{.policy = "agents",
                    .cluster = "4x4",
                    .placement = "topology",
                    .jobs = {{.gpus = 4, .duration = 300, .model = "calm"},
                             {.gpus = 4, .duration = 280, .model = "calm"},
                             {.gpus = 4, .duration = 9000, .model = "calm"},
                             {.gpus = 3, .duration = 300, .model = "calm"},
                             {.gpus = 1, .duration = 9000, .model = "calm"},
                             {.submit = 281, .gpus = 1, .duration = 9000, .model = "calm"},
                             {.submit = 301, .gpus = 8, .duration = 9000, .model = "chatty"}},
                    .profiles = classes(),
                    .effects = kLocality};
  scenario.edit_cluster = [](Cluster& cluster) {
    cluster.racks = {"r0", "r1"};
    for (std::uint32_t i = 0; i < 4; ++i) cluster.nodes[i].rack = RackId{i / 2};
  };
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start[6], 301);
  EXPECT_EQ(outcome.migrations, (std::vector<int>{0, 0, 0, 0, 0, 1, 0}));
  scenario.settings = {{"defragment", "off"}};
  EXPECT_GT(run(scenario).start[6], 301);
}

// Two loud jobs go to different servers although the first would be tighter; calm ones go where it
// is tightest.
TEST(AgentsInterference, KeepsDisturbingJobsApart) {
  Scenario scenario{.policy = "agents",
                    .cluster = "2x4",
                    .placement = "topology",
                    .jobs = {{.gpus = 1, .duration = 100, .model = "loud"},
                             {.gpus = 1, .duration = 100, .model = "loud"},
                             {.gpus = 1, .duration = 100, .model = "calm"}},
                    .profiles = classes(),
                    .effects = kServer};
  EXPECT_EQ(run(scenario).finish, (std::vector<double>{100, 100, 100}));
  scenario.cluster = "1x4";  // nowhere else to go
  EXPECT_NEAR(run(scenario).finish[0], 124, 1e-3);
}

/// A calm job holds one server at first, so that the two loud ones share the other.
Scenario forced_together() {
  return {.policy = "agents",
          .cluster = "2x2",
          .placement = "topology",
          .jobs = {{.gpus = 2, .duration = 500, .model = "calm"},
                   {.submit = 1, .gpus = 1, .duration = 9000, .model = "loud"},
                   {.submit = 1, .gpus = 1, .duration = 9000, .model = "loud"}},
          .profiles = classes(),
          .effects = kServer};
}

// At 600 agents look around: either job has 9,000 - 599 / 1.24 = 8,517 s left, so together they
// save 2 * 0.24 * 8,517 s for a move of 60 s.
TEST(AgentsInterference, BadlyMatchedNeighboursPart) {
  Scenario scenario = forced_together();
  Moved moved;
  const Outcome outcome = run(scenario, &moved);
  ASSERT_EQ(moved.moves.size(), 1U);
  EXPECT_EQ(moved.moves[0].at, 600);
  EXPECT_EQ(moved.moves[0].reason, Reason::Interference);
  const double last = 600 + (9000 - 599 / 1.24);
  EXPECT_NEAR(std::min(outcome.finish[1], outcome.finish[2]), last, 1e-2);
  EXPECT_NEAR(std::max(outcome.finish[1], outcome.finish[2]), last + 60, 1e-2);
  scenario.settings = {{"migration_interval", "0"}};
  EXPECT_NEAR(run(scenario).finish[1], 1 + 9000 * 1.24, 1e-2);
  scenario.settings = {};
  for (std::size_t i : {1U, 2U}) scenario.jobs[i].duration = 600;  // 117 s left: 56 s are not 60
  EXPECT_EQ(run(scenario).migrations, (std::vector<int>{0, 0, 0}));
}

// The cluster is full when they look around, so that one of them changes places with a calm job.
TEST(AgentsInterference, WithoutRoomNeighboursChangePlacesWithOthers) {
  Scenario scenario = forced_together();
  for (int i = 0; i < 2; ++i)
    scenario.jobs.push_back({.submit = 2, .gpus = 1, .duration = 9000, .model = "calm"});
  Moved moved;
  const Outcome outcome = run(scenario, &moved);
  EXPECT_EQ(outcome.start[3], 500);
  ASSERT_EQ(moved.moves.size(), 2U);
  EXPECT_EQ(moved.moves[0].at, 600);
  EXPECT_EQ(outcome.migrations[1] + outcome.migrations[2], 1);
  EXPECT_EQ(outcome.migrations[3] + outcome.migrations[4], 1);
}

/// X sees the offer and takes one of the five devices that come free at 400 on two servers; what is
/// left is two parts of a gang of four, for one that minds (and waited longer) or one that does
/// not.
TEST(Agents, WhatIsLeftGoesFirstToWhomItHurtsLeast) {
  Scenario scenario{.policy = "agents",
                    .settings = {{"defragment", "off"}},
                    .cluster = "2x4",
                    .placement = "topology",
                    .jobs = {{.gpus = 3, .duration = 400, .model = "calm"},
                             {.gpus = 2, .duration = 400, .model = "calm"},
                             {.gpus = 1, .duration = 20'000, .model = "calm"},
                             {.gpus = 1, .duration = 20'000, .model = "calm"},
                             {.gpus = 1, .duration = 20'000, .model = "calm"},
                             {.submit = 1, .gpus = 1, .duration = 10, .model = "calm"},
                             {.submit = 1, .gpus = 4, .duration = 600, .model = "wide"},
                             {.submit = 1, .gpus = 4, .duration = 1000, .model = "calm"}},
                    .profiles = classes(),
                    .effects = kLocality};
  const Outcome least_harm = run(scenario);
  EXPECT_EQ(least_harm.start[5], 400);
  EXPECT_EQ(least_harm.start[7], 400);
  EXPECT_GT(least_harm.start[6], 400);
  scenario.settings.push_back({"leftover", "worst-off"});
  const Outcome worst_off = run(scenario);
  EXPECT_EQ(worst_off.start[6], 400);
  EXPECT_GT(worst_off.start[7], 400);
}

// At 10 the second job wins the GPU from the third, which would have had (10 + 4000) / 5010 of what
// it has without it: so much of its lease of 1,000 s the winner keeps.
TEST(Agents, AWinnerPaysWithAPartOfItsLease) {
  Scenario scenario{.policy = "agents",
                    .settings = {{"lease", "1000"}, {"interval", "5"}, {"hidden", "0"}},
                    .cluster = "1x1",
                    .placement = "topology",
                    .jobs = {{.gpus = 1, .duration = 10},
                             {.gpus = 1, .duration = 2000},
                             {.gpus = 1, .duration = 4000},
                             {.submit = 300, .gpus = 1, .duration = 10}}};
  EXPECT_EQ(run(scenario).start[3], 1010);
  scenario.settings.push_back({"payment", "on"});
  EXPECT_NEAR(run(scenario).start[3], 10 + 1000.0 * 4010 / 5010, 1e-3);
}

// At 100 the lease of the first job ends. It loses to a gang of two, which then finds its devices
// on two servers and declines, and to a short job, which takes the very device it had; so it goes
// to another one of its pod (the first three servers), although the fourth server is nearly empty.
// Odd jobs keep the other pod busy.
TEST(Agents, AHolderWhoseDevicesAreGoneStaysInItsPod) {
  const JobSpec odd{.duration = 40, .model = "calm"};
  const auto later = [](double submit, JobSpec job) {
    job.submit = submit;
    return job;
  };
  const JobSpec three{.gpus = 3, .duration = 5000, .model = "calm"};
  Scenario scenario{.policy = "agents",
                    .settings = {{"pod_devices", "12"},
                                 {"lease", "100"},
                                 {"interval", "10"},
                                 {"hidden", "0"},
                                 {"switching_credit", "0"},
                                 {"defragment", "off"}},
                    .cluster = "4x4",
                    .placement = "topology",
                    .jobs = {{.gpus = 1, .duration = 60'000, .model = "calm"},
                             odd,
                             later(50, three),
                             later(50, odd),
                             later(50, three),
                             later(50, odd),
                             later(50, three),
                             later(50, odd),
                             {.submit = 100, .gpus = 2, .duration = 10'000, .model = "chatty"},
                             later(100, odd),
                             {.submit = 100, .gpus = 1, .duration = 10, .model = "calm"}},
                    .profiles = classes(),
                    .effects = kLocality};
  Moved moved;
  moved.pod_devices = 12;
  const Outcome outcome = run(scenario, &moved);
  ASSERT_FALSE(moved.moves.empty());
  EXPECT_EQ(moved.moves[0].at, 100);
  EXPECT_EQ(moved.moves[0].reason, Reason::Lease);
  EXPECT_EQ(moved.moves[0].job, "1");
  EXPECT_EQ(outcome.start[10], 100);
}

// Everything at once, on pods that are parts of a rack: all jobs end, and twice in the same way.
TEST(Agents, EndsEveryJobUnderAllEffectsAndOptions) {
  int moves = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario scenario =
        random_scenario(seed, {.max_jobs = 40, .fractions = true, .two_types = seed % 3 == 0});
    Rng rng(seed);
    scenario.cluster = seed % 3 == 0 ? "3x4:v100,3x4:a100" : "6x4";
    for (JobSpec& job : scenario.jobs) {
      job.gpus = 1 << rng.below(4);
      job.duration *= 20;
      job.model = std::vector<std::string>{"wide", "calm", "loud"}[rng.below(3)];
    }
    scenario.policy = "agents";
    scenario.placement = "topology";
    scenario.profiles = classes();
    scenario.effects = {.sharing = true, .locality = true, .server = true};
    scenario.settings = {{"lease", "40"},
                         {"interval", "7"},
                         {"migration_cost", "1"},
                         {"migration_interval", "20"},
                         {"migration_pause", "30"},
                         {"migration_least", "2"},
                         {"payment", seed % 2 == 0 ? "on" : "off"},
                         {"pod_devices", seed % 4 < 2 ? "8" : "2000"}};
    if (seed % 4 == 1)
      scenario.sim.outages = {{NodeId{0}, seconds_to_time(60), seconds_to_time(150)}};
    Moved moved;
    moved.pod_devices = seed % 4 < 2 ? 8 : 2000;
    const Outcome outcome = run(scenario, &moved);
    for (const JobState state : outcome.state)
      ASSERT_EQ(state, JobState::Completed) << "seed " << seed;
    ASSERT_EQ(run(scenario).digest, outcome.digest) << "seed " << seed;
    for (const Moved::Move& move : moved.moves)
      moves += move.reason == Reason::Defragment || move.reason == Reason::Interference ? 1 : 0;
  }
  EXPECT_GT(moves, 0);
}

}  // namespace
}  // namespace berth::test
