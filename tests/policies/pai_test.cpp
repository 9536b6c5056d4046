// The PAI study's scheduler: predicted shortest first, aging, and high-end devices in reserve.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "policies/pai/balance.h"
#include "policies/pai/reserve.h"
#include "support/run.h"

namespace berth::test {
namespace {

using namespace pai;

TEST(PaiReserve, AJobBorrowsOnlyBeyondWhatIsKept) {
  // 8 high-end devices, 4 in reserve, 2 held by jobs that need them: 6 free, 2 still kept.
  EXPECT_TRUE(may_borrow(6, 4, 2, 2));
  EXPECT_TRUE(may_borrow(6, 4, 2, 4));
  EXPECT_FALSE(may_borrow(6, 4, 2, 5));
  EXPECT_TRUE(may_borrow(6, 4, 9, 6)) << "more than the reserve is held already";
}

TEST(PaiReserve, IsTheUsualPeakOfTheLastWeek) {
  Reserve reserve;
  reserve.note(kTimeZero, 0);
  EXPECT_EQ(reserve.wanted(), 0);
  reserve.note(seconds_to_time(1), 10);
  reserve.note(seconds_to_time(86400), 10);
  EXPECT_NEAR(reserve.wanted(), 10, 0.1) << "held all day";
  reserve.note(seconds_to_time(86401), 0);
  reserve.note(seconds_to_time(9 * 86400), 0);
  EXPECT_NEAR(reserve.wanted(), 0, 0.1) << "nobody needed them for a week";
}

ProfileSet two_kinds() {
  ProfileSet profiles;
  profiles.add({.name = "eager", .speeds = {{"v100", 1}, {"t4", 0.25}}});
  profiles.add({.name = "bound", .speeds = {{"v100", 1}, {"t4", 0.9}}});
  return profiles;
}

Scenario mixed_cluster(std::vector<JobSpec> jobs, Settings settings = {}) {
  Scenario scenario{.policy = "pai",
                    .settings = std::move(settings),
                    .cluster = "1x2:v100,1x2:t4",
                    .placement = "best-fit",
                    .jobs = std::move(jobs)};
  scenario.profiles = two_kinds();
  scenario.effects.device = true;
  return scenario;
}

// 8 GPUs and 96 cores; used + request over total, the larger of both
TEST(PaiBalance, ThePictureOfAServerIsItsScarcerResource) {
  EXPECT_DOUBLE_EQ(load_with({80, 4, 96}, {2, 1, 8}), 84.0 / 96);
  EXPECT_DOUBLE_EQ(load_with({8, 4, 96}, {6, 1, 8}), 7.0 / 8);
  EXPECT_DOUBLE_EQ(load_with({0, 4, 0}, {6, 1, 8}), 7.0 / 8) << "cores that are not described";
}

// Best fit goes to the fuller server whose cores are nearly gone; balanced to the other.
TEST(Pai, BalancesCoresAndGpusIfToldTo) {
  class Nodes final : public Observer {
   public:
    void append(Time, const Action& action) override {
      if (begins_stretch(action.kind)) node[action.job.value] = action.slices.front().node.value;
    }
    std::map<std::uint32_t, std::uint32_t> node;
  };
  Scenario scenario{.policy = "pai", .cluster = "2x8", .placement = "best-fit", .jobs = {}};
  scenario.node_cpus = 32;
  scenario.jobs = {{.submit = 0, .gpus = 3, .duration = 900, .cpus = 24},
                   {.submit = 1, .gpus = 1, .duration = 900, .cpus = 4}};
  Nodes packed;
  static_cast<void>(run(scenario, &packed));
  EXPECT_EQ(packed.node[1], packed.node[0]);
  scenario.settings = {{"balance", "on"}};
  Nodes balanced;
  static_cast<void>(run(scenario, &balanced));
  // 28/32 of the cores against 1/8 of both
  EXPECT_NE(balanced.node[1], balanced.node[0]);
  EXPECT_EQ(run(scenario).finish[1], 901);
}

class Pools final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (begins_stretch(action.kind)) pool[action.job.value] = action.pool.value;
  }
  std::map<std::uint32_t, std::uint32_t> pool;
};

