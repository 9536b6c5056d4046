// A scheduler over a simulated Slurm: what users do by sbatch, scancel and scontrol, and what comes
// of it on both sides.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/slurm_world.h"

namespace berth::test {
namespace {

using slurm::JobPhase;

class SlurmScheduler : public ::testing::Test {
 protected:
  static SlurmWorldOptions fifo() {
    SlurmWorldOptions options;
    options.scheduling.policy.policy = "fifo";
    options.scheduling.placement = "consolidated";
    options.scheduling.min_run = 0;
    options.keeps_log = true;
    return options;
  }
  static void expect_right(SlurmWorld& world) {
    EXPECT_EQ(fmt::format("{}", fmt::join(world.violations(), "\n")), "");
    if (::testing::Test::HasFailure())
      for (const std::string& line : world.log()) fmt::print("{}\n", line);
  }
};

TEST_F(SlurmScheduler, RunsWhatUsersSubmitToSlurm) {
  SlurmWorld world{fifo()};
  for (int i = 0; i < 6; ++i)
    world.at(i, [](SimSlurm& slurm) { slurm.submit({.gpus = 2, .seconds = 30}); });
  world.at(7, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 10, .exit_code = 3}); });
  world.run();
  expect_right(world);
  ASSERT_EQ(world.over().size(), 7U);
  EXPECT_EQ(world.over().at("1"), Outcome::Completed);
  EXPECT_EQ(world.over().at("7"), Outcome::Failed);
  EXPECT_EQ(world.intents(), 7);  // each was started once
  EXPECT_LT(world.seconds(), 120);
}

TEST_F(SlurmScheduler, AnArrayRunsTaskByTask) {
  SlurmWorld world{fifo()};
  world.at(0, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 20, .tasks = "0-4%2"}); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().size(), 5U);
  EXPECT_EQ(world.over().at("1_3"), Outcome::Completed);
}

TEST_F(SlurmScheduler, ACancelInEachStateEndsTheJobOnBothSides) {
  SlurmWorld world{fifo()};
  for (int i = 0; i < 4; ++i)
    world.at(0, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 100}); });
  world.at(0.5, [](SimSlurm& slurm) { slurm.user_cancels(1); });  // before anybody has seen it
  world.at(20, [](SimSlurm& slurm) { slurm.user_cancels(2); });   // it runs
  world.at(20, [](SimSlurm& slurm) { slurm.user_cancels(4); });   // it waits
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("2"), Outcome::Cancelled);
  EXPECT_EQ(world.over().at("3"), Outcome::Completed);
  EXPECT_EQ(world.over().at("4"), Outcome::Cancelled);
}

TEST_F(SlurmScheduler, ACancelWithUsIsACancelInSlurm) {
  SlurmWorld world{fifo()};
  for (int i = 0; i < 3; ++i)
    world.at(0, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 1000}); });
  for (const JobNumber job : {1U, 2U, 3U})
    world.wish_at(30, {.job = job, .wish = Wish::Cancel, .by = "ann"});
  world.run();
  expect_right(world);
  for (const char* job : {"1", "2", "3"}) EXPECT_EQ(world.over().at(job), Outcome::Cancelled);
  EXPECT_LT(world.seconds(), 60);
}

TEST_F(SlurmScheduler, ALongJobMakesWayAndGoesOnWhereItWas) {
  SlurmWorldOptions options = fifo();
  options.scheduling.policy.policy = "srtf";
  SlurmWorld world{options};
  world.at(0, [](SimSlurm& slurm) {
    slurm.submit({.gpus = 4, .seconds = 300, .time_limit = 3600});
    slurm.submit({.gpus = 4, .seconds = 300, .time_limit = 3600});
  });
  world.at(60, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 30, .time_limit = 60}); });
  world.run();
  expect_right(world);
  EXPECT_GE(world.slurm().counts().at("requeue"), 1U);
  for (const char* job : {"1", "2", "3"}) EXPECT_EQ(world.over().at(job), Outcome::Completed);
}

TEST_F(SlurmScheduler, WhoLeavesWithAnErrorWhenWarnedWaitsAgain) {
  SlurmWorldOptions options = fifo();
  options.scheduling.policy.policy = "srtf";
  options.rules.warn_signal = 10;
  options.slurm.gpus = {4};
  SlurmWorld world{options};
  world.at(0, [](SimSlurm& slurm) {
    slurm.submit({.gpus = 4, .seconds = 300, .time_limit = 3600, .fails_on_warning = true});
  });
  world.at(60, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 30, .time_limit = 60}); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("1"), Outcome::Completed);
  EXPECT_EQ(world.over().at("2"), Outcome::Completed);
  EXPECT_GE(world.slurm().counts().at("signal"), 1U);
}

TEST_F(SlurmScheduler, ALostNodeCostsItsJobsTheirRunAndNoMore) {
  SlurmWorld world{fifo()};
  for (int i = 0; i < 2; ++i)
    world.at(0, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 100}); });
  world.at(30, [](SimSlurm& slurm) { slurm.lose_node(0); });
  world.at(200, [](SimSlurm& slurm) { slurm.bring_back(0); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("1"), Outcome::Completed);
  EXPECT_EQ(world.over().at("2"), Outcome::Completed);
}

