// What a policy decides reaches the processes, and nothing else does: kills of jobs that wait,
// retries by the class of a failure, how much of the time a job runs; and what no policy may do.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "policies/registry.h"
#include "support/live_world.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

SchedulerOptions under(const std::string& policy, Settings settings = {},
                       std::int64_t min_run = 0) {
  return {.policy = {.policy = policy, .settings = std::move(settings)}, .min_run = min_run};
}

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

/// Who submits it twice, because the scheduler died before it answered, means the same job.
JobSpec keyed(JobSpec spec, int i) {
  spec.key = fmt::format("key-{}", i);
  return spec;
}

JobSpec trial(LiveWorld& world, std::int64_t deadline_in) {
  JobSpec spec = spec_of({"run", "1000"});
  spec.study = "lr";
  spec.deadline = world.wall_micros() / 1'000'000 + deadline_in;
  return spec;
}

// At the deadline of a study all its trials end, also those that never got a device.
TEST(Kill, OfAWaitingJobEndsIt) {
  LiveWorld world{{.cluster = "1x1", .scheduling = under("hpo")}};
  std::vector<JobNumber> trials;
  world.at(1, [&](LiveService& service) {
    for (int i = 0; i < 3; ++i) trials.push_back(world.submit(service, trial(world, 50)));
  });
  world.run();
  expect_clean(world);
  ASSERT_EQ(trials.size(), 3U);
  for (const JobNumber job : trials) {
    ASSERT_TRUE(world.over().contains(job)) << job;
    EXPECT_EQ(world.over().at(job).state, LiveState::Cancelled);
    EXPECT_EQ(world.over().at(job).reason, "ended by the policy: deadline");
  }
  EXPECT_LT(world.seconds(), 100);
}

TEST(Kill, HoldsThroughACrashAtAnyPoint) {
  for (std::uint64_t point = 1;; ++point) {
    LiveWorld world{{.cluster = "1x1", .scheduling = under("hpo")}};
    world.at(1, [&](LiveService& service) {
      for (int i = 0; i < 3; ++i) world.submit(service, keyed(trial(world, 50), i));
    });
    world.crash_at(point, CrashKind::Kill);
    world.run();
    expect_clean(world);
    for (const auto& [job, view] : world.over()) EXPECT_EQ(view.state, LiveState::Cancelled);
    EXPECT_EQ(world.over().size(), 3U) << "point " << point;
    ASSERT_FALSE(HasFailure());
    if (world.lives() == 1) break;  // it never came so far
  }
}

/// Two jobs on one device that slow each other down; how fast one is is known after 35 s under the
/// same conditions, while gandiva looks every ten. Do both run once it has had time to try?
bool are_packed_in_the_end(double beside) {
  LiveWorld world{{.cluster = "1x1",
                   .scheduling = under("gandiva", {{"slice", "60"},
                                                   {"switch_cost", "0"},
                                                   {"tick", "10"},
                                                   {"pack_probe", "1"},
                                                   {"migration", "off"},
                                                   {"growing", "off"}}),
                   .host = {.device_limit = 2},
                   .hears_progress = true,
                   .honest = {.until_pace = 35, .beside = beside}}};
  std::vector<JobNumber> jobs;
  world.at(1, [&](LiveService& service) {
    for (int i = 0; i < 2; ++i) jobs.push_back(world.submit(service, spec_of({"run", "2000"})));
  });
  bool both = true;
  bool ever = false;
  for (int at = 20; at < 1000; at += 10) {
    world.at(at, [&, at](LiveService&) {
      const bool now = world.host().runs_since(jobs[0]) && world.host().runs_since(jobs[1]);
      ever = ever || now;
      if (at > 500) both = both && now;
    });
  }
  world.run();
  expect_clean(world);
  EXPECT_TRUE(ever);  // it was tried
  return both;
}

// By belief two that nothing is known of are 1.5 times as slow beside each other, which is better
// than turns. What is true of this pair is known only after it has run together for a while.
TEST(Packing, IsJudgedByWhatWasMeasuredOfThePair) {
  EXPECT_FALSE(are_packed_in_the_end(3));
  EXPECT_TRUE(are_packed_in_the_end(1.05));
}

// The first has had its ten seconds and makes way, but ignores the warning for 30 s. The second
// holds nothing meanwhile: counted as service, that would bring it behind the first before it has
// begun.
TEST(Service, IsNotCountedWhileAStartWaits) {
  LiveWorld world{
      {.cluster = "1x1", .scheduling = under("tiresias-l", {{"thresholds", "10,1000000"}})}};
  JobNumber second = 0;
  world.at(1, [&](LiveService& service) { world.submit(service, spec_of({"stubborn", "500"})); });
  world.at(30, [&](LiveService& service) {
    second = world.submit(service, spec_of({"run", "8"}));
  });
  double began = 0;
  for (int at = 31; at < 100; ++at) {
    world.at(at, [&](LiveService&) {
      if (began == 0 && world.host().runs_since(second)) began = world.seconds();
    });
  }
  world.run();
  expect_clean(world);
  EXPECT_GT(began, 59);
  EXPECT_LT(began, 63);
  EXPECT_EQ(world.over().at(second).preemptions, 0);
  EXPECT_EQ(world.over().at(second).attempts, 1);
}

std::set<std::int32_t> devices_of(LiveService& service, JobNumber job) {
  std::set<std::int32_t> devices;
  const auto view = service.job(kRoot, job);
  for (const HeldDevices& held : view->where)
    devices.insert(held.devices.begin(), held.devices.end());
  return devices;
}