TEST(Pai, PacksOthersOnTheRestAndLetsThemBorrowWhatNobodyNeeds) {
  Pools pools;
  static_cast<void>(run(mixed_cluster({{.submit = 0, .gpus = 1, .duration = 50, .model = "bound"},
                                       {.submit = 0, .gpus = 1, .duration = 50, .model = "eager"},
                                       {.submit = 1, .gpus = 1, .duration = 50, .model = "bound"},
                                       {.submit = 2, .gpus = 1, .duration = 50, .model = "bound"}}),
                        &pools));
  EXPECT_EQ(pools.pool[0], 1U) << "a job that hardly gains goes to the T4s";
  EXPECT_EQ(pools.pool[1], 0U);
  EXPECT_EQ(pools.pool[2], 1U);
  EXPECT_EQ(pools.pool[3], 0U) << "the T4s are full and nothing is in reserve yet";
}

// Who is unknown is not high; who was never measured on both is high by what it uses; who fits
// nowhere else is high whatever its speed.
TEST(Pai, WhoNeedsTheHighEndType) {
  const auto pool_of = [](const std::string& model) {
    Scenario scenario = mixed_cluster({{.submit = 0, .gpus = 1, .duration = 50, .model = model}});
    scenario.profiles.add({.name = "hungry", .gpu_utilisation = 0.41});
    scenario.profiles.add({.name = "modest", .gpu_utilisation = 0.4});
    scenario.profiles.add({.name = "large",
                           .memory = {.fixed_mib = 15'500, .per_sample_mib = 0},
                           .speeds = {{"v100", 1}, {"t4", 0.9}}});
    scenario.edit_cluster = [](Cluster& cluster) {
      cluster.pools[0].memory_mib = 32'000;
      cluster.pools[1].memory_mib = 15'000;
    };
    Pools pools;
    static_cast<void>(run(scenario, &pools));
    return pools.pool[0];
  };
  constexpr std::uint32_t kV100 = 0, kT4 = 1;
  EXPECT_EQ(pool_of("eager"), kV100);
  EXPECT_EQ(pool_of("bound"), kT4);
  EXPECT_EQ(pool_of("never heard of"), kT4);
  EXPECT_EQ(pool_of("hungry"), kV100);
  EXPECT_EQ(pool_of("modest"), kT4);
  EXPECT_EQ(pool_of("large"), kV100);
}

TEST(Pai, OrdersByRunTimeOrByGpuTime) {
  // One job holds all eight until 10; then 100 s on 8 GPUs or 150 s on one: 800 against 150 GPU s.
  Scenario scenario{.policy = "pai", .cluster = "1x8", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 8, .duration = 10},
                   {.submit = 1, .gpus = 8, .duration = 100},
                   {.submit = 2, .gpus = 1, .duration = 150}};
  EXPECT_EQ(run(scenario).start, (std::vector<double>{0, 10, 110}));
  scenario.settings = {{"gpu_time", "on"}};
  EXPECT_EQ(run(scenario).start, (std::vector<double>{0, 160, 10}));
}

TEST(Pai, BorrowersGiveWayIfToldTo) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 4; ++i)
    jobs.push_back({.submit = 0.1 * i, .gpus = 1, .duration = 5000, .model = "bound"});
  jobs.push_back({.submit = 10, .gpus = 1, .duration = 100, .model = "eager"});
  const Outcome stays = run(mixed_cluster(jobs));
  EXPECT_EQ(stays.total_preemptions, 0);
  const Outcome gives = run(mixed_cluster(jobs, {{"preempt_borrowers", "on"}}));
  EXPECT_NEAR(gives.start[4], 310, 1e-6) << "after five minutes";
  EXPECT_EQ(gives.preemptions, (std::vector<int>{0, 0, 0, 1, 0})) << "the youngest borrower";
}

