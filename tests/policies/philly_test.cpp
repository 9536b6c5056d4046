// Philly: locality by levels, relaxation while a job waits, quotas of virtual clusters.
#include <gtest/gtest.h>

#include "policies/philly/levels.h"
#include "policies/stress.h"
#include "support/run.h"

namespace berth::test::philly_tests {
namespace {

using namespace philly;

/// Two racks of two servers with eight GPUs; `free` on each of the four.
class TwoRacks {
 public:
  explicit TwoRacks(std::array<int, 4> free) : cluster_(*parse_cluster_short("4x8")) {
    cluster_.racks = {"rack1", "rack2"};
    cluster_.nodes[2].rack = cluster_.nodes[3].rack = RackId{1};
    state_.emplace(cluster_, ClusterState::Mode::Devices);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const int used = 8 - free[i];
      if (used == 0) continue;
      const Slice slice{NodeId{i}, used, (std::uint64_t{1} << static_cast<unsigned>(used)) - 1};
      state_->take({&slice, 1}, shape_of(used));
    }
  }
  static Shape shape_of(int gpus) {
    Shape shape;
    shape.gpus = gpus;
    shape.pools = {PoolId{0}};
    return shape;
  }
  /// GPUs by server; empty if there is no place at this level.
  std::map<std::uint32_t, int> place(int gpus, int level) {
    std::vector<Slice> slices;
    std::map<std::uint32_t, int> parts;
    if (!place_at_level(*state_, shape_of(gpus), PoolId{0}, level, slices)) return parts;
    for (const Slice& slice : slices) {
      EXPECT_EQ(slice.devices & ~state_->free_mask(slice.node), 0U) << "free devices only";
      EXPECT_EQ(std::popcount(slice.devices), slice.gpus);
      parts[slice.node.value] = slice.gpus;
    }
    return parts;
  }

 private:
  Cluster cluster_;
  std::optional<ClusterState> state_;
};

using Parts = std::map<std::uint32_t, int>;

TEST(PhillyLevels, TheRackWithMostFreeThenTheLowerIdFilledWhereAnEvenSplitHasNoRoom) {
  TwoRacks racks{{8, 4, 6, 6}};
  EXPECT_EQ(racks.place(12, 0), (Parts{{0, 8}, {1, 4}}));
  for (int level = 0; level < 3; ++level) EXPECT_EQ(racks.place(16, level), Parts{}) << level;
  EXPECT_EQ(racks.place(16, 3), (Parts{{0, 8}, {1, 4}, {2, 4}}));
}

TEST(PhillyLevels, TwiceTheServersAreSplitEvenly) {
  TwoRacks racks{{7, 7, 0, 0}};
  EXPECT_EQ(racks.place(8, 0), Parts{}) << "one server";
  EXPECT_EQ(racks.place(8, 1), (Parts{{0, 4}, {1, 4}}));
}

TEST(PhillyLevels, AnyServersOfOneRackAndASingleGpuFromTheFullest) {
  TwoRacks racks{{3, 3, 2, 1}};
  EXPECT_EQ(racks.place(4, 1), (Parts{{0, 2}, {1, 2}}));
  EXPECT_EQ(racks.place(7, 2), Parts{});
  EXPECT_EQ(racks.place(7, 3), (Parts{{0, 3}, {1, 2}, {2, 2}}));
  EXPECT_EQ(racks.place(1, 0), (Parts{{3, 1}}));
}

TEST(PhillyRules, RelaxingIsWorthItWhenWaitingCostsMore) {
  EXPECT_FALSE(worth_relaxing(3600, 1.3, 600)) << "1080 s lost against 600 s waited";
  EXPECT_TRUE(worth_relaxing(3600, 1.3, 1500));
}

Scenario philly(std::string cluster, std::vector<JobSpec> jobs, Settings settings = {}) {
  Scenario scenario{.policy = "philly",
                    .settings = std::move(settings),
                    .cluster = std::move(cluster),
                    .placement = "best-fit",
                    .jobs = std::move(jobs)};
  return scenario;
}

TEST(Philly, LocalityIsRelaxedAfterFiveAttemptsTwoMinutesApart) {
  // 3 GPUs free on each of two servers: a gang of 6 wants one server, and takes two at attempt 6.
  const Outcome waits = run(philly("2x8",
                                   {{.submit = 0, .gpus = 5, .duration = 10000, .queue = "a"},
                                    {.submit = 0, .gpus = 5, .duration = 10000, .queue = "a"},
                                    {.submit = 1, .gpus = 6, .duration = 10, .queue = "a"}},
                                   {{"preemption", "off"}}));
  EXPECT_NEAR(waits.start[2], 1 + 5 * 120, 1e-6) << "3 + 3 at the sixth attempt";
}

TEST(Philly, ASmallerJobDoesNotWaitBehindOneThatCannotBePlaced) {
  const Outcome outcome = run(philly("1x8", {{.submit = 0, .gpus = 6, .duration = 100},
                                             {.submit = 1, .gpus = 8, .duration = 10},
                                             {.submit = 2, .gpus = 2, .duration = 10}}));
  EXPECT_NEAR(outcome.start[2], 2, 1e-6);
}

TEST(Philly, AVirtualClusterTakesBackItsQuotaFromTheLatestStarters) {
  const Outcome outcome = run(philly("2x8",
                                     {{.submit = 0, .gpus = 4, .duration = 9000, .queue = "vc1"},
                                      {.submit = 10, .gpus = 4, .duration = 9000, .queue = "vc1"},
                                      {.submit = 20, .gpus = 4, .duration = 9000, .queue = "vc1"},
                                      {.submit = 30, .gpus = 4, .duration = 9000, .queue = "vc1"},
                                      {.submit = 40, .gpus = 8, .duration = 100, .queue = "vc2"}},
                                     {{"quotas", "vc1:0.5,vc2:0.5"}}));
  EXPECT_NEAR(outcome.start[4], 40 + 300, 1e-6) << "after the grace";
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 0, 1, 1, 0}));
  EXPECT_NEAR(outcome.finish[0], 9000, 1e-6);
}

