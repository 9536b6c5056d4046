// Nodes that sleep, in a simulated world: the programs take time, fail, hang, and the scheduler
// dies at every step. Never does a job start on a machine that is off; every job ends.
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/config.h"
#include "support/live_world.h"

namespace berth::test {
namespace {

constexpr const char* kCes =
    "ces:tick=10s,history=1,future=1,buffer=0,buffer_share=0,keep=0,warm_up=1000000,forecast=naive";

WorldOptions world_of(const std::string& policy, const std::string& manager,
                      std::string cluster = "2x1") {
  PowerOptions power;
  power.programs = {.suspend = "/bin/false", .resume = "/bin/true"};  // only their names count
  power.suspend_timeout = std::chrono::seconds{5};
  power.program_timeout = std::chrono::seconds{20};
  power.resume_timeout = std::chrono::seconds{60};
  return {.cluster = std::move(cluster),
          .scheduling = {.policy = {.policy = policy}, .power = manager, .min_run = 0},
          .power = power};
}

std::string state_of(LiveService& service, const std::string& node) {
  for (const NodeView& view : service.nodes(kRoot))
    if (view.name == node) return view.state;
  return "none";
}

std::int64_t count(const LiveWorld& world, const std::string& what) {
  return std::ranges::count_if(world.asked(),
                               [&](const std::string& one) { return one.starts_with(what); });
}

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

/// A job at 100 s, when all has been idle for long.
JobNumber job_at(LiveWorld& world, double seconds, std::int32_t gpus = 1) {
  world.at(seconds, [&world, gpus](LiveService& service) {
    JobSpec spec = spec_of({"run", "30"}, gpus);
    spec.key = "one";  // whoever dies meanwhile asks again
    world.submit(service, std::move(spec));
  });
  return 1;
}

TEST(NodePower, AnIdleNodeSleepsAndIsWokenForAJob) {
  for (const auto& [policy, manager] : {std::pair{"fifo", kCes}, std::pair{"andreas", "off"}}) {
    LiveWorld world{world_of(policy, manager)};
    world.at(90, [&](LiveService& service) {
      EXPECT_EQ(state_of(service, "n0"), "off") << policy;
      EXPECT_EQ(state_of(service, "n1"), "off") << policy;
    });
    const JobNumber job = job_at(world, 100);
    world.set_program([](const std::string& what, const std::string&) {
      return LiveWorld::ProgramBehaviour{.seconds = what == "resume" ? 15.0 : 1.0};
    });
    world.at(110, [&](LiveService& service) {
      EXPECT_EQ(state_of(service, "n0"), "booting") << policy;
      EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Pending);
      const Why why = world.why(job);
      ASSERT_FALSE(why.reasons.empty());
      EXPECT_EQ(why.reasons.front().text, "n0 boots") << policy;
    });
    world.at(118, [&](LiveService& service) {
      EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Running) << policy;
    });
    world.at(300, [](LiveService&) {});
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
    EXPECT_EQ(count(world, "resume"), 1) << policy;
    EXPECT_EQ(count(world, "suspend"), 3) << policy;
  }
}

TEST(NodePower, AFailedOrHangingSuspendLeavesANodeThatIsResumedBeforeUse) {
  for (const bool hangs : {false, true}) {
    LiveWorld world{world_of("fifo", kCes)};
    world.set_program([&](const std::string& what, const std::string&) {
      return LiveWorld::ProgramBehaviour{.fails = what == "suspend" && !hangs,
                                         .hangs = what == "suspend" && hangs};
    });
    world.at(90, [&](LiveService& service) {
      EXPECT_EQ(state_of(service, "n0"), "off");
      const auto nodes = service.nodes(kRoot);
      EXPECT_NE(nodes.front().reason.find("it may still be on"), std::string::npos);
    });
    const JobNumber job = job_at(world, 100);
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
    EXPECT_EQ(count(world, "resume"), 1);
  }
}

TEST(NodePower, ANodeThatDoesNotBootIsTriedThreeTimesThenDown) {
  LiveWorld world{world_of("fifo", kCes)};
  world.set_program([](const std::string& what, const std::string& node) {
    return LiveWorld::ProgramBehaviour{.fails = what == "resume" && node == "n0"};
  });
  const JobNumber job = job_at(world, 100);
  world.at(200, [&](LiveService& service) {
    EXPECT_EQ(state_of(service, "n0"), "down");
    // Mended, somebody says so: it is tried again.
    world.set_program({});
    EXPECT_TRUE(service.set_node(kRoot, "n0", "resume", ""));
  });
  world.at(230, [&](LiveService& service) { EXPECT_NE(state_of(service, "n0"), "down"); });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
  EXPECT_EQ(count(world, "resume n0"), 4);
  EXPECT_EQ(count(world, "resume n1"), 1);
}