TEST(Pai, AJobThatHasWaitedFiveTimesItsPredictionGoesFirst) {
  Scenario scenario{
      .policy = "pai", .settings = {{"least_wait", "10"}}, .cluster = "1x1", .jobs = {}};
  scenario.jobs = {{.submit = 0.5, .gpus = 1, .duration = 20}};
  for (int i = 0; i < 40; ++i)
    scenario.jobs.push_back({.submit = i * 5.0, .gpus = 1, .duration = 10});
  EXPECT_NEAR(run(scenario).start[0], 110, 1e-6) << "the first end after 100.5";
}

TEST(Pai, SevenRequestsForPartsFitOnThreeGpus) {
  Scenario scenario{
      .policy = "pai", .cluster = "1x3", .placement = "fraction-best-fit", .jobs = {}};
  for (int i = 0; i < 4; ++i)
    scenario.jobs.push_back({.submit = 0, .gpus = 1, .duration = 12, .gpu_milli = 250});
  for (int i = 0; i < 2; ++i)
    scenario.jobs.push_back({.submit = 0, .gpus = 1, .duration = 11, .gpu_milli = 500});
  scenario.jobs.push_back({.submit = 0, .gpus = 1, .duration = 10});
  for (const double start : run(scenario).start) EXPECT_EQ(start, 0);
}

/// Recurring jobs: each user has a few names, run times log-normal around the name's own.
std::vector<JobSpec> recurring(std::uint64_t seed, int count, std::vector<std::string>& names) {
  Rng rng{seed};
  std::vector<JobSpec> jobs;
  double submit = 0;
  std::vector<double> usual;
  for (int i = 0; i < 60; ++i) usual.push_back(rng.lognormal(5, 1.5));
  for (int i = 0; i < count; ++i) {
    const std::size_t name = rng.below(60);
    jobs.push_back({.submit = submit,
                    .gpus = 1,
                    .duration = 1 + usual[name] * rng.lognormal(0, 0.2),
                    .user = fmt::format("u{}", name / 6)});
    names.push_back(fmt::format("n{}", name));
    submit += rng.exponential(52);
  }
  return jobs;
}

double mean_wait(const std::string& policy, const std::string& estimator, std::uint64_t seed) {
  std::vector<std::string> names;
  const std::vector<JobSpec> jobs = recurring(seed, 3000, names);
  Trace trace = make_trace(jobs);
  for (TraceJob& job : trace.jobs) {
    const auto at = std::stoul(std::string(trace.text(job.id))) - 1;
    job.name = trace.names.intern(names[at]);
  }
  const Cluster cluster = *parse_cluster_short("1x8");
  auto made = *make_policy(policy, policy == "pai" ? Settings{{"aging", "0"}} : Settings{});
  auto placement = *make_placement("count");
  auto believes = *make_estimator(estimator, 1);
  const RateModel rates{ProfileSet{}, cluster, Effects{}};
  SimExecutor executor{trace, cluster, SimOptions{}};
  Engine engine{{.trace = trace,
                 .cluster = cluster,
                 .policy = *made,
                 .placement = *placement,
                 .estimator = *believes,
                 .executor = executor,
                 .believed = rates}};
  EXPECT_TRUE(engine.run());
  double sum = 0;
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i)
    sum += to_seconds(engine.jobs().first_start[JobId{i}] - trace.jobs[i].submit);
  return sum / static_cast<double>(trace.jobs.size());
}

TEST(Pai, TheMoreItKnowsTheLessJobsWait) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const double fifo = mean_wait("fifo", "oracle", seed);
    const double user = mean_wait("pai", "pai:user", seed);
    const double group = mean_wait("pai", "pai:group", seed);
    const double gpus = mean_wait("pai", "pai:group-gpu", seed);
    const double oracle = mean_wait("pai", "oracle", seed);
    EXPECT_GT(fifo, user) << "seed " << seed;
    EXPECT_GT(user, group) << "seed " << seed;
    EXPECT_LT(group, 1.4 * oracle) << "seed " << seed;
    EXPECT_LT(gpus, 1.4 * oracle) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::test
