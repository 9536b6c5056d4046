// The worked examples of the common performance model.
#include "perf/rate_function.h"

#include <gtest/gtest.h>

#include "perf/rate_model.h"

namespace berth::rate_function_tests {
namespace {

double slowdown_against_nvlink(double compute, double bytes, std::int32_t gpus, Level level) {
  const Links links;
  const auto total = [&](Level at) {
    return overlapped(compute, sync_time(bytes, gpus, links.at(at)), 2, 0);
  };
  return total(level) / total(Level::Nvlink);
}

TEST(RateFunction, LocalityByLevel) {
  struct Row {
    double compute, bytes;
    std::int32_t gpus;
    std::array<double, 4> slowdown;  // pcie, server, rack, cross-rack
  };
  const std::array<Row, 4> rows{{{.20, 528e6, 2, {1.0237, 1.0420, 1.1307, 1.4545}},
                                 {.20, 528e6, 4, {1.0526, 1.0922, 1.2756, 1.8739}},
                                 {.18, 98e6, 4, {1.0023, 1.0041, 1.0134, 1.0526}},
                                 {.10, 250e6, 4, {1.0474, 1.0832, 1.2505, 1.8050}}}};
  const std::array<Level, 4> levels{Level::Pcie, Level::Server, Level::Rack, Level::CrossRack};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      EXPECT_NEAR(slowdown_against_nvlink(row.compute, row.bytes, row.gpus, levels[i]),
                  row.slowdown[i], 5e-5)
          << row.bytes << " " << to_string(levels[i]);
    }
  }
}

Profile worked() {
  Profile profile;
  profile.name = "worked";
  profile.batch = 32;
  profile.iteration = {.alpha = .03, .beta = .002, .gradient_bytes = 100e6, .overlap = 2};
  profile.cpu = {.log_gain = 0, .linear_gain = 100, .plateau = 1e9, .theta = 24};
  return profile;
}

TEST(RateFunction, WorkedExample) {
  const Profile profile = worked();
  Conditions base{.gpus = 4, .link = Links{}.at(Level::Pcie), .cores = 3};
  EXPECT_NEAR(iteration_time(profile, base).total, .106667, 5e-7);
  EXPECT_NEAR(throughput(profile, base), 1200, 1e-6);

  Conditions starved = base;
  starved.cores = 2;
  EXPECT_NEAR(iteration_time(profile, starved).total, .16, 1e-9);
  EXPECT_NEAR(throughput(profile, starved), 800, 1e-6);

  Conditions faster = base;
  faster.device_speed = 2;
  EXPECT_NEAR(throughput(profile, faster), 1200, 1e-6) << "a faster GPU wants more cores";
  faster.cores = 6;
  EXPECT_NEAR(iteration_time(profile, faster).total, .053333, 5e-7);
  EXPECT_NEAR(throughput(profile, faster), 2400, 1e-6);

  Conditions disturbed = base;
  disturbed.gpu_slowdown = 1.3;
  EXPECT_NEAR(throughput(profile, disturbed), 923.077, 5e-4);

  Conditions accumulating = base;
  accumulating.sub_batch = 16;
  accumulating.extra_steps = 1;
  EXPECT_NEAR(iteration_time(profile, accumulating).total, .125259, 5e-7);
  EXPECT_NEAR(throughput(profile, accumulating), 1021.879, 5e-4);

  Conditions far = base;
  far.link = {2.5e9, 1e-5};
  EXPECT_NEAR(iteration_time(profile, far).total, .111549, 5e-7);
  EXPECT_NEAR(throughput(profile, far), 1147.477, 5e-4);
  far.link = Links{}.at(Level::CrossRack);
  EXPECT_NEAR(iteration_time(profile, far).total, .111711, 5e-7);
  EXPECT_NEAR(throughput(profile, far), 1145.815, 5e-4);
}

TEST(RateFunction, OverlapRunsFromNoneToFull) {
  EXPECT_DOUBLE_EQ(overlapped(3, 4, 1, 0), 7);
  EXPECT_DOUBLE_EQ(overlapped(3, 4, 2, 0), 5);
  EXPECT_NEAR(overlapped(3, 4, 3, 0), 4.497941, 1e-6);
  EXPECT_NEAR(overlapped(3, 4, 200, 0), 4, 1e-6);
  EXPECT_DOUBLE_EQ(overlapped(3, 4, 2, 2), 11);
}