TEST(Philly, NobodyIsPreemptedForAJobThatWouldStillNotFit) {
  // vc2 may use 8, but vc1 within its own quota holds half of each server: 8 never come together on
  // the levels allowed.
  const Outcome outcome = run(philly("2x8",
                                     {{.submit = 0, .gpus = 8, .duration = 900, .queue = "vc1"},
                                      {.submit = 0, .gpus = 8, .duration = 900, .queue = "vc2"},
                                      {.submit = 10, .gpus = 8, .duration = 10, .queue = "vc2"}},
                                     {{"quotas", "vc1:0.5,vc2:0.5"}}));
  EXPECT_EQ(outcome.total_preemptions, 0);
}

/// Where each job was last put, by its first server.
class Places final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (begins_stretch(action.kind) || action.kind == ActionKind::Migrate)
      node[action.job.value] = action.slices.front().node.value;
  }
  std::map<std::uint32_t, std::uint32_t> node;
};

// A single GPU goes to the fullest server, which is the gang's; kept apart it goes to the other.
TEST(PhillyGuidelines, SingleGpusKeepOffTheServersOfGangs) {
  const std::vector<JobSpec> jobs{{.submit = 0, .gpus = 4, .duration = 5000},
                                  {.submit = 1, .gpus = 1, .duration = 5000},
                                  {.submit = 2, .gpus = 2, .duration = 5000}};
  Places together, apart;
  static_cast<void>(run(philly("2x8", jobs), &together));
  static_cast<void>(run(philly("2x8", jobs, {{"isolate", "on"}}), &apart));
  EXPECT_EQ(together.node[1], together.node[0]);
  EXPECT_NE(apart.node[1], apart.node[0]);
  EXPECT_EQ(apart.node[2], apart.node[0]) << "and gangs off those of single GPUs";
  EXPECT_NE(together.node[2], together.node[0]) << "where most is free";
}

