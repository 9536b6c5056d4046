// What random lives have found, each in its smallest form.
#include <gtest/gtest.h>

#include "policies/registry.h"
#include "support/random_life.h"

namespace berth::test {
namespace {

JobFilter only(JobNumber job) { return {.states = {}, .numbers = {job}}; }

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

// The policy refuses the one that its array let in: the next one must be asked without an event.
TEST(Found, ARefusedJobLetsTheNextOfItsArrayIn) {
  LiveWorld world{
      {.scheduling = {.policy = {.policy = "priority", .settings = {{"quota", "root:0:1"}}}}}};
  JobNumber first = 0;
  world.at(1, [&](LiveService& service) {
    JobSpec array = spec_of({"run", "10"}, 2);
    array.array = ArraySpec{.indices = {0, 1, 2}, .at_once = 1};
    first = world.submit(service, array);
  });
  world.run();
  expect_clean(world);
  for (JobNumber job = first; job < first + 3; ++job)
    EXPECT_EQ(world.over().at(job).state, LiveState::Rejected);
}

// It was taken once; to write its end without its attempt ended the scheduler.
TEST(Found, ARunningJobThatANewPolicyRefusesGoesOn) {
  LiveWorld world{{}};
  JobNumber runs = 0, waits = 0;
  world.at(1, [&](LiveService& service) {
    runs = world.submit(service, spec_of({"run", "100"}, 2));
    JobSpec held = spec_of({"run", "100"}, 2);
    held.hold = true;
    waits = world.submit(service, held);
  });
  world.at(10, [&](LiveService& service) {
    static_cast<void>(service.set_policy(kRoot, "priority", {{"quota", "root:0:1"}}));
    static_cast<void>(service.act(kRoot, Verb::Release, only(waits), "", 0));
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(runs).state, LiveState::Completed);
  EXPECT_EQ(world.over().at(waits).state, LiveState::Rejected);
}

// The wish was on record and the signal was not sent: recovery has to send it again.
TEST(Found, ASleeperIsWokenAlthoughTheSignalWasLost) {
  for (std::uint64_t point = 1; point <= 12; ++point) {
    SCOPED_TRACE(point);
    LiveWorld world{{}};
    JobNumber job = 0;
    world.at(1, [&](LiveService& service) { job = world.submit(service, spec_of({"run", "10"})); });
    world.at(3, [&](LiveService& service) {
      static_cast<void>(service.act(kRoot, Verb::Suspend, only(job), "", 0));
    });
    world.crash_at_time(5, CrashKind::Kill);
    ASSERT_TRUE(world.live());
    world.crash_at(point, CrashKind::Kill);
    world.at(100, [&](LiveService& service) {
      static_cast<void>(service.act(kRoot, Verb::Resume, only(job), "", 0));
    });
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
  }
}

// Every attempt that begins or ends is a pass. Whoever has just begun has more service than whoever
// waits; if it gave way in such a pass the three would push each other out as fast as processes
// start.
TEST(Found, LeastAttainedServiceTakesTurnsByTheQuantum) {
  for (const char* policy : {"las", "las-2d"}) {
    SCOPED_TRACE(policy);
    LiveWorld world{{.cluster = "2x4",
                     .scheduling = {.policy = {.policy = policy}},
                     .host = {.claim_delay = 20'000}}};
    world.at(1, [&](LiveService& service) {
      for (int i = 0; i < 3; ++i) world.submit(service, spec_of({"run", "600"}, 3));
    });
    world.run();
    expect_clean(world);
    // 1,800 s of work on two nodes: about fifteen quanta, at most two stops in each, four records a
    // stop.
    EXPECT_LT(world.records(), 200U);
  }
}

// It was stopped by name, preempted and started anew before its process was gone. Its end was heard
// as the loss of the new start, whose devices went to somebody else as well.
TEST(Found, AnEndThatComesAfterTheNextStartLosesNothing) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    LiveWorld world{{.cluster = "1x1",
                     .scheduling = {.policy = {.policy = "srtf"}},
                     .seed = seed,
                     .oversleeping = {.most_micros = 1'000, .seconds = 0.5}}};
    const auto estimated = [](const char* kind, const char* seconds, std::int64_t estimate) {
      JobSpec spec = spec_of({kind, seconds});
      spec.estimate = estimate;
      return spec;
    };
    JobNumber stopped = 0, gone = 0;
    world.at(1, [&](LiveService& service) {
      JobSpec spec = estimated("stubborn", "100", 1'000);
      spec.grace_seconds = 20;
      stopped = world.submit(service, spec);
    });
    world.at(5, [&](LiveService& service) {
      static_cast<void>(service.act(kRoot, Verb::Requeue, only(stopped), "", 0));
    });
    world.at(10,
             [&](LiveService& service) { gone = world.submit(service, estimated("run", "5", 5)); });
    world.at(13, [&](LiveService& service) {
      static_cast<void>(service.act(kRoot, Verb::Cancel, only(gone), "", 0));
    });
    world.at(26, [&](LiveService& service) {
      static_cast<void>(world.submit(service, estimated("run", "50", 50)));
    });
    world.run();
    expect_clean(world);
  }
}

// Its end is written once, however often it is cancelled before that, and at its very last moment.
TEST(Found, ACancelThatComesTwiceEndsAJobOnce) {
  for (const double when : {2.0, 11.0}) {  // 11: the job ends by itself
    LiveWorld world{{.cluster = "1x1"}};
    JobNumber job = 0, waiting = 0;
    world.at(1, [&](LiveService& service) {
      job = world.submit(service, spec_of({"run", "10"}));
      waiting = world.submit(service, spec_of({"run", "10"}));
    });
    world.at(when, [&](LiveService& service) {
      for (const JobNumber each : {job, waiting, job, waiting})
        static_cast<void>(service.act(kRoot, Verb::Cancel, only(each), "", 0));
    });
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.lives(), 1);
    EXPECT_EQ(world.over().at(waiting).state, LiveState::Cancelled);
  }
}

// The cancel was on record and the engine had not heard of it. Who asked may ask again or not.
TEST(Found, ACancelOnRecordIsCarriedOutAfterACrash) {
  for (const bool repeats : {false, true}) {
    for (std::uint64_t point = 1; point <= 16; ++point) {
      SCOPED_TRACE(point);
      LiveWorld world{{.cluster = "1x1"}};
      JobNumber first = 0, waiting = 0;
      bool is_asked = false;
      world.at(1, [&](LiveService& service) {
        if (first != 0) return;
        first = world.submit(service, spec_of({"run", "100"}));
        waiting = world.submit(service, spec_of({"run", "10"}));
      });
      world.at(5, [&](LiveService& service) {
        if (std::exchange(is_asked, true) && !repeats) return;
        world.crash_at(world.points_passed() + point, CrashKind::Kill);
        static_cast<void>(service.act(kRoot, Verb::Cancel, only(waiting), "", 0));
      });
      world.run();
      expect_clean(world);
      EXPECT_EQ(world.over().at(first).state, LiveState::Completed);
      const LiveState state = world.over().at(waiting).state;
      EXPECT_TRUE(state == LiveState::Cancelled || (!repeats && state == LiveState::Completed));
    }
  }
}

// A gang on two nodes, one of which is drained: the engine has forgotten it, its devices on the
// other node are not free.
TEST(Found, NobodyIsPutBesideAGangWhoseOtherNodeIsDrained) {
  for (const bool restarts : {false, true}) {
    LiveWorld world{{.cluster = "2x4"}};
    JobNumber gang = 0, next = 0, wide = 0;
    world.at(1, [&](LiveService& service) {
      gang = world.submit(service, spec_of({"run", "100"}, 8));
    });
    world.at(10, [](LiveService& service) {
      static_cast<void>(service.set_node(kRoot, "n1", "drain", "test"));
    });
    if (restarts) world.crash_at_time(15, CrashKind::Kill);
    world.at(20, [&](LiveService& service) {
      next = world.submit(service, spec_of({"run", "5"}, 4));
    });
    world.at(30, [](LiveService& service) {  // back before the gang has ended
      static_cast<void>(service.set_node(kRoot, "n1", "resume", ""));
    });
    world.at(40, [&](LiveService& service) {
      wide = world.submit(service, spec_of({"run", "5"}, 8));
    });
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(gang).attempts, 1);  // because a drain disturbs nobody
    EXPECT_EQ(world.over().at(gang).state, LiveState::Completed);
    EXPECT_GE(world.over().at(next).started, world.over().at(gang).ended);
    EXPECT_EQ(world.over().at(wide).state, LiveState::Completed);
  }
}

/// The life as it was when it was found: these classes came later.
LifeReport live_as_found(std::uint64_t seed, const std::string& policy) {
  LifeSettings settings = draw_life(seed, policy);
  for (const FaultClass later : {FaultClass::Repeats, FaultClass::Narrow, FaultClass::SlowPasses})
    settings = without(settings, later);
  return live_through(settings);
}

// A job that runs is held; a new engine finds it running and moves it.
TEST(Found, AHeldJobThatANewEngineMovedIsNotStartedBehindItsBack) {
  const LifeReport report = live_as_found(245, "sia");
  EXPECT_EQ(report.violations, std::vector<std::string>{});
}

// The shim of a preempted attempt died before it could write its record: the engine had planned the
// job anew already, and must not plan it a second time.
TEST(Found, APreemptedAttemptThatIsLostIsPlannedOnce) {
  const LifeReport report = live_as_found(327, "las-2d");
  EXPECT_EQ(report.violations, std::vector<std::string>{});
}

// A policy switched a node off; nobody here can, so it must come back when it is wanted.
TEST(Found, ANodeThatAPolicySwitchedOffComesBack) {
  LiveWorld world{{.cluster = "1x7:v100,1x7:a100",
                   .scheduling = {.policy = affordable("andreas"), .spare_slots = 64}}};
  JobNumber job = 0;
  world.at(8764, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "1000"});
    spec.model = "resnet50";
    job = world.submit(service, spec);
  });
  world.at(172'800, [](LiveService&) {});
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
}

// Drained and then taken down, or taken down twice: the policy loses it once.
TEST(Found, ANodeThatIsTakenOutTwiceIsLostOnce) {
  for (const char* first : {"drain", "down"}) {
    LiveWorld world{{.scheduling = {.policy = {.policy = "gandiva", .settings = {}}}}};
    JobNumber job = 0;
    const auto set = [&world](double when, const char* state) {
      world.at(when, [state](LiveService& service) {
        static_cast<void>(service.set_node(kRoot, "n1", state, "test"));
      });
    };
    world.at(1, [&](LiveService& service) {
      job = world.submit(service, spec_of({"run", "30"}, 8));
    });
    set(5, first);
    set(10, "down");
    set(20, "resume");
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
  }
}

// Two orders that the engine hears at once: the last one counts.
TEST(Found, ANodeThatIsResumedAndTakenDownAtOnceStaysDown) {
  LiveWorld world{{.scheduling = {.policy = {.policy = "gandiva", .settings = {}}}}};
  JobNumber job = 0;
  world.at(1, [](LiveService& service) {
    static_cast<void>(service.set_node(kRoot, "n1", "down", "test"));
  });
  world.at(5, [&](LiveService& service) {
    static_cast<void>(service.set_node(kRoot, "n1", "resume", ""));
    static_cast<void>(service.set_node(kRoot, "n1", "down", "test"));
    job = world.submit(service, spec_of({"run", "10"}, 8));
  });
  std::int64_t resumed = 0;
  world.at(50, [&](LiveService& service) {
    resumed = world.wall_micros();
    static_cast<void>(service.set_node(kRoot, "n1", "resume", ""));
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
  EXPECT_GE(world.over().at(job).started, resumed);
}

// Life 1843: the last lease ended with its attempt, and no auction was held for what it left.
TEST(Found, ThemisAuctionsWhatALostAttemptLeaves) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    LiveWorld world{{.cluster = "1x1",
                     .scheduling = {.policy = {.policy = "themis", .settings = {}}},
                     .host = {.dies_claimed = 0.5, .seed = seed}}};
    JobNumber job = 0;
    world.at(1, [&](LiveService& service) { job = world.submit(service, spec_of({"run", "10"})); });
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
  }
}

// A live scheduler meets shapes of jobs that nobody had when its policy began.
TEST(Found, EveryPolicyTakesJobsOfShapesItHasNotSeen) {
  for (const PolicyEntry& entry : policy_registry()) {
    SCOPED_TRACE(entry.name);
    WorldOptions options;
    options.scheduling.policy = affordable(entry.name);
    options.host.device_limit = static_cast<std::int32_t>(kMaxSharers);
    LiveWorld world{options};
    for (int i = 0; i < 6; ++i) {
      world.at(1 + 3 * i, [&world, i](LiveService& service) {
        JobSpec spec = spec_of({"run", "20"}, 1 + i);
        spec.user = i % 2 == 0 ? "a" : "b";
        spec.cpus = i;
        static_cast<void>(world.submit(service, spec));
      });
    }
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().size(), 6U);
  }
}

}  // namespace
}  // namespace berth::test
