// What the scheduler keeps whatever the policy: nobody is stopped a moment after it began, and a
// job that cannot save its work makes way for the same rival only once. So every job ends.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test::min_run_tests {
namespace {

SchedulerOptions under(const std::string& policy, std::int64_t min_run, Settings settings = {}) {
  return {.policy = {.policy = policy, .settings = std::move(settings)}, .min_run = min_run};
}

SchedulerOptions by_priority(std::int64_t min_run) {
  return under("priority", min_run, {{"preempt_classes", "all"}});
}

JobSpec important(std::vector<std::string> command) {
  JobSpec spec = spec_of(std::move(command));
  spec.priority = 5;
  return spec;
}

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

double ended(const LiveWorld& world, JobNumber job) {
  const JobView& view = world.over().at(job);
  return static_cast<double>(view.ended - view.submitted) * 1e-6;
}

TEST(MinRun, NobodyIsPreemptedBefore) {
  LiveWorld world{{.cluster = "1x1", .scheduling = by_priority(60)}};
  JobNumber low = 0, high = 0;
  world.at(1, [&](LiveService& service) { low = world.submit(service, spec_of({"run", "100"})); });
  world.at(3, [&](LiveService& service) {
    high = world.submit(service, important({"run", "10"}));
  });
  world.at(50, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, low)->state, LiveState::Running);
    const auto waits = service.job(kRoot, high);
    EXPECT_EQ(waits->state, LiveState::Pending);
    EXPECT_EQ(waits->reason, "waits until job 1 has run 60 s");
    const Why why = world.why(high);
    ASSERT_EQ(why.reasons.size(), 1U);
    EXPECT_EQ(why.reasons.front().text, "waits until job 1 has run 60 s");
    EXPECT_EQ(why.reasons.front().when, "until");
    EXPECT_NEAR(static_cast<double>(*why.reasons.front().until - world.wall_micros()) * 1e-6, 11,
                0.1);
  });
  world.at(65, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, high)->state, LiveState::Running);
    EXPECT_EQ(service.job(kRoot, low)->state, LiveState::Pending);
  });
  world.run();
  expect_clean(world);
  EXPECT_NEAR(ended(world, high), 58 + 10, 1);
  EXPECT_EQ(world.over().at(low).preemptions, 1);
}

TEST(MinRun, ZeroStopsAtOnce) {
  LiveWorld world{{.cluster = "1x1", .scheduling = by_priority(0)}};
  JobNumber low = 0, high = 0;
  world.at(1, [&](LiveService& service) { low = world.submit(service, spec_of({"run", "100"})); });
  world.at(3, [&](LiveService& service) {
    high = world.submit(service, important({"run", "10"}));
  });
  world.run();
  expect_clean(world);
  EXPECT_NEAR(ended(world, high), 10, 1);
}

