// The whole scheduler in simulated time: what people ask for and what becomes of it.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test {
namespace {

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

TEST(Live, RunsWhatIsSubmitted) {
  LiveWorld world{{}};
  JobNumber job = 0;
  world.at(1, [&](LiveService& service) {
    job = world.submit(service, spec_of({"run", "10"}, 2));
  });
  world.run();
  expect_clean(world);
  ASSERT_EQ(job, 1U);
  const JobView& view = world.over().at(job);
  EXPECT_EQ(view.state, LiveState::Completed);
  EXPECT_NEAR(view.run_seconds, 10, 0.01);
  EXPECT_NEAR(view.gpu_seconds, 20, 0.02);
  EXPECT_EQ(view.attempts, 1);
}

TEST(Live, QueuesBeyondTheDevicesAndTellsEndsApart) {
  LiveWorld world{{.cluster = "1x2"}};
  JobNumber good = 0, bad = 0, late = 0, gone = 0;
  world.at(1, [&](LiveService& service) {
    good = world.submit(service, spec_of({"run", "10"}, 2));
    bad = world.submit(service, spec_of({"run", "5", "3"}, 1));
    JobSpec limited = spec_of({"run", "100"}, 1);
    limited.time_limit = 7;
    late = world.submit(service, limited);
    gone = world.submit(service, spec_of({"run", "1000"}, 2));
  });
  world.at(60, [&](LiveService& service) {
    const auto results = service.act(kRoot, Verb::Cancel, {.states = {}, .numbers = {gone}}, "", 0);
    ASSERT_TRUE(results && results->front().is_done);
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(good).state, LiveState::Completed);
  EXPECT_EQ(world.over().at(bad).state, LiveState::Failed);
  EXPECT_EQ(world.over().at(bad).exit_code, 3);
  EXPECT_EQ(world.over().at(late).state, LiveState::TimedOut);
  EXPECT_EQ(world.over().at(gone).state, LiveState::Cancelled);
}

TEST(Live, TriesAgainAsOftenAsAsked) {
  LiveWorld world{{}};
  JobNumber twice = 0, once = 0;
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"flaky", "5", "2"});
    spec.max_retries = 2;
    twice = world.submit(service, spec);
    spec.max_retries = 1;
    once = world.submit(service, spec);
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(twice).state, LiveState::Completed);
  EXPECT_EQ(world.over().at(twice).attempts, 3);
  EXPECT_EQ(world.over().at(once).state, LiveState::Failed);
  EXPECT_EQ(world.over().at(once).attempts, 2);
}

TEST(Live, HoldsReleasesAndWaitsForOthers) {
  LiveWorld world{{}};
  JobNumber held = 0, first = 0, second = 0, never = 0;
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "5"});
    spec.hold = true;
    held = world.submit(service, spec);
    first = world.submit(service, spec_of({"run", "20", "1"}));
    spec.hold = false;
    spec.dependencies = {{DependencyKind::AfterAny, first}};
    second = world.submit(service, spec);
    spec.dependencies = {{DependencyKind::AfterOk, first}};
    never = world.submit(service, spec);
  });
  world.at(10, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, held)->state, LiveState::Held);
    EXPECT_EQ(service.job(kRoot, second)->state, LiveState::Blocked);
  });
  world.at(50, [&](LiveService& service) {
    static_cast<void>(service.act(kRoot, Verb::Release, {.states = {}, .numbers = {held}}, "", 0));
  });
  world.run();
  expect_clean(world);
  EXPECT_GT(world.over().at(held).started, world.over().at(second).started);
  EXPECT_EQ(world.over().at(second).state, LiveState::Completed);
  EXPECT_EQ(world.over().at(never).state, LiveState::Cancelled);
  EXPECT_EQ(world.over().at(never).attempts, 0);
}

TEST(Live, PreemptedWorkGoesOnWhereItWas) {
  LiveWorld world{
      {.cluster = "1x1",
       .scheduling = {.policy = {.policy = "priority", .settings = {{"preempt_classes", "all"}}}}}};
  JobNumber low = 0, high = 0;
  world.at(1, [&](LiveService& service) { low = world.submit(service, spec_of({"run", "100"})); });
  world.at(41, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "10"});
    spec.priority = 5;
    high = world.submit(service, spec);
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(low).preemptions, 1);
  EXPECT_EQ(world.over().at(low).attempts, 2);
  EXPECT_LT(world.over().at(high).ended, world.over().at(low).ended);
  EXPECT_NEAR(world.host().seconds_done(low), 100, 0.1);
}

TEST(Live, GoesOnAfterEveryKindOfCrashInTheMiddle) {
  for (const CrashKind kind : {CrashKind::Kill, CrashKind::Power, CrashKind::Controller}) {
    LiveWorld world{{}};
    JobNumber job = 0;
    world.at(1, [&](LiveService& service) { job = world.submit(service, spec_of({"run", "10"})); });
    bool happened = false;
    world.at(5, [&](LiveService&) {
      if (!std::exchange(happened, true)) throw CrashHere{};
    });
    world.crash_at(1'000'000, kind);  // not reached: the script throws
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
    EXPECT_EQ(world.over().at(job).attempts, kind == CrashKind::Power ? 2 : 1);
    EXPECT_EQ(world.lives(), 2);
  }
}

}  // namespace
}  // namespace berth::test