TEST_F(SlurmScheduler, WhatOthersDoIsFollowed) {
  SlurmWorld world{fifo()};
  for (int i = 0; i < 3; ++i)
    world.at(0, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 100}); });
  world.at(20, [](SimSlurm& slurm) { slurm.admin_requeues(1); });
  world.at(25, [](SimSlurm& slurm) { slurm.admin_releases(3); });  // it waits for us, not for them
  world.at(40, [](SimSlurm& slurm) { slurm.set_limit(2, 50); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("1"), Outcome::Completed);
  EXPECT_EQ(world.over().at("2"), Outcome::TimedOut);
  EXPECT_EQ(world.over().at("3"), Outcome::Completed);
}

TEST_F(SlurmScheduler, AJobThatNobodyHeldIsHeldAndPlaced) {
  SlurmWorld world{fifo()};
  world.at(0, [](SimSlurm& slurm) {
    slurm.submit({.gpus = 4, .seconds = 50});
    slurm.submit({.gpus = 4, .seconds = 50});
  });
  world.at(10.5,
           [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 50, .is_held = false}); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("3"), Outcome::Completed);
}

TEST_F(SlurmScheduler, ForeignJobsKeepTheirNodesToThemselves) {
  SlurmWorld world{fifo()};
  // srun: it is not held, and starts by itself.
  world.at(0, [](SimSlurm& slurm) {
    slurm.submit({.gpus = 2, .seconds = 200, .is_batch = false, .is_held = false});
  });
  for (int i = 0; i < 3; ++i)
    world.at(5, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 30}); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().size(), 3U);  // it was never ours
  for (const char* job : {"2", "3", "4"}) EXPECT_EQ(world.over().at(job), Outcome::Completed);
}

TEST_F(SlurmScheduler, ADependencyIsLeftToSlurm) {
  SlurmWorld world{fifo()};
  world.at(0, [](SimSlurm& slurm) {
    slurm.submit({.gpus = 1, .seconds = 10, .dependency = "afterok:99(unfulfilled)"});
  });
  world.at(100, [](SimSlurm& slurm) {
    EXPECT_EQ(slurm.find(1)->phase, JobPhase::Pending);
    EXPECT_EQ(slurm.starts_of(1), 0);
    slurm.clear_dependency(1);
  });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("1"), Outcome::Completed);
}

// Because what Slurm acknowledged just before it is killed is gone, and its id is the next job's.
TEST_F(SlurmScheduler, AnIdThatWasHandedOutAgainIsAnotherJob) {
  SlurmWorld world{fifo()};
  world.at(12, [](SimSlurm& slurm) { slurm.submit({.user = "ann", .gpus = 4, .seconds = 50}); });
  world.at(14, [](SimSlurm& slurm) { slurm.kill_controller(4, 2); });
  world.at(17, [](SimSlurm& slurm) { slurm.submit({.user = "bob", .gpus = 2, .seconds = 20}); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("1"), Outcome::Completed);  // bob's; ann's was lost by Slurm
  EXPECT_EQ(world.intents(), 2);
}

TEST_F(SlurmScheduler, AForgottenStartIsMadeAgain) {
  SlurmWorld world{fifo()};
  world.at(1, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 50}); });
  world.at(6, [](SimSlurm& slurm) { slurm.kill_controller(6, 3); });
  world.run();
  expect_right(world);
}

TEST_F(SlurmScheduler, NothingIsDoneWhileSlurmDoesNotAnswer) {
  SlurmWorld world{fifo()};
  world.at(0, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 60}); });
  world.at(10, [](SimSlurm& slurm) { slurm.kill_controller(0, 40); });
  world.at(11, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 60}); });
  world.run();
  expect_right(world);
  EXPECT_EQ(world.over().at("1"), Outcome::Completed);
  EXPECT_EQ(world.over().at("2"), Outcome::Completed);
}

// The scheduler is killed at every step of taking, claiming, placing and preempting jobs.
TEST_F(SlurmScheduler, ADeathAtAnyPointLosesNothing) {
  const auto play = [](std::optional<std::uint64_t> point, double away) {
    SlurmWorldOptions options = fifo();
    options.scheduling.policy.policy = "srtf";
    options.slurm.gpus = {4};
    auto world = std::make_unique<SlurmWorld>(options);
    world->at(
        0, [](SimSlurm& slurm) { slurm.submit({.gpus = 4, .seconds = 120, .time_limit = 3600}); });
    world->at(40, [](SimSlurm& slurm) {
      slurm.submit({.gpus = 2, .seconds = 20, .time_limit = 60});
      slurm.submit({.gpus = 2, .seconds = 25, .time_limit = 60});
    });
    if (point) world->crash_at(*point, away);
    world->run();
    return world;
  };
  const auto calm = play(std::nullopt, 0);
  expect_right(*calm);
  ASSERT_GT(calm->points_passed(), 20U);
  std::set<std::string> deaths;
  for (std::uint64_t point = 1; point <= calm->points_passed(); ++point) {
    for (const double away : {1.0, 100.0}) {
      const auto world = play(point, away);
      SCOPED_TRACE(
          fmt::format("point {} away {}: {}", point, away, fmt::join(world->deaths_at(), ",")));
      expect_right(*world);
      for (const char* job : {"1", "2", "3"})
        ASSERT_EQ(world->over().at(job), Outcome::Completed) << job;
      deaths.insert(world->deaths_at().begin(), world->deaths_at().end());
    }
  }
  for (const char* where : {"slurm.submitted", "slurm.claimed", "slurm.placed",
                            "supervisor.written", "supervisor.signalled", "supervisor.launched"})
    EXPECT_TRUE(deaths.contains(where)) << where;
}

}  // namespace
}  // namespace berth::test
