// Fair share in the whole scheduler: standing by what the store remembers, minimum runs, no loops.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "daemon/share_settings.h"
#include "support/live_world.h"

namespace berth::test {
namespace {

Caller user(const std::string& name) {
  return {.user = name, .uid = 1000, .gid = 1000, .role = Role::User};
}

JobNumber submit(LiveService& service, const std::string& name, const std::string& seconds,
                 std::int32_t gpus = 1, std::int32_t priority = 0) {
  JobSpec spec = spec_of({"run", seconds}, gpus);
  spec.user = name;
  spec.priority = priority;
  const auto answer = service.submit(priority > 0 ? kRoot : user(name), spec);
  EXPECT_TRUE(answer) << answer.error().messages.front();
  return answer ? answer->first : 0;
}

SchedulerOptions fair(Settings settings = {}) {
  return {.policy = {.policy = "fair-share", .settings = std::move(settings)}};
}

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

/// bob has used 100 GPU-seconds, then somebody else's job runs while bob and alice come.
void two_users(LiveWorld& world, std::vector<std::string>& order, double crash_at = 0) {
  world.at(1, [](LiveService& service) { submit(service, "bob", "100"); });
  if (crash_at > 0) {
    world.at(crash_at, [done = std::make_shared<bool>(false)](LiveService&) {
      if (!std::exchange(*done, true)) throw CrashHere{};
    });
    world.crash_at(1'000'000, CrashKind::Power);  // not reached: the script throws
  }
  world.at(110, [](LiveService& service) { submit(service, "carol", "50"); });
  world.at(120, [](LiveService& service) { submit(service, "bob", "20"); });
  world.at(130, [](LiveService& service) { submit(service, "alice", "20"); });
  world.at(170, [&](LiveService& service) {
    const auto page = service.jobs(kRoot, {});
    ASSERT_TRUE(page);
    for (const JobView& view : page->jobs)
      order.push_back(fmt::format("{} {}", view.spec->user, to_string(view.state)));
  });
}

TEST(FairShareLive, WhoIsOverItsShareWaitsBehindWhoIsUnder) {
  LiveWorld world{{.cluster = "1x1", .scheduling = fair()}};
  std::vector<std::string> order;
  two_users(world, order);
  world.run();
  expect_clean(world);
  std::ranges::sort(order);
  EXPECT_EQ(order, (std::vector<std::string>{"alice running", "bob pending"}));
}

TEST(FairShareLive, ALargerShareAllowsMoreUse) {
  LiveWorld world{{.cluster = "1x1", .scheduling = fair()}};
  std::vector<std::string> order;
  world.at(0.5, [](LiveService& service) {
    ASSERT_TRUE(service.set_share(kRoot, {.kind = "user", .name = "bob", .shares = 10}));
    ASSERT_TRUE(service.set_share(kRoot, {.kind = "user", .name = "alice", .shares = 0.01}));
  });
  // alice comes with 1 GPU-second behind her: 1 / 0.01 = 100 per share against bob's 100 / 10.
  world.at(102, [](LiveService& service) { submit(service, "alice", "1"); });
  two_users(world, order);
  world.run();
  expect_clean(world);
  std::ranges::sort(order);
  EXPECT_EQ(order, (std::vector<std::string>{"alice pending", "bob running"}));
}

/// Without the store bob and alice would be equal after the restart, and bob came first.
TEST(FairShareLive, ARestartKeepsTheStanding) {
  LiveWorld world{{.cluster = "1x1", .scheduling = fair()}};
  std::vector<std::string> order;
  two_users(world, order, 105);
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.lives(), 2);
  std::ranges::sort(order);
  EXPECT_EQ(order, (std::vector<std::string>{"alice running", "bob pending"}));
}

/// Shares are on record, and the engine that died has not heard of them.
TEST(FairShareLive, AShareThatIsSetInTheMomentOfAKillCounts) {
  LiveWorld world{{.cluster = "1x1", .scheduling = fair()}};
  std::vector<std::string> order;
  world.at(102, [](LiveService& service) { submit(service, "alice", "1"); });
  two_users(world, order, 105);
  ASSERT_TRUE(world.live());
  for (const ShareView& share : {ShareView{.kind = "user", .name = "bob", .shares = 10},
                                 ShareView{.kind = "user", .name = "alice", .shares = 0.01}})
    world.plant(SettingRecord{.key = share_key(share), .value = to_setting(share), .by = "root"});
  world.run();
  expect_clean(world);
  std::ranges::sort(order);
  EXPECT_EQ(order, (std::vector<std::string>{"alice pending", "bob running"}));
}

/// What still runs is counted from its own start, not from that of the scheduler.
TEST(FairShareLive, ARestartCountsWhatRuns) {
  LiveWorld world{{.cluster = "1x2", .scheduling = fair({{"advance", "0"}})}};
  JobNumber bobs = 0, alices = 0;
  world.at(1, [](LiveService& service) { submit(service, "bob", "100"); });
  world.at(2, [](LiveService& service) { submit(service, "alice", "30"); });
  world.at(40, [done = false](LiveService&) mutable {
    if (!std::exchange(done, true)) throw CrashHere{};
  });
  world.crash_at(1'000'000, CrashKind::Kill);
  world.at(45, [](LiveService& service) { submit(service, "carol", "10"); });
  world.at(50, [&](LiveService& service) { bobs = submit(service, "bob", "10"); });
  world.at(51, [&](LiveService& service) { alices = submit(service, "alice", "10"); });
  std::int64_t bob_started = 0, alice_started = 0;
  world.at(90, [&](LiveService& service) {
    bob_started = service.job(kRoot, bobs)->started;
    alice_started = service.job(kRoot, alices)->started;
  });
  world.run();
  expect_clean(world);
  // At 55 bob has used 54 s (his job runs), alice 30: she is first.
  EXPECT_LT(alice_started, bob_started);
}

TEST(FairShareLive, KeepsTheMinimumRunAndTheUsersWord) {
  LiveWorld world{
      {.cluster = "1x2", .scheduling = fair({{"preempt", "priority"}, {"min_run", "60"}})}};
  JobNumber low = 0, fixed = 0, high = 0;
  world.at(1, [&](LiveService& service) { low = world.submit(service, spec_of({"run", "200"})); });
  world.at(11, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "200"});
    spec.preemptible = false;
    fixed = world.submit(service, spec);
  });
  world.at(20, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "10"}, 2);
    spec.gpus = 1;
    spec.priority = 5;
    high = world.submit(service, spec);
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(low).preemptions, 1);
  EXPECT_EQ(world.over().at(fixed).preemptions, 0) << "it would have lost less work";
  const double waited =
      static_cast<double>(world.over().at(high).started - world.over().at(low).started) * 1e-6;
  EXPECT_NEAR(waited, 60, 0.1);
  EXPECT_NEAR(world.host().seconds_done(low), 200, 0.1);
}

