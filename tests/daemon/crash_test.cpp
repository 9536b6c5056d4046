// The scheduler is killed at every named point of a busy day, by each kind of crash, and begun
// again on what is left: no job lost, none twice at once, no device over its limit, every job ends.
#include <gtest/gtest.h>

#include <cstdlib>

#include <fmt/format.h>

#include "support/live_world.h"

namespace berth::test {
namespace {

JobFilter only(JobNumber job) { return {.states = {}, .numbers = {job}}; }

/// A gang, an array, dependencies, a preemption, a cancel, a requeue, a switch of policy, a node
/// that goes and comes back.
void write_script(LiveWorld& world) {
  const auto submit = [&world](double at, JobSpec spec, std::string key) {
    spec.key = std::move(key);
    world.at(at, [&world, spec](LiveService& service) {
      static_cast<void>(world.submit(service, spec));
    });
  };
  JobSpec gang = spec_of({"run", "40"}, 4);
  submit(1, gang, "gang");
  JobSpec array = spec_of({"run", "15"}, 1);
  array.array = ArraySpec{.indices = {0, 1, 2, 3, 4}, .at_once = 2};
  submit(2, array, "array");
  for (int i = 0; i < 6; ++i)
    submit(3 + i, spec_of({"run", std::to_string(20 + 3 * i)}, 1 + i % 2), fmt::format("s{}", i));
  JobSpec urgent = spec_of({"run", "10"}, 4);
  urgent.priority = 9;
  submit(12, urgent, "urgent");
  submit(13, spec_of({"stubborn", "400"}, 1), "stubborn");
  JobSpec flaky = spec_of({"flaky", "5", "1"}, 1);
  flaky.max_retries = 2;
  submit(14, flaky, "flaky");
  JobSpec after = spec_of({"run", "5"}, 1);
  after.dependencies = {{DependencyKind::AfterAny, 1}};
  submit(15, after, "after");
  world.at(30, [](LiveService& service) {
    static_cast<void>(
        service.act(kRoot, Verb::Requeue, {.states = {LiveState::Running}, .user = "root"}, "", 0));
  });
  world.at(45, [](LiveService& service) {
    static_cast<void>(service.set_node(kRoot, "n1", "down", "test"));
  });
  world.at(60, [](LiveService& service) {
    static_cast<void>(service.set_node(kRoot, "n1", "resume", ""));
  });
  world.at(70, [](LiveService& service) {
    static_cast<void>(service.set_policy(kRoot, "fifo-skip", {}));
  });
  world.at(80, [](LiveService& service) {
    const auto page = service.jobs(kRoot, {.states = {}, .limit = 1000});
    for (const JobView& job : page->jobs) {
      if (job.spec->command.front() == "stubborn")
        static_cast<void>(service.act(kRoot, Verb::Cancel, only(job.number), "", 0));
    }
  });
}

WorldOptions busy() {
  WorldOptions options;
  options.cluster = "2x4";
  options.scheduling.policy = {.policy = "priority", .settings = {{"preempt_classes", "5"}}};
  return options;
}

std::map<std::string, LiveState> ends_of(const LiveWorld& world) {
  std::map<std::string, LiveState> ends;
  for (const auto& [number, view] : world.over())
    ends[fmt::format("{}#{}", view.spec->key, view.array_index)] = view.state;
  return ends;
}

TEST(CrashPoints, TheUndisturbedDayEndsCleanly) {
  LiveWorld world{busy()};
  write_script(world);
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
  EXPECT_EQ(world.over().size(), 16U);
  EXPECT_GT(world.points_passed(), 100U);
}

class EveryPoint : public ::testing::TestWithParam<CrashKind> {};

TEST_P(EveryPoint, OneCrashAnywhereLosesNothing) {
  LiveWorld calm{busy()};
  write_script(calm);
  calm.run();
  const auto expected = ends_of(calm);
  const std::uint64_t points = calm.points_passed();
  for (std::uint64_t point = 1; point <= points; ++point) {
    LiveWorld world{busy()};
    write_script(world);
    world.crash_at(point, GetParam());
    world.run();
    ASSERT_EQ(world.violations(), std::vector<std::string>{})
        << "point " << point << " of " << points;
    ASSERT_EQ(ends_of(world), expected) << "point " << point << " of " << points;
    ASSERT_EQ(world.lives(), 2) << "point " << point;
  }
  fmt::print("points: {} single crashes\n", points);
}

// Dying again while recovering, and recovering from that.
TEST_P(EveryPoint, ACrashInsideTheRecoveryLosesNothing) {
  LiveWorld calm{busy()};
  write_script(calm);
  calm.run();
  const auto expected = ends_of(calm);
  const std::uint64_t points = std::min<std::uint64_t>(calm.points_passed(), 200);
  const bool all = std::getenv("BERTH_ALL_PAIRS") != nullptr;
  Rng rng{7};
  int pairs = 0;
  for (std::uint64_t first = 1; first <= points; first += all ? 1 : 7) {
    for (std::uint64_t second = 1; second <= 12; ++second) {
      LiveWorld world{busy()};
      write_script(world);
      world.crash_at(first, GetParam());
      ASSERT_TRUE(world.live());
      world.crash_at(second, static_cast<CrashKind>(rng.below(3)));
      world.run();
      ASSERT_EQ(world.violations(), std::vector<std::string>{}) << first << " then " << second;
      ASSERT_EQ(ends_of(world), expected) << first << " then " << second;
      ++pairs;
    }
  }
  fmt::print("points: {} pairs of crashes\n", pairs);
}

INSTANTIATE_TEST_SUITE_P(Crash, EveryPoint,
                         ::testing::Values(CrashKind::Kill, CrashKind::Power,
                                           CrashKind::Controller),
                         [](const auto& row) {
                           switch (row.param) {
                             case CrashKind::Kill: return "kill";
                             case CrashKind::Power: return "power";
                             case CrashKind::Controller: return "controller";
                           }
                           return "?";
                         });

}  // namespace
}  // namespace berth::test