TEST(RateModel, TheReferenceIsTheBestPlaceOnTheTypeTheTraceStandsFor) {
  const Cluster cluster = *parse_cluster_short("2x4:v100,2x4:a100");
  ProfileSet set;
  Profile profile = worked();
  profile.speeds = {{"A100", 2.0}};
  const ProfileId id = set.add(profile);
  const Effects all = *parse_effects("all");
  const RateModel model{set, cluster, all};
  Standing standing{.profile = id, .pool = PoolId{0}, .gpus = 1, .wanted = 1};
  EXPECT_DOUBLE_EQ(model.alone(standing), 1) << "a V100 stands for itself";
  standing.pool = PoolId{1};
  EXPECT_DOUBLE_EQ(model.alone(standing), 2);
  standing.reference = PoolId{1};
  EXPECT_DOUBLE_EQ(model.alone(standing), 1) << "the job named the type";

  Standing gang{.profile = id, .pool = PoolId{0}, .gpus = 4, .wanted = 4, .level = Level::Server};
  EXPECT_DOUBLE_EQ(model.alone(gang), 1);
  gang.level = Level::Rack;
  EXPECT_LT(model.alone(gang), 1);
  const RateModel without{set, cluster, Effects{}};
  EXPECT_DOUBLE_EQ(without.alone(gang), 1) << "the trace's duration is the truth";
}

TEST(RateModel, MeasuredTimesComeBeforeTheCurve) {
  const Cluster cluster = *parse_cluster_short("2x4:v100");
  ProfileSet set;
  Profile profile = worked();
  profile.measured = {{"V100", 4, Level::Rack, 32, 0.3}};
  const ProfileId id = set.add(profile);
  const RateModel model{set, cluster, *parse_effects("locality")};
  Standing gang{.profile = id, .pool = PoolId{0}, .gpus = 4, .wanted = 4, .level = Level::Rack};
  EXPECT_DOUBLE_EQ(model.iteration(gang).total, 0.3);
  gang.level = Level::CrossRack;
  EXPECT_LT(model.iteration(gang).total, 0.3);
}

TEST(RateModel, MemoryShrinksWithTheSubBatch) {
  const Cluster cluster = *parse_cluster_short("1x1");
  ProfileSet set;
  Profile profile = worked();
  profile.memory = {.fixed_mib = 2000, .per_sample_mib = 100};
  const ProfileId id = set.add(profile);
  const RateModel model{set, cluster, {}};
  EXPECT_EQ(model.memory_mib(id, 64, {}), 8400);
  EXPECT_EQ(model.memory_mib(id, 64, {.sub_steps = 2}), 5200);
  EXPECT_EQ(model.memory_mib(id, 0, {}), 5200);
}

TEST(Effects, AreNamedAndRefusedByName) {
  EXPECT_EQ(to_string(*parse_effects("all")),
            "sharing,locality,server,cpu,memory,device,efficiency");
  EXPECT_EQ(to_string(*parse_effects("none")), "none");
  EXPECT_EQ(to_string(*parse_effects("cpu,locality")), "locality,cpu");
  EXPECT_FALSE(parse_effects("locallity"));
  EXPECT_FALSE(parse_effects(""));
}

TEST(Profiles, UnknownPairsFallBackInOrder) {
  ProfileSet set;
  Profile a{.name = "A-1", .aliases = {"Alpha"}, .speeds = {}};
  a.gpu_utilisation = 0.9;
  Profile b{.name = "B", .aliases = {}, .speeds = {}};
  b.gpu_utilisation = 0.6;
  const ProfileId ia = set.add(a);
  const ProfileId ib = set.add(b);
  EXPECT_EQ(set.find("alpha"), ia);
  EXPECT_EQ(set.find("a_1"), ia);
  EXPECT_FALSE(set.find("c"));
  EXPECT_DOUBLE_EQ(set.slowdown(ia, ProfileSet::fallback()), 1.5);
  EXPECT_DOUBLE_EQ(set.slowdown(ia, ib), 1.5 / 0.95);
  set.set_slowdown(ia, ib, 1.1);
  EXPECT_DOUBLE_EQ(set.slowdown(ia, ib), 1.1);
  EXPECT_DOUBLE_EQ(set.with_error(0, 1).slowdown(ia, ib), 1.1);
  EXPECT_NE(set.with_error(0.3, 1).slowdown(ia, ib), 1.1);
  EXPECT_EQ(set.with_error(0.3, 1).slowdown(ia, ib), set.with_error(0.3, 1).slowdown(ia, ib));
}

}  // namespace
}  // namespace berth::rate_function_tests
