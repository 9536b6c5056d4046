// A job that a person has suspended sleeps until a person wakes it, whatever becomes of the
// scheduler, of the policy and of the attempt.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test::suspend_tests {
namespace {

JobFilter only(JobNumber job) { return {.states = {}, .numbers = {job}}; }

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

void suspend(LiveService& service, JobNumber job, const std::string& why = {}) {
  static_cast<void>(service.act(kRoot, Verb::Suspend, only(job), why, 0));
}

void resume(LiveService& service, JobNumber job) {
  const auto results = service.act(kRoot, Verb::Resume, only(job), "", 0);
  ASSERT_TRUE(results);
  EXPECT_TRUE(results->front().is_done) << results->front().text;
}

// Ten seconds of work, one before the suspend at 2 and nine after the resume at 1000.
TEST(Suspend, SurvivesEveryCrashAtEveryPoint) {
  for (const CrashKind kind : {CrashKind::Kill, CrashKind::Controller, CrashKind::Power}) {
    for (std::uint64_t point = 1; point <= 24; ++point) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << " point " << point);
      LiveWorld world{{}};
      JobNumber job = 0;
      world.at(1, [&](LiveService& service) {
        if (job == 0) job = world.submit(service, spec_of({"run", "10"}));
      });
      world.at(2, [&](LiveService& service) {
        if (service.job(kRoot, job)->state == LiveState::Running) {
          world.crash_at(world.points_passed() + point, kind);
          suspend(service, job);
        }
      });
      world.crash_at_time(500, CrashKind::Kill);
      world.at(900, [&](LiveService& service) {
        EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Suspended);
        EXPECT_EQ(service.job(kRoot, job)->reason, "suspended by root");
        EXPECT_LT(world.host().seconds_done(job), 2);
      });
      world.at(1000, [&](LiveService& service) { resume(service, job); });
      world.run();
      expect_clean(world);
      EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
      EXPECT_NEAR(world.host().seconds_done(job), 10, 1.1);  // a power loss takes the first second
      EXPECT_GT(world.over().at(job).ended - world.over().at(job).submitted, 1'000'000'000);
    }
  }
}

TEST(Suspend, SurvivesAnotherPolicy) {
  for (const char* policy : {"fifo", "srtf", "tiresias-l", "gandiva"}) {
    SCOPED_TRACE(policy);
    LiveWorld world{{.cluster = "1x2"}};
    JobNumber job = 0;
    world.at(1, [&](LiveService& service) { job = world.submit(service, spec_of({"run", "10"})); });
    world.at(3, [&](LiveService& service) { suspend(service, job); });
    world.at(10, [&](LiveService& service) { ASSERT_TRUE(service.set_policy(kRoot, policy, {})); });
    world.at(900, [&](LiveService& service) {
      EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Suspended);
      EXPECT_LT(world.host().seconds_done(job), 3);
    });
    world.at(1000, [&](LiveService& service) { resume(service, job); });
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).attempts, 1);
  }
}

// Its devices are needed: the attempt goes, the wish stays. Nobody starts it before it is resumed.
TEST(Suspend, OutlivesTheAttempt) {
  LiveWorld world{
      {.cluster = "1x1",
       .scheduling = {.policy = {.policy = "priority", .settings = {{"preempt_classes", "all"}}}}}};
  JobNumber low = 0, high = 0;
  world.at(1, [&](LiveService& service) { low = world.submit(service, spec_of({"run", "100"})); });
  world.at(11, [&](LiveService& service) { suspend(service, low, "too hot"); });
  world.at(20, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "10"});
    spec.priority = 5;
    high = world.submit(service, spec);
  });
  world.crash_at_time(500, CrashKind::Kill);
  world.at(900, [&](LiveService& service) {
    const auto view = service.job(kRoot, low);
    EXPECT_EQ(view->state, LiveState::Suspended);
    EXPECT_EQ(view->granted, 0);
    EXPECT_EQ(view->reason, "suspended by root: too hot");
    EXPECT_EQ(service.job(kRoot, high)->state, LiveState::Completed);
    const Why why = world.why(low);
    ASSERT_EQ(why.reasons.size(), 1U);
    EXPECT_EQ(why.reasons.front().kind, "suspension");
    EXPECT_EQ(why.reasons.front().who, "operator");
    EXPECT_EQ(why.summary, "suspended by root: too hot");
  });
  world.at(1000, [&](LiveService& service) { resume(service, low); });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(low).state, LiveState::Completed);
  EXPECT_EQ(world.over().at(low).attempts, 2);
}

// Two jobs take turns on a device. The one that a person has suspended gets no more of them, and
// waking it does not put it beside the other.
TEST(Suspend, IsNotUndoneByATurn) {
  LiveWorld world{
      {.cluster = "1x1",
       .scheduling = {.policy = {.policy = "gandiva", .settings = {{"packing", "off"}}}}}};
  JobNumber first = 0, second = 0;
  world.at(1, [&](LiveService& service) {
    first = world.submit(service, spec_of({"run", "1000"}));
    second = world.submit(service, spec_of({"run", "1000"}));
  });
  world.at(150, [&](LiveService& service) {
    suspend(service, first);
    const auto results = service.act(kRoot, Verb::Suspend, only(first), "", 0);
    EXPECT_EQ(results->front().text, "job 1 is suspended already");
  });
  double before = 0;
  world.at(160, [&](LiveService&) { before = world.host().seconds_done(first); });
  world.crash_at_time(700, CrashKind::Kill);
  world.at(1700, [&](LiveService& service) {
    EXPECT_NEAR(world.host().seconds_done(first), before, 1e-3);
    EXPECT_GT(world.host().seconds_done(second), before + 100);  // because its turns go on
    resume(service, first);
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(first).state, LiveState::Completed);
  EXPECT_EQ(world.over().at(second).state, LiveState::Completed);
}

TEST(Suspend, WhyOfASleeperSaysWhoAndWhatWouldWakeIt) {
  LiveWorld world{{}};
  JobNumber job = 0;
  world.at(1, [&](LiveService& service) {
    job = world.submit(service, spec_of({"run", "10"}, 2));
  });
  world.at(3, [&](LiveService& service) { suspend(service, job, "demo at noon"); });
  world.at(5, [&](LiveService&) {
    const Why why = world.why(job);
    EXPECT_EQ(why.summary, "is asleep on 2 GPUs: suspended by root: demo at noon");
    ASSERT_EQ(why.reasons.size(), 1U);
    EXPECT_EQ(why.reasons.front().kind, "suspension");
    EXPECT_EQ(why.would_start, std::vector<std::string>{"berth resume 1"});
  });
  world.at(6, [&](LiveService& service) { resume(service, job); });
  world.run();
  expect_clean(world);
}

}  // namespace
}  // namespace berth::test::suspend_tests