TEST(NodePower, ReadyIsWhenTheCheckSaysSo) {
  WorldOptions options = world_of("fifo", kCes);
  options.power->programs.check = "/bin/sh";
  LiveWorld world{options};
  int checks = 0;
  world.set_program([&](const std::string& what, const std::string&) {
    return LiveWorld::ProgramBehaviour{.seconds = 0.5, .fails = what == "check" && ++checks < 5};
  });
  const JobNumber job = job_at(world, 100);
  world.run();
  expect_clean(world);
  EXPECT_EQ(checks, 5);
  EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
}

TEST(NodePower, AtMostSoManyAMinute) {
  WorldOptions options = world_of("fifo", kCes, "6x1");
  options.power->suspend_rate = 2;
  LiveWorld world{options};
  world.at(55, [&](LiveService&) { EXPECT_LE(count(world, "suspend"), 2); });
  world.at(115, [&](LiveService&) { EXPECT_LE(count(world, "suspend"), 4); });
  world.at(400, [&](LiveService&) { EXPECT_EQ(count(world, "suspend"), 6); });
  world.run();
  expect_clean(world);
}

// Whoever switches nodes is asked no more: all must come back.
TEST(NodePower, AnotherPolicyFindsAllNodesOn) {
  LiveWorld world{world_of("andreas", "off")};
  world.at(90, [&](LiveService& service) {
    EXPECT_EQ(state_of(service, "n1"), "off");
    EXPECT_TRUE(service.set_policy(kRoot, "fifo", {}));
  });
  world.at(120, [&](LiveService& service) {
    EXPECT_EQ(state_of(service, "n0"), "up");
    EXPECT_EQ(state_of(service, "n1"), "up");
  });
  world.run();
  expect_clean(world);
}

// The scheduler dies at every point of going to sleep, booting and starting, in every way.
TEST(NodePower, WhereverItDiesNothingStartsOnANodeThatIsOff) {
  for (const auto& [policy, manager] : {std::pair{"fifo", kCes}, std::pair{"andreas", "off"}}) {
    const auto play = [&](std::optional<std::uint64_t> crash, CrashKind kind) {
      LiveWorld world{world_of(policy, manager)};
      const JobNumber job = job_at(world, 100);
      if (crash) world.crash_at(*crash, kind);
      world.run();
      EXPECT_EQ(world.violations(), std::vector<std::string>{})
          << policy << " dies at " << crash.value_or(0);
      // It may have been over before the last life.
      if (const auto seen = world.over().find(job); seen != world.over().end()) {
        EXPECT_EQ(seen->second.state, LiveState::Completed);
      }
      return world.points_passed();
    };
    const std::uint64_t points = play(std::nullopt, CrashKind::Kill);
    ASSERT_GT(points, 10U);
    for (std::uint64_t point = 1; point <= points; ++point) {
      play(point, CrashKind::Kill);
      play(point, CrashKind::Controller);
    }
  }
}

TEST(NodePower, TheConfigurationIsRead) {
  const auto config = parse_serve_config(
      "power:\n  manager: ces:buffer=1\n  suspend_program: /bin/false\n  resume_program: "
      "/bin/true\n"
      "  suspend_timeout: 30\n  resume_timeout: 5m\n  suspend_exc_nodes: [n1]\n"
      "  nodes:\n    n2: {resume_program: /bin/sh}\n",
      "serve.yaml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->scheduling.power, "ces:buffer=1");
  EXPECT_EQ(config->power.suspend_timeout, Duration{std::chrono::seconds{30}});
  EXPECT_EQ(config->power.resume_timeout, Duration{std::chrono::minutes{5}});
  EXPECT_TRUE(config->power.switches("n0"));
  EXPECT_FALSE(config->power.switches("n1"));
  EXPECT_EQ(config->power.of("n2").resume, "/bin/sh");
  EXPECT_EQ(parse_serve_config("power: ces\n", "serve.yaml")->scheduling.power, "ces");

  for (const char* wrong :
       {"power:\n  suspend_program: /bin/false\n", "power:\n  suspend_programme: /bin/false\n",
        "power:\n  suspend_program: false\n  resume_program: /bin/true\n",
        "power:\n  resume_timeout: soon\n", "power:\n  resume_timeout: -1\n", "power: [ces]\n",
        "power:\n  nodes: [n1]\n", "power:\n  user: nobody-has-this-name\n",
        "power:\n  suspend_rate: -1\n"}) {
    EXPECT_FALSE(parse_serve_config(wrong, "serve.yaml")) << wrong;
  }
}

}  // namespace
}  // namespace berth::test