// The lowest devices are free when it grows from one, which is not among them, to two.
TEST(Growth, UnderOptimusKeepsTheDevicesThatItHas) {
  LiveWorld world{{.cluster = "1x4", .scheduling = under("optimus", {{"interval", "150"}})}};
  JobNumber grows = 0;
  world.at(1, [&](LiveService& service) {
    for (const char* seconds : {"100", "100"}) world.submit(service, spec_of({"run", seconds}));
    JobSpec spec = spec_of({"run", "5000"});
    spec.gpus_min = 1;
    spec.gpus_max = 2;
    spec.estimate = 5000;
    spec.model = "resnet50";
    grows = world.submit(service, spec);
    world.submit(service, spec_of({"run", "5000"}));
  });
  std::set<std::int32_t> before, after;
  world.at(100, [&](LiveService& service) { before = devices_of(service, grows); });
  world.at(400, [&](LiveService& service) { after = devices_of(service, grows); });
  world.run();
  expect_clean(world);
  ASSERT_EQ(before, (std::set<std::int32_t>{2}));
  ASSERT_EQ(after.size(), 2U);
  EXPECT_TRUE(after.contains(2));
}

JobView after_failures(const std::string& policy, const std::string& exit_code,
                       std::int32_t max_retries = 0) {
  LiveWorld world{{.cluster = "1x1", .scheduling = under(policy)}};
  JobNumber job = 0;
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "5", exit_code});
    spec.max_retries = max_retries;
    job = world.submit(service, spec);
  });
  world.run();
  expect_clean(world);
  return world.over().at(job);
}

// Philly: what the cluster did is tried up to three times more, what the user did is not.
TEST(Retries, GoByTheClassOfTheFailure) {
  const JobView lost = after_failures("philly", "75");  // EX_TEMPFAIL
  EXPECT_EQ(lost.state, LiveState::Failed);
  EXPECT_EQ(lost.attempts, 4);
  EXPECT_EQ(lost.reason, "exit code 75");
  EXPECT_EQ(after_failures("philly", "65").attempts, 1);    // EX_DATAERR
  EXPECT_EQ(after_failures("philly", "1", 5).attempts, 1);  // nobody knows: final
  EXPECT_EQ(after_failures("fifo", "75").attempts, 1);      // who has no say leaves it to users
  EXPECT_EQ(after_failures("fifo", "65", 2).attempts, 3);
}

TEST(Retries, EndTheSameWithACrashAtAnyPoint) {
  for (std::uint64_t point = 1;; ++point) {
    LiveWorld world{{.cluster = "1x1", .scheduling = under("philly")}};
    world.at(1, [&](LiveService& service) {
      world.submit(service, keyed(spec_of({"flaky", "5", "1"}), 1));
      world.submit(service, keyed(spec_of({"run", "5", "75"}), 2));
    });
    world.crash_at(point, CrashKind::Kill);
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().size(), 2U) << "point " << point;
    ASSERT_FALSE(HasFailure());
    if (world.lives() == 1) break;
  }
}

TEST(Throttle, AnOpportunisticJobIsHeldBackWhileAGuaranteedOneIsBesideIt) {
  LiveWorld world{{.cluster = "1x1", .scheduling = under("antman"), .host = {.device_limit = 2}}};
  JobNumber firm = 0, guest = 0;
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "100"});
    firm = world.submit(service, spec);
    spec.priority = -1;
    spec.command = {"run", "200"};
    guest = world.submit(service, spec);
  });
  world.at(50, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, firm)->state, LiveState::Running);
    EXPECT_EQ(service.job(kRoot, guest)->state, LiveState::Running);
    EXPECT_EQ(world.host().rate_of(firm), 1000);
    EXPECT_LT(world.host().rate_of(guest), 900);
    EXPECT_GE(world.host().rate_of(guest), 10);
  });
  world.at(150, [&](LiveService&) { EXPECT_EQ(world.host().rate_of(guest), 1000); });
  world.run();
  expect_clean(world);
}

class EveryPolicyLive : public ::testing::TestWithParam<std::string> {};

/// Whoever may not be preempted is neither stopped nor made to stand still, however much others
/// want its devices.
TEST_P(EveryPolicyLive, NeverStopsWhoMayNotBePreempted) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    LiveWorld world{{.cluster = "2x2",
                     .scheduling = under(GetParam()),
                     .host = {.device_limit = 8},
                     .seed = seed}};
    Rng rng{seed};
    std::vector<JobNumber> firm;
    for (int i = 0; i < 14; ++i) {
      JobSpec spec = spec_of({"run", fmt::format("{}", 20 + rng.below(2000))},
                             static_cast<std::int32_t>(1 + rng.below(2)));
      spec.preemptible = i % 3 != 0;
      spec.priority = static_cast<std::int32_t>(rng.below(4)) - 1;
      spec.estimate = 10 + static_cast<std::int64_t>(rng.below(3000));
      spec.user = rng.below(2) == 0 ? "alice" : "bob";
      world.at(1 + static_cast<double>(rng.below(600)),
               [&world, &firm, spec](LiveService& service) {
                 const JobNumber job = world.submit(service, spec);
                 if (!spec.preemptible) firm.push_back(job);
               });
    }
    world.run();
    expect_clean(world);
    EXPECT_EQ(firm.size(), 5U);
    for (const JobNumber job : firm) {
      if (world.over().at(job).state == LiveState::Rejected) continue;
      EXPECT_EQ(world.over().at(job).preemptions, 0) << job;
      EXPECT_EQ(world.host().disturbances(job), 0) << job;
    }
    ASSERT_FALSE(HasFailure());
  }
}

std::vector<std::string> every_policy() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPolicyLive, ::testing::ValuesIn(every_policy()), kByName);

}  // namespace
}  // namespace berth::test