TEST(PhillyGuidelines, KeptApartAJobStillStartsOnceItHasRelaxed) {
  const std::vector<JobSpec> jobs{{.submit = 0, .gpus = 4, .duration = 5000},
                                  {.submit = 1, .gpus = 1, .duration = 10}};
  EXPECT_EQ(run(philly("1x8", jobs)).start[1], 1);
  EXPECT_NEAR(run(philly("1x8", jobs, {{"isolate", "on"}})).start[1], 1 + 5 * 120, 1e-6);
}

// Jobs 0 and 2 hold one GPU of each server once the gang between them is over; a gang of four finds
// no server until one of them moves.
TEST(PhillyGuidelines, SingleGpusMoveTogetherForAGang) {
  const std::vector<JobSpec> jobs{{.submit = 0, .gpus = 1, .duration = 5000},
                                  {.submit = 1, .gpus = 3, .duration = 10},
                                  {.submit = 2, .gpus = 1, .duration = 5000},
                                  {.submit = 20, .gpus = 4, .duration = 100}};
  const Outcome waits = run(philly("2x4", jobs));
  EXPECT_NEAR(waits.start[3], 20 + 5 * 120, 1e-6) << "two and two, at the sixth attempt";
  const Outcome moves = run(philly("2x4", jobs, {{"defragment", "on"}}));
  EXPECT_EQ(moves.start[3], 20);
  EXPECT_EQ(moves.migrations, (std::vector<int>{1, 0, 0, 0})) << "the lower of two equal servers";
  EXPECT_EQ(moves.finish[0], 5000) << "what it did is kept";
}

TEST(PhillyGuidelines, NobodyMovesIfThatIsNotEnough) {
  // Three GPUs of each server are held by gangs: moving a single one frees no four.
  const std::vector<JobSpec> jobs{{.submit = 0, .gpus = 3, .duration = 500},
                                  {.submit = 0, .gpus = 3, .duration = 500},
                                  {.submit = 1, .gpus = 1, .duration = 500},
                                  {.submit = 20, .gpus = 2, .duration = 100}};
  const Outcome outcome = run(philly("2x4", jobs, {{"defragment", "on"}, {"preemption", "off"}}));
  EXPECT_EQ(outcome.migrations, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(outcome.start[3], 500);
}

TEST(PhillyGuidelines, SurviveRandomWorlds) {
  survive({.policy = "philly",
           .settings = {{"isolate", "on"}, {"defragment", "on"}, {"backoff", "2"}, {"grace", "4"}},
           .rounds = 25});
}

TEST(Philly, PreemptedJobsReturnToTheHeadOfTheirQueue) {
  // vc1 holds everything and has one job waiting when vc2 takes its half back.
  const Outcome outcome = run(philly("1x8",
                                     {{.submit = 0, .gpus = 4, .duration = 2000, .queue = "vc1"},
                                      {.submit = 1, .gpus = 4, .duration = 2000, .queue = "vc1"},
                                      {.submit = 2, .gpus = 4, .duration = 50, .queue = "vc1"},
                                      {.submit = 3, .gpus = 4, .duration = 100, .queue = "vc2"}},
                                     {{"quotas", "vc1:0.5,vc2:0.5"}}));
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(outcome.start[3], 303);
  EXPECT_NEAR(outcome.finish[1], 403 + 2000 - 302, 1e-6) << "before the one that waited";
}

TEST(Philly, SettingsThatMakeNoSenseAreRefused) {
  EXPECT_FALSE(make_policy("philly", {{"quotas", "a:0.7,b:0.7"}}));
  EXPECT_FALSE(make_policy("philly", {{"quotas", "a:2"}}));
  EXPECT_FALSE(make_policy("philly", {{"backoff", "0"}}));
  EXPECT_TRUE(make_policy("philly", {{"quotas", "a:0.7,b:0.3"}, {"wait_for_locality", "on"}}));
}

}  // namespace
}  // namespace berth::test::philly_tests