// Preempted on paper only: it was done before its time was over.
TEST(MinRun, WhoEndsMeanwhileIsDone) {
  LiveWorld world{{.cluster = "1x1", .scheduling = by_priority(60)}};
  JobNumber low = 0, high = 0;
  world.at(1, [&](LiveService& service) { low = world.submit(service, spec_of({"run", "20"})); });
  world.at(3, [&](LiveService& service) {
    high = world.submit(service, important({"run", "10"}));
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(low).state, LiveState::Completed);
  EXPECT_EQ(world.over().at(low).attempts, 1);
  EXPECT_EQ(world.over().at(low).preemptions, 0);
  EXPECT_NEAR(ended(world, high), 18 + 10, 1);
}

// The rival is gone before it came: the policy gives the devices back, and nothing has happened.
TEST(MinRun, WhoIsGivenItsDevicesBackGoesOn) {
  LiveWorld world{{.cluster = "1x1", .scheduling = by_priority(60)}};
  JobNumber low = 0, high = 0;
  world.at(1, [&](LiveService& service) { low = world.submit(service, spec_of({"run", "100"})); });
  world.at(3, [&](LiveService& service) {
    high = world.submit(service, important({"run", "10"}));
  });
  world.at(30, [&](LiveService& service) {
    const JobFilter only{.states = {}, .numbers = {high}};
    ASSERT_TRUE(service.act(kRoot, Verb::Cancel, only, "", 0));
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(low).attempts, 1);
  EXPECT_NEAR(ended(world, low), 100, 1);
}

// What people want happens at once: the rule holds policies back, not them.
TEST(MinRun, PeopleDoNotWait) {
  LiveWorld world{{.cluster = "2x1", .scheduling = by_priority(600)}};
  JobNumber cancelled = 0, again = 0;
  world.at(1, [&](LiveService& service) {
    cancelled = world.submit(service, spec_of({"run", "100"}));
    again = world.submit(service, spec_of({"run", "100"}));
  });
  world.at(3, [&](LiveService& service) {
    ASSERT_TRUE(service.act(kRoot, Verb::Cancel, {.states = {}, .numbers = {cancelled}}, "", 0));
    ASSERT_TRUE(service.act(kRoot, Verb::Requeue, {.states = {}, .numbers = {again}}, "", 0));
  });
  world.run();
  expect_clean(world);
  EXPECT_LT(ended(world, cancelled), 5);
  EXPECT_EQ(world.over().at(again).attempts, 2);
}

TEST(MinRun, ANodeThatGoesDownTakesItsJobsAtOnce) {
  LiveWorld world{{.cluster = "2x1", .scheduling = by_priority(600)}};
  JobNumber job = 0;
  std::string node;
  world.at(1, [&](LiveService& service) { job = world.submit(service, spec_of({"run", "50"})); });
  world.at(3, [&](LiveService& service) {
    node = service.job(kRoot, job)->where.front().node;
    ASSERT_TRUE(service.set_node(kRoot, node, "down", "smoke"));
  });
  world.at(20, [&](LiveService& service) {
    const auto view = service.job(kRoot, job);
    ASSERT_EQ(view->state, LiveState::Running);
    EXPECT_NE(view->where.front().node, node);
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(job).attempts, 2);
}

// A crash forgets who makes way, not since when it runs. (The clock of this world stands still from
// the last record to the crash, so that what is 60 s to the scheduler is more to others.)
TEST(MinRun, HoldsOverCrashes) {
  for (const CrashKind kind : {CrashKind::Kill, CrashKind::Controller}) {
    LiveWorld world{{.cluster = "1x1", .scheduling = by_priority(60)}};
    JobNumber low = 0, high = 0;
    world.at(1, [&](LiveService& service) {
      if (low == 0) low = world.submit(service, spec_of({"run", "100"}));
    });
    world.at(3, [&](LiveService& service) {
      if (high == 0) high = world.submit(service, important({"run", "10"}));
    });
    world.crash_at_time(20, kind);
    world.crash_at_time(40, kind);
    world.at(59, [&](LiveService& service) {
      EXPECT_EQ(service.job(kRoot, low)->state, LiveState::Running);
    });
    world.run();
    expect_clean(world);
    EXPECT_GE(ended(world, high), 58 + 10);
    EXPECT_LT(ended(world, high), ended(world, low));
    EXPECT_EQ(world.over().at(low).attempts, 2);
  }
}

TEST(MinRun, WhoMayNotBePreemptedIsNot) {
  LiveWorld world{{.cluster = "1x1", .scheduling = by_priority(60)}};
  JobNumber low = 0, high = 0;
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "100"});
    spec.preemptible = false;
    low = world.submit(service, spec);
  });
  world.at(3, [&](LiveService& service) {
    high = world.submit(service, important({"run", "10"}));
  });
  world.at(80, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, high)->reason,
              "waits until job 1 ends: that one may not be preempted");
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(low).attempts, 1);
  EXPECT_NEAR(ended(world, high), 98 + 10, 1);
}

// Longer than min_run, without a checkpoint, one device: taking turns would never end.
TEST(MinRun, JobsThatCannotSaveAllEnd) {
  for (const char* policy :
       {"las", "las-2d", "ftf-fractional", "srtf", "tiresias-l", "gavel-las"}) {
    SCOPED_TRACE(policy);
    LiveWorld world{{.cluster = "1x1", .scheduling = under(policy, 60), .deadline = 20'000}};
    for (int i = 0; i < 3; ++i) {
      world.at(1 + i, [&](LiveService& service) {
        static_cast<void>(world.submit(service, spec_of({"anew", "90"})));
      });
    }
    world.crash_at_time(100, CrashKind::Kill);
    world.run();
    expect_clean(world);
    for (const auto& [job, view] : world.over())
      EXPECT_EQ(view.state, LiveState::Completed) << "job " << job;
    EXPECT_EQ(world.over().size(), 3U);
  }
}

// A job that saves loses nothing and may take turns for ever.
TEST(MinRun, WhoSavesMakesWayAsOftenAsThePolicyWants) {
  LiveWorld world{{.cluster = "1x1", .scheduling = under("las", 10, {{"quantum", "5"}})}};
  for (int i = 0; i < 2; ++i) {
    world.at(1 + i, [&](LiveService& service) {
      JobSpec spec = spec_of({"run", "100"});
      spec.warn_signal = 10;
      static_cast<void>(world.submit(service, spec));
    });
  }
  world.run();
  expect_clean(world);
  for (const auto& [job, view] : world.over()) EXPECT_GE(view.preemptions, 3) << "job " << job;
}

}  // namespace
}  // namespace berth::test::min_run_tests
