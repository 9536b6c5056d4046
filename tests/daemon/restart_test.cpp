// A restart changes nothing: a life in which the scheduler is killed at some instant and begun
// again at once takes the same actions, at the same moments and on the same devices, as one in
// which it is not. Under every policy of the registry, with the real engine, journal and
// supervisor; jobs come, end and are preempted meanwhile. The same for settings that set what is
// set already.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/drawn_load.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

using Workload = DrawnLoad;

Workload draw(const std::string& policy, std::uint64_t seed) {
  Rng rng = Rng{seed}.fork("restart");
  const auto odd = [&](double most) { return most * rng.uniform(); };
  Workload load = empty_load(policy, seed);
  load.options.deadline = 40'000;
  load.options.scheduling.min_run = seed % 3 == 0 ? 5 : 0;
  load.options.hears_progress = seed % 2 == 1;  // and is slower or faster than anybody thought
  load.options.host.device_limit = (*make_policy(policy))->traits().shares_devices ? 8 : 1;
  for (int i = 0; i < 10; ++i) {
    LiveSpec spec = drawn_job(rng, i, 3 + odd(40), DrawnName::OneOfThree);
    draw_range(rng, spec);
    if (policy == "hpo") spec.study = "study";
    if (policy == "chronus" || policy == "elasticflow" || policy == "edf") {
      if (rng.below(2) == 0) spec.deadline = 0;  // set when it is submitted
    }
    load.jobs.emplace_back(odd(40), std::move(spec));
  }
  return load;
}

struct Lived {
  std::vector<std::string> acts, violations;
  double seconds = 0;
};

Lived live(const Workload& load, const std::function<void(LiveWorld&)>& disturb = {}) {
  LiveWorld world{load.options};
  for (const auto& [at, job] : load.jobs) {
    world.at(at, [&world, job = job](LiveService& service) {
      LiveSpec spec = job;
      if (spec.deadline) spec.deadline = world.wall_micros() / 1'000'000 + 10 + 3 * spec.estimate;
      world.submit(service, spec);
    });
  }
  if (disturb) disturb(world);
  world.run();
  return {world.acts(), world.violations(), world.seconds()};
}

/// Empty: there is none.
std::string first_difference(const Lived& lived, const Lived& calm) {
  const auto [theirs, ours] = std::ranges::mismatch(lived.acts, calm.acts);
  const bool none = theirs == lived.acts.end() && ours == calm.acts.end();
  if (none) return {};
  return fmt::format("'{}' instead of '{}'", theirs == lived.acts.end() ? "nothing" : *theirs,
                     ours == calm.acts.end() ? "nothing" : *ours);
}

/// It died between a start's record and its process: that start is late, and what follows from it.
bool is_in_a_launch(const Lived& lived) {
  return std::ranges::any_of(
      lived.acts, [](const std::string& act) { return act.find("never began") != act.npos; });
}

class Restart : public ::testing::TestWithParam<std::string> {};

constexpr std::uint64_t kSeeds = 10;
constexpr int kInstants = 8;

TEST_P(Restart, AtAnyInstantChangesNothing) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Workload load = draw(GetParam(), seed);
    const Lived calm = live(load);
    ASSERT_EQ(calm.violations, std::vector<std::string>{}) << "seed " << seed;
    Rng rng = Rng{seed}.fork("instants");
    for (int i = 0; i < kInstants; ++i) {
      const double at = rng.uniform() * std::min(calm.seconds, 120.0);
      const Lived lived =
          live(load, [at](LiveWorld& world) { world.crash_at_time(at, CrashKind::Kill); });
      ASSERT_EQ(lived.violations, std::vector<std::string>{}) << "seed " << seed << " at " << at;
      if (is_in_a_launch(lived)) continue;
      ASSERT_EQ(first_difference(lived, calm), "") << "seed " << seed << " at " << at;
    }
  }
}

// Nodes sleep and are woken meanwhile: a scheduler that dies with a node off, going down or booting
// knows it afterwards, and programs that were under way are asked for again.
struct Sleeper {
  const char* policy;
  const char* manager;
};

class RestartWithPower : public ::testing::TestWithParam<Sleeper> {};

