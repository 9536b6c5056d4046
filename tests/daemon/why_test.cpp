// Why a job waits: the worked example, and that no waiting job of any policy is left without a
// reason.
#include "why/why_json.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/why_support.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

/// Two nodes of a100 and one of v100, 16 cores each; A, B and C run, H and J wait under EASY.
class WorkedExample : public ::testing::Test {
 protected:
  WorkedExample()
      : world{{.cluster = "2x4:a100,1x4:v100",
               .scheduling = {.policy = {.policy = "easy"},
                              .placement = "consolidated",
                              .estimator = "limit"},
               .edit_cluster = [](Cluster& cluster) {
                 for (Node& node : cluster.nodes) node.cpus_milli = 16'000;
               }}} {
    world.at(0.1, [this](LiveService& service) {
      // A fills the first node but for one device, so that B goes to the second.
      world.submit(service, typed(600, 3, "a100", 6, 600));
      world.submit(service, typed(1200, 2, "a100", 14, 1200));
      world.submit(service, typed(300, 1, "v100", 4, 300));
      h = world.submit(service, typed(1000, 4, "a100", 4, 1000));
      j = world.submit(service, typed(1800, 2, "a100", 8, 3600));
    });
  }
  LiveWorld world;
  JobNumber h = 0, j = 0;
};