/// Two users who always have more to do than there are GPUs, one of them with all the long jobs.
TEST(FairShareLive, TwoGreedyUsersForADay) {
  LiveWorld world{{.cluster = "1x4", .scheduling = fair({{"preempt", "both"}})}};
  std::map<std::string, std::vector<JobNumber>> jobs;
  const auto add = [&](LiveService& service, const char* name, const char* seconds, int gpus) {
    JobSpec spec = spec_of({"run", seconds}, gpus);
    spec.user = name;
    jobs[name].push_back(world.submit(service, spec));
  };
  for (int hour = 0; hour < 24; ++hour) {
    world.at(1 + hour * 3600, [&](LiveService& service) {
      for (int i = 0; i < 2; ++i) add(service, "ann", "7200", 1);
      add(service, "ben", "3600", 2);
      add(service, "ben", "1200", 1);
    });
  }
  double ann = 0, ben = 0;
  world.at(24 * 3600, [&](LiveService& service) {
    for (const ShareView& share : service.shares(kRoot)) {
      if (share.name == "ann") ann = share.gpu_seconds;
      if (share.name == "ben") ben = share.gpu_seconds;
    }
  });
  world.run();
  expect_clean(world);
  int preemptions = 0;
  for (const auto& [name, numbers] : jobs) {
    for (const JobNumber number : numbers) {
      const JobView& view = world.over().at(number);
      EXPECT_EQ(view.state, LiveState::Completed);
      EXPECT_GE(view.run_seconds + 1, view.preemptions * 600.0) << "job " << number;
      preemptions += view.preemptions;
    }
  }
  // 24 h x 4 GPUs / 10 min = 576 is what min_run alone would allow while both are there.
  EXPECT_LT(preemptions, 200);
  EXPECT_GT(ann, 0);
  EXPECT_NEAR(ann / (ann + ben), 0.5, 0.15) << "equal shares of what was used";
}

}  // namespace
}  // namespace berth::test