Workload draw_sleeping(const Sleeper& sleeper, std::uint64_t seed) {
  Workload load = draw(sleeper.policy, seed);
  load.options.cluster = seed % 2 == 0 ? "3x2" : "4x1";
  load.options.scheduling.power = sleeper.manager;
  load.options.power.emplace();
  // Only the names of the programs count.
  load.options.power->programs = {.suspend = "/bin/false", .resume = "/bin/true"};
  load.options.power->suspend_timeout = Duration::zero();
  double rest = 0;
  for (std::size_t i = 0; i < load.jobs.size(); ++i) {  // with rests, in which nodes fall idle
    if (i % 3 == 0) rest += 45;
    load.jobs[i].first += rest;
    load.jobs[i].second.gpus = std::min(load.jobs[i].second.gpus, 2);
    load.jobs[i].second.gpus_min = 0;
    load.jobs[i].second.gpus_max = 0;
  }
  return load;
}

TEST_P(RestartWithPower, AtAnyInstantChangesNothing) {
  int switched = 0, woken = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Workload load = draw_sleeping(GetParam(), seed);
    const auto programs = [](LiveWorld& world) {
      world.set_program([](const std::string& what, const std::string&) {
        return LiveWorld::ProgramBehaviour{.seconds = what == "resume" ? 7.25 : 1.125};
      });
      world.at(60.5, [](LiveService& service) {
        ASSERT_TRUE(service.set_node(kRoot, "n0", "down", "a fan"));
      });
      world.at(140.5, [](LiveService& service) {
        ASSERT_TRUE(service.set_node(kRoot, "n0", "resume", ""));
      });
    };
    const Lived calm = live(load, programs);
    ASSERT_EQ(calm.violations, std::vector<std::string>{}) << "seed " << seed;
    for (const std::string& act : calm.acts) {
      switched += act.ends_with("suspending") ? 1 : 0;
      woken += act.ends_with("booting") ? 1 : 0;
    }
    Rng rng = Rng{seed}.fork("instants");
    for (int i = 0; i < 2 * kInstants; ++i) {
      const double at = rng.uniform() * std::min(calm.seconds, 260.0);
      const Lived lived = live(load, [&](LiveWorld& world) {
        programs(world);
        world.crash_at_time(at, CrashKind::Kill);
      });
      ASSERT_EQ(lived.violations, std::vector<std::string>{}) << "seed " << seed << " at " << at;
      ASSERT_EQ(first_difference(lived, calm), "") << "seed " << seed << " at " << at;
    }
  }
  EXPECT_GT(switched, 0);
  EXPECT_GT(woken, 0);
}

constexpr const char* kCes =
    "ces:tick=10s,history=1,future=1,buffer=0,buffer_share=0,keep=0,warm_up=1000000,forecast=naive";
INSTANTIATE_TEST_SUITE_P(Managers, RestartWithPower,
                         ::testing::Values(Sleeper{"andreas", "off"}, Sleeper{"fifo", kCes},
                                           Sleeper{"srtf", kCes}, Sleeper{"tiresias-g", kCes},
                                           Sleeper{"fifo", "spare:share=0.3"}),
                         [](const auto& row) {
                           return suite_name(
                               fmt::format("{}_{:.3}", row.param.policy, row.param.manager));
                         });

TEST_P(Restart, NorDoesSettingWhatIsSet) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Workload load = draw(GetParam(), seed);
    const Lived calm = live(load);
    Rng rng = Rng{seed}.fork("settings");
    const double at = rng.uniform() * std::min(calm.seconds, 120.0);
    const Lived lived = live(load, [&](LiveWorld& world) {
      world.at(at, [&](LiveService& service) {
        const PolicyChoice& chosen = load.options.scheduling.policy;
        ASSERT_TRUE(service.set_policy(kRoot, chosen.policy, chosen.settings));
        ShareView share;
        share.kind = "user";
        share.name = "u0";
        share.shares = 1;
        ASSERT_TRUE(service.set_share(kRoot, share));
      });
    });
    ASSERT_EQ(first_difference(lived, calm), "") << "seed " << seed << " at " << at;
  }
}

TEST_P(Restart, NorDoesAConfigurationThatSaysTheSame) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Workload load = draw(GetParam(), seed);
    const Lived calm = live(load);
    Rng rng = Rng{seed}.fork("reload");
    const double at = rng.uniform() * std::min(calm.seconds, 120.0);
    const Lived lived = live(load, [&](LiveWorld& world) {
      world.at(at, [&](LiveService&) { world.set_options(load.options.scheduling); });
    });
    ASSERT_EQ(lived.violations, std::vector<std::string>{}) << "seed " << seed << " at " << at;
    ASSERT_EQ(first_difference(lived, calm), "") << "seed " << seed << " at " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Restart, ::testing::ValuesIn(all_policies()), kByName);

}  // namespace
}  // namespace berth::test