TEST_F(WorkedExample, TheGangLacksCapacityAndShape) {
  world.at(1, [this](LiveService&) {
    EXPECT_EQ(kinds_of(world.why(h)), (std::vector<std::string>{"capacity", "shape"}));
    const Why why = world.why(h);
    EXPECT_EQ(why.summary,
              "waits for 4 a100 with 4 cores on one node: 3 of 4 a100 are free, 3 of other types");
    EXPECT_EQ(count_in(why.reasons[0], "free"), 3);
    EXPECT_EQ(count_in(why.reasons[0], "need"), 4);
    EXPECT_EQ(count_in(why.reasons[1], "best"), 2);
    EXPECT_EQ(why.place, 1U);
    EXPECT_EQ(why.of, 2U);
  });
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

TEST_F(WorkedExample, TheOtherLacksOnlyCores) {
  world.at(1, [this](LiveService&) {
    const Why why = world.why(j);
    ASSERT_EQ(kinds_of(why), std::vector<std::string>{"side resource"});
    EXPECT_TRUE(why.reasons[0].sole);
    EXPECT_EQ(measure_in(why.reasons[0], "cores_free"), 2);
    EXPECT_EQ(measure_in(why.reasons[0], "cores_needed"), 8) << "4 beside each of 2";
    EXPECT_EQ(count_in(why.reasons[0], "gpus_stranded"), 2);
    ASSERT_EQ(why.would_start.size(), 2U) << fmt::format("{}", fmt::join(why.would_start, "; "));
    EXPECT_EQ(why.would_start[0],
              fmt::format("take any type of GPU: berth change {} gpu_type=", j));
    EXPECT_EQ(why.would_start[1], fmt::format("ask for 2 cores: berth change {} cpus=2", j));
  });
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

/// Three nodes, each of its type, of 4 devices, 16 GiB and 16 cores. What runs leaves 2 devices
/// with 4 GiB and 9 cores on a, 1 with 10 GiB and 2 cores on b, 2 with 3 GiB and 12 cores on c.
class PartlyUsed : public ::testing::Test {
 protected:
  PartlyUsed()
      : world{{.cluster = "1x4:a,1x4:b,1x4:c",
               .scheduling = {.policy = {.policy = "fifo"}, .placement = "consolidated"},
               .edit_cluster = [](Cluster& cluster) {
                 for (Node& node : cluster.nodes) {
                   node.memory_mib = 16 * 1024;
                   node.cpus_milli = 16'000;
                 }
               }}} {
    world.at(0.1, [this](LiveService& service) {
      world.submit(service, asking(2, "a", 7, 12));
      world.submit(service, asking(3, "b", 14, 6));
      world.submit(service, asking(2, "c", 4, 13));
    });
  }
  static JobSpec asking(std::int32_t gpus, const std::string& type, std::int32_t cpus,
                        std::int32_t gib) {
    JobSpec spec = typed(600, gpus, type, cpus, 600);
    spec.memory_mib = gib * 1024;
    return spec;
  }
  /// Of such a job that waits, what would let it start; then the first of that is done, and it
  /// does.
  std::vector<std::string> advice(const JobSpec& spec, const std::string& change) {
    JobNumber job = 0;
    std::vector<std::string> told;
    world.at(1, [this, &job, spec](LiveService& service) { job = world.submit(service, spec); });
    world.at(2, [this, &job, &told, change](LiveService& service) {
      told = world.why(job).would_start;
      EXPECT_TRUE(service.change(kRoot, job, change));
    });
    world.at(3, [this, &job](LiveService& service) {
      EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Running) << "the advice was wrong";
    });
    world.run();
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
    return told;
  }
  LiveWorld world;
};

TEST_F(PartlyUsed, OneDeviceMayHaveAllMemoryThatIsFreeBesideOne) {
  EXPECT_EQ(advice(asking(1, "", 0, 12), R"({"memory_mib":10240})"),
            (std::vector<std::string>{"ask for 10240 MiB: berth change 4 memory_mib=10240"}));
}

TEST_F(PartlyUsed, AGangSharesWhatIsFreeWhereItFits) {
  // two fit on a with 4 GiB, and on c with 3; one would fit on b with the 10 that it asks for
  EXPECT_EQ(advice(asking(2, "", 0, 10), R"({"memory_mib":4096})"),
            (std::vector<std::string>{"ask for 4096 MiB: berth change 4 memory_mib=4096",
                                      "ask for 1 GPU: berth change 4 gpus=1"}));
}

TEST_F(PartlyUsed, TheReasonIsAboutTheNodeThatLacksLeast) {
  world.at(1, [this](LiveService& service) { world.submit(service, asking(2, "", 0, 10)); });
  world.at(2, [this](LiveService&) {
    const Why why = world.why(4);
    ASSERT_EQ(kinds_of(why), std::vector<std::string>{"side resource"});
    EXPECT_EQ(count_in(why.reasons[0], "memory_free_mib"), 4096);
    EXPECT_EQ(count_in(why.reasons[0], "memory_needed_mib"), 10'240);
    EXPECT_EQ(count_in(why.reasons[0], "gpus_stranded"), 2);
  });
  world.run();
}

TEST_F(PartlyUsed, CoresAreToldToTheLast) {
  EXPECT_EQ(advice(asking(2, "a", 16, 1), R"({"cpus":9})"),
            (std::vector<std::string>{"ask for 9 cores: berth change 4 cpus=9"}));
}

TEST(WhyChanges, DevicesAreToldToTheLast) {
  LiveWorld world{{.cluster = "1x8", .scheduling = {.policy = {.policy = "fifo"}}}};
  world.at(0.1, [&](LiveService& service) {
    world.submit(service, limited(600, 2, 600));
    world.submit(service, limited(600, 8, 600));
  });
  world.at(1, [&](LiveService&) {
    EXPECT_EQ(world.why(2).would_start,
              (std::vector<std::string>{"ask for 6 GPUs: berth change 2 gpus=6"}));
  });
  world.run();
}

class EveryPolicyExplains : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicyExplains, NoWaitingJobIsLeftWithoutAReason) {
  std::size_t all_asked = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    WorldOptions options{.cluster = "2x4", .scheduling = {.policy = {.policy = GetParam()}}};
    if ((*make_policy(GetParam()))->traits().shares_devices)
      options.host.device_limit = static_cast<std::int32_t>(kMaxSharers);
    LiveWorld world{options};
    Rng rng{seed};
    std::size_t asked = 0;
    for (int i = 0; i < 14; ++i) {
      JobSpec spec = spec_of({"run", fmt::format("{}", 20 + rng.below(200))},
                             static_cast<std::int32_t>(1 + rng.below(5)));
      spec.priority = static_cast<std::int32_t>(rng.below(3));
      spec.user = fmt::format("u{}", rng.below(3));
      spec.estimate = static_cast<std::int64_t>(60 + rng.below(300));
      world.at(static_cast<double>(rng.below(60)),
               [&world, spec](LiveService& service) { world.submit(service, spec); });
    }
    for (const double at : {31.0, 71.0}) {
      world.at(at, [&](LiveService& service) {
        const auto page = service.jobs(kRoot, {.states = {LiveState::Pending}});
        for (const JobView& job : page->jobs) {
          const Why why = world.why(job.number);
          ++asked;
          ASSERT_FALSE(why.reasons.empty()) << "job " << job.number << " seed " << seed;
          for (const WhyReason& reason : why.reasons)
            EXPECT_NE(reason.kind, "unexplained") << "job " << job.number << " seed " << seed;
        }
      });
    }
    world.run();
    EXPECT_EQ(world.violations(), std::vector<std::string>{}) << "seed " << seed;
    if (HasFailure()) return;
    all_asked += asked;
  }
  EXPECT_GT(all_asked, 0U);
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPolicyExplains, ::testing::ValuesIn(all_policies()),
                         kByName);

}  // namespace
}  // namespace berth::test
