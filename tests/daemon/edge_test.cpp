// Moments that are too narrow for chance, each scripted.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test::edge_tests {
namespace {

JobFilter only(JobNumber job) { return {.states = {}, .numbers = {job}}; }

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

constexpr std::array kCrashes = {CrashKind::Kill, CrashKind::Power, CrashKind::Controller};

// The intent is on record, the process is not made yet, and its user cancels; the scheduler may die
// at any point after that.
TEST(Edge, ACancelBetweenTheIntentAndTheSpawnIsCarriedOut) {
  const auto cancel_before_spawn = [](LiveWorld& world, JobNumber& job) {
    world.at(1, [&world, &job](LiveService& service) {
      JobSpec spec = spec_of({"run", "100"});
      spec.key = "one";
      job = world.submit(service, spec);
    });
    // The first batch of records that a supervisor acts on holds the intent.
    world.at_point("supervisor.written", 1, [&job](LiveService& service) {
      const auto results = service.act(kRoot, Verb::Cancel, only(job), "", 0);
      ASSERT_TRUE(results && results->front().is_done);
    });
  };
  LiveWorld calm{{}};
  JobNumber job = 0;
  cancel_before_spawn(calm, job);
  calm.run();
  expect_clean(calm);
  EXPECT_EQ(calm.over().at(job).state, LiveState::Cancelled);
  EXPECT_LT(calm.host().seconds_done(job), 1);
  const std::uint64_t written = calm.points_passed();
  for (const CrashKind kind : kCrashes) {
    for (std::uint64_t point = 1; point <= written; ++point) {
      SCOPED_TRACE(point);
      LiveWorld world{{}};
      cancel_before_spawn(world, job);
      world.crash_at(point, kind);
      world.run();
      expect_clean(world);
      // Who was not answered may have to live with a job that runs.
      const LiveState state = world.over().at(job).state;
      EXPECT_TRUE(state == LiveState::Cancelled || state == LiveState::Completed);
    }
  }
}

// Ended comes twice for every attempt, and again from recovery: whoever waited for it starts once.
TEST(Edge, ADependantIsReleasedOnceHoweverOftenTheEndIsTold) {
  const auto write = [](LiveWorld& world, JobNumber& first, JobNumber& second) {
    world.at(1, [&world, &first](LiveService& service) {
      JobSpec spec = spec_of({"run", "10"});
      spec.key = "first";
      first = world.submit(service, spec);
    });
    world.at(2, [&world, &first, &second](LiveService& service) {
      JobSpec spec = spec_of({"run", "5"});
      spec.key = "second";
      spec.dependencies = {{DependencyKind::AfterOk, first}};
      second = world.submit(service, spec);
    });
  };
  const WorldOptions told_twice{.host = {.told_twice = 1}};
  JobNumber first = 0, second = 0;
  LiveWorld calm{told_twice};
  write(calm, first, second);
  calm.run();
  expect_clean(calm);
  EXPECT_EQ(calm.host().launches(), 2U);
  for (std::uint64_t point = 1; point <= calm.points_passed(); ++point) {
    SCOPED_TRACE(point);
    LiveWorld world{told_twice};
    write(world, first, second);
    world.crash_at(point, CrashKind::Kill);
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(second).state, LiveState::Completed);
    EXPECT_EQ(world.host().seconds_done(first), 10);  // because a kill disturbs no job
    EXPECT_EQ(world.host().seconds_done(second), 5);
    EXPECT_GE(world.over().at(second).started, world.over().at(first).ended);
  }
}

// On record and not in effect: the next life takes it up. Jobs go on under either policy.
TEST(Edge, APolicyThatWasSetIsTakenUpAfterACrashAtAnyPoint) {
  for (const CrashKind kind : kCrashes) {
    for (std::uint64_t after = 1; after <= 16; ++after) {
      SCOPED_TRACE(after);
      LiveWorld world{{}};
      JobNumber job = 0;
      world.at(1, [&](LiveService& service) {
        JobSpec spec = spec_of({"run", "100"});
        spec.key = "one";
        job = world.submit(service, spec);
      });
      bool is_armed = false;
      world.at(10, [&](LiveService& service) {
        if (!std::exchange(is_armed, true)) world.crash_at(world.points_passed() + after, kind);
        ASSERT_TRUE(service.set_policy(kRoot, "srtf", {}));
      });
      world.run();
      expect_clean(world);  // which policy decides at the end is among what is checked
      EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
    }
  }
}

// The answer to a submit was on its way when the scheduler died: asked again, long after the job is
// over, it is the same job.
TEST(Edge, ASubmitWhoseAnswerWasLostIsTheSameJobForEver) {
  LiveWorld world{{}};
  std::vector<JobNumber> answers;
  bool was_killed = false;
  const auto ask = [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "10"});
    spec.key = "once";
    const JobNumber job = world.submit(service, spec);
    if (!std::exchange(was_killed, true)) throw CrashHere{};  // nobody heard
    answers.push_back(job);
  };
  for (const double when : {1.0, 5.0, 1000.0, 90'000.0}) world.at(when, ask);
  world.crash_at_time(50'000, CrashKind::Power);
  world.run();
  expect_clean(world);
  EXPECT_EQ(answers, (std::vector<JobNumber>{1, 1, 1, 1}));
  EXPECT_EQ(world.host().launches(), 1U);
}

// The limit passes while no scheduler is there.
TEST(Edge, ALimitHoldsWhileTheSchedulerIsDead) {
  LiveWorld world{{}};
  JobNumber job = 0;
  world.at(1, [&](LiveService& service) {
    if (job != 0) return;
    JobSpec spec = spec_of({"run", "1000"});
    spec.time_limit = 20;
    job = world.submit(service, spec);
  });
  world.crash_at_time(5, CrashKind::Controller);
  ASSERT_TRUE(world.live());
  world.stay_dead_until(500);
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(job).state, LiveState::TimedOut);
  EXPECT_NEAR(world.over().at(job).run_seconds, 20, 1e-3);  // by the shim's own clock
}

// Told while it runs, enforced by the shim: also after the scheduler that was told has died.
TEST(Edge, ALimitThatWasChangedHoldsWhileTheSchedulerIsDead) {
  LiveWorld world{{}};
  JobNumber job = 0;
  world.at(1, [&](LiveService& service) {
    if (job != 0) return;
    JobSpec spec = spec_of({"run", "1000"});
    spec.time_limit = 500;
    job = world.submit(service, spec);
  });
  world.at(4, [&](LiveService& service) {
    const auto changed = service.change(kRoot, job, R"({"time_limit":30})");
    ASSERT_TRUE(changed) << changed.error().messages.front();
    EXPECT_EQ(changed->spec->time_limit, 30);
  });
  world.crash_at_time(10, CrashKind::Controller);
  ASSERT_TRUE(world.live());
  world.stay_dead_until(400);
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(job).state, LiveState::TimedOut);
  EXPECT_NEAR(world.over().at(job).run_seconds, 30, 1e-3);
}

}  // namespace
}  // namespace berth::test::edge_tests
