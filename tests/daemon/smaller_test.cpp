// A machine that is smaller at its next start: a card has fallen off the bus. Jobs that were taken
// wait for it to come back.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test::smaller_tests {
namespace {

const std::vector<std::string> kNone;

TEST(Smaller, AJobThatNoLongerFitsWaitsAndRunsWhenItDoes) {
  LiveWorld world{{.cluster = "1x4"}};
  world.at(0, [&](LiveService& service) {
    world.submit(service, spec_of({"run", "100"}, 4));  // runs until 100
    world.submit(service, spec_of({"run", "100"}, 4));
    world.submit(service, spec_of({"run", "100"}, 2));
  });
  world.crash_at_time(50, CrashKind::Power);
  ASSERT_TRUE(world.live());
  world.set_cluster("1x2");
  bool looked = false;
  world.at(400, [&](LiveService& service) {
    looked = true;
    for (const JobNumber job : {1U, 2U}) {
      const auto view = service.job(kRoot, job);
      ASSERT_TRUE(view);
      EXPECT_EQ(view->state, LiveState::Blocked) << job;
      EXPECT_EQ(to_string(view->code), "cluster-too-small");
      EXPECT_EQ(view->reason,
                "needs 4 GPUs of one type, the cluster has at most 2; it fitted when it was taken "
                "and waits until it does again");
      EXPECT_EQ(world.why(job).reasons.front().kind, "fit");
    }
    EXPECT_EQ(service.job(kRoot, 3)->state, LiveState::Completed);  // nobody stands in its way
    // Its place is another matter than its name; new ones are refused at the door.
    EXPECT_TRUE(service.change(kRoot, 1, R"({"name":"patient"})"));
    EXPECT_FALSE(service.change(kRoot, 1, R"({"gpus":3})"));
    EXPECT_FALSE(service.submit(kRoot, spec_of({"run", "100"}, 4)));
    // Another policy, another engine: the same.
    EXPECT_TRUE(service.set_policy(kRoot, "fifo", {}));
  });
  world.at(500, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, 1)->state, LiveState::Blocked);
    EXPECT_TRUE(service.change(kRoot, 2, R"({"gpus":2})"));  // asks for less: runs
  });
  world.at(700, [](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, 2)->state, LiveState::Completed);
    EXPECT_EQ(service.job(kRoot, 1)->state, LiveState::Blocked);
  });
  world.crash_at_time(800, CrashKind::Kill);
  ASSERT_TRUE(world.live());
  world.set_cluster("1x4");
  world.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(world.over().at(1).state, LiveState::Completed);
}

TEST(Smaller, APersonEndsItAndNobodyElse) {
  LiveWorld world{{.cluster = "1x2"}};
  world.at(0, [&](LiveService& service) {
    world.submit(service, spec_of({"run", "1000"}, 1));
    world.submit(service, spec_of({"run", "100"}, 2));
    JobSpec after = spec_of({"run", "1"}, 1);
    after.dependencies = {{DependencyKind::AfterAny, 2}};
    world.submit(service, after);
  });
  world.crash_at_time(50, CrashKind::Kill);
  ASSERT_TRUE(world.live());
  world.set_cluster("1x1");
  world.at(5'000, [](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, 2)->state, LiveState::Blocked);
    EXPECT_EQ(service.job(kRoot, 3)->state, LiveState::Blocked);
    static_cast<void>(service.act(kRoot, Verb::Cancel, {.numbers = {2}}, "", 0));
  });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(world.over().at(2).state, LiveState::Cancelled);
  EXPECT_EQ(world.over().at(3).state, LiveState::Completed);
}

// A process whose device has gone may know better than we do: it goes on until it ends, and nobody
// is put on what it has left.
TEST(Smaller, WhatRunsOnADeviceThatHasGoneIsLeftAlone) {
  LiveWorld world{{.cluster = "1x4"}};
  world.at(0, [&](LiveService& service) {
    world.submit(service, spec_of({"run", "100"}, 1));
    world.submit(service, spec_of({"run", "1000"}, 2));  // on devices 1 and 2
    world.submit(service, spec_of({"run", "1000"}, 1));  // on device 3
  });
  world.crash_at_time(50, CrashKind::Kill);
  ASSERT_TRUE(world.live());
  world.set_cluster("1x2");
  world.at(200, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, 2)->state, LiveState::Running);
    EXPECT_EQ(service.job(kRoot, 3)->state, LiveState::Running);
    world.submit(service, spec_of({"run", "10"}, 2));
  });
  world.at(900, [](LiveService& service) {
    EXPECT_NE(service.job(kRoot, 4)->state, LiveState::Completed);  // waits for device 1
  });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  for (const JobNumber job : {1U, 2U, 3U, 4U})
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed) << job;
}

}  // namespace
}  // namespace berth::test::smaller_tests
