// SJF with sharing: the pair theorem, the search for partners against brute force, and whole runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "perf/rate_function.h"
#include "policies/bsbf/pair.h"
#include "policies/bsbf/partners.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
using namespace bsbf;  // its parts

namespace {

TEST(BsbfPair, IterationTimeWithGradientAccumulation) {
  const auto iteration = [](std::int32_t steps) {
    const double compute = .02 + .001 * (64 / steps);
    return overlapped(compute, .05, 2, steps - 1);
  };
  EXPECT_NEAR(iteration(1), 0.097755, 5e-7);
  EXPECT_NEAR(iteration(2), 0.124139, 5e-7);
  EXPECT_NEAR(iteration(4), 0.169612, 5e-7);
  EXPECT_NEAR(iteration(8), 0.253306, 5e-7);
}

TEST(BsbfPair, SubBatchByMemory) {
  // 2 + 0.1 b GB beside 5 GB of 11 GB with 0.5 GB in reserve: 64 does not fit, 32 does.
  const auto fits = [](std::int32_t b) { return 5 + 2 + 0.1 * b + 0.5 <= 11; };
  EXPECT_EQ(fewest_sub_steps(64, fits), 2);
  EXPECT_EQ(fewest_sub_steps(64, [](std::int32_t) { return true; }), 1);
  EXPECT_EQ(fewest_sub_steps(64, [](std::int32_t b) { return b == 1; }), 64);
  EXPECT_EQ(fewest_sub_steps(64, [](std::int32_t) { return false; }), std::nullopt);
  EXPECT_EQ(fewest_sub_steps(1, [](std::int32_t) { return false; }), std::nullopt);
}

struct PairRow {
  double left_a, length_b;
  SharingSlowdown slowdown;
  double sharing, waiting;
  bool share;
};

TEST(BsbfPair, WorkedExamples) {
  const std::vector<PairRow> rows{
      {100, 60, {1.3, 1.4}, 101.6923, 130, true},  {20, 100, {1.9, 1.9}, 78, 70, false},
      {20, 100, {1.5, 1.5}, 70, 70, false},        {100, 60, {1.9, 1.9}, 134, 130, false},
      {60, 100, {2.2, 1.2}, 122.7273, 110, false}, {100, 30, {2.2, 1.2}, 77.8182, 115, true},
      {300, 120, {1.2, 1.5}, 255, 360, true},      {80, 120, {1.1, 1.2}, 111.3333, 140, true}};
  for (const PairRow& row : rows) {
    const double sharing = average_if_sharing(row.left_a, row.length_b, row.slowdown);
    const double waiting = average_if_waiting(row.left_a, row.length_b);
    EXPECT_NEAR(sharing, row.sharing, 5e-5);
    EXPECT_NEAR(waiting, row.waiting, 5e-5);
    EXPECT_EQ(is_better(sharing, waiting), row.share);
  }
  // With two sub-batches: 500 iterations of 0.124139 s instead of 0.097755 s.
  EXPECT_NEAR(average_if_sharing(100, 62.0694, {1.3, 1.4}), 103.4752, 5e-4);
  EXPECT_NEAR(average_if_waiting(100, 48.8774), 124.4387, 5e-4);
}

/// Two jobs on one device, both there from now on, by their rates alone.
std::pair<double, double> simulate_pair(double a, double b, const SharingSlowdown& slow) {
  const double both = std::min(a * slow.running, b * slow.newcomer);
  const double a_end = a * slow.running <= both ? both : both + a - both / slow.running;
  const double b_end = b * slow.newcomer <= both ? both : both + b - both / slow.newcomer;
  return {a_end, b_end};
}

TEST(BsbfPair, FormulasEqualTheTwoJobSystem) {
  Rng rng{5};
  for (int i = 0; i < 1000; ++i) {
    const double a = 1 + 1000 * rng.uniform();
    const double b = 1 + 1000 * rng.uniform();
    const SharingSlowdown slow{1 + 2 * rng.uniform(), 1 + 2 * rng.uniform()};
    const auto [a_end, b_end] = simulate_pair(a, b, slow);
    EXPECT_NEAR(average_if_sharing(a, b, slow), (a_end + b_end) / 2, 1e-9 * (a + b));
    // Starting later is never better than both ends of the interval.
    const double best = std::min(average_if_sharing(a, b, slow), average_if_waiting(a, b));
    for (const double part : {0.1, 0.3, 0.5, 0.9}) {
      const double delay = a * part;
      const auto [rest, end] = simulate_pair(a - delay, b, slow);
      EXPECT_GE((delay + rest + delay + end) / 2, best - 1e-9 * (a + b));
    }
  }
}

TEST(BsbfPair, TheThresholdSeparatesPartners) {
  Rng rng{7};
  for (int i = 0; i < 20000; ++i) {
    const double alone = 1 + 500 * rng.uniform();
    const double shared = i % 2 == 0 ? alone : alone * (1 + rng.uniform());
    const SharingSlowdown slow{1 + 2 * rng.uniform(), 1 + 2 * rng.uniform()};
    const double least = least_partner_left(shared, alone, slow);
    for (const double factor : {0.2, 0.9, 0.999, 1.001, 1.1, 5.0}) {
      const double left = std::max(least, 1.0) * factor;
      const bool better =
          average_if_sharing(left, shared, slow) < average_if_waiting(left, alone) - 1e-9 * left;
      if (std::abs(left - least) > 1e-6 * (left + shared)) {
        EXPECT_EQ(better, left > least);
      }
    }
  }
}

// The search visits exactly the partners that brute force finds, in its order.
TEST(BsbfPartners, SearchEqualsBruteForce) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng{seed};
    const std::size_t jobs = 1 + rng.below(20);
    PartnerIndex index{jobs, 1};
    std::map<JobId, std::pair<PartnerGroup, double>> all;
    for (std::uint32_t i = 0; i < jobs; ++i) {
      const PartnerGroup group{.profile = ProfileId{static_cast<std::uint32_t>(rng.below(3))},
                               .pool = PoolId{0},
                               .gpus = 1 + static_cast<std::int32_t>(rng.below(2)),
                               .memory_mib = 0};
      const double left = static_cast<double>(1 + rng.below(400));
      all[JobId{i}] = {group, left};
      index.assign(JobId{i}, group);
      if (rng.below(5) == 0) {
        index.add_sharing(JobId{i}, seconds_to_time(1000));
      } else {
        index.add_alone(JobId{i}, seconds_to_time(1000 + left));
      }
    }
    std::array<Beside, 3> by_profile;
    for (Beside& beside : by_profile) {
      beside.fits = rng.below(6) != 0;
      beside.slowdown = {1 + rng.uniform() * 1.5, 1 + rng.uniform() * 1.5};
      beside.stretch = rng.below(2) == 0 ? 1 : 1 + rng.uniform();
      beside.sub_steps = beside.stretch > 1 ? 2 : 1;
    }
    PartnerSearch::Newcomer newcomer{
        .pool = PoolId{0},
        .gpus = 1,
        .length = static_cast<double>(1 + rng.below(300)),
        .rank = rng.below(2) == 0 ? PartnerRank::AverageTime : PartnerRank::Benefit};
    if (rng.below(2) == 0) newcomer.wanted = rng.below(8);
    std::vector<std::tuple<double, bool, JobId>> expected;
    for (const auto& [job, entry] : all) {
      const auto& [group, left] = entry;
      const Beside& terms = by_profile[group.profile.value];
      const double sharing =
          average_if_sharing(left, newcomer.length * terms.stretch, terms.slowdown);
      const double waiting = average_if_waiting(left, newcomer.length);
      if (!terms.fits || !is_better(sharing, waiting)) continue;
      const double rank =
          newcomer.rank == PartnerRank::AverageTime ? sharing : -(waiting - sharing);
      expected.emplace_back(rank, group.gpus != 1, job);
    }
    std::ranges::sort(expected);
    expected.resize(std::min(expected.size(), newcomer.wanted));
    PartnerSearch search;
    search.begin(
        index, newcomer, seconds_to_time(1000),
        [&](BucketId id) -> const Beside& { return by_profile[index[id].group.profile.value]; },
        [&](JobId job) { return SoloLeft{.left = seconds_to_duration(all[job].second)}; });
    std::vector<JobId> found;
    while (const auto partner = search.next()) found.push_back(partner->job);
    ASSERT_EQ(found.size(), expected.size()) << "seed " << seed;
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], std::get<2>(expected[i])) << "seed " << seed;
  }
}

ProfileSet uniform(double slowdown) {
  ProfileSet set;
  set.set_default_slowdown(slowdown);
  return set;
}

Scenario sharing_scenario(const std::string& policy, const std::string& cluster) {
  Scenario scenario;
  scenario.policy = policy;
  scenario.cluster = cluster;
  scenario.placement = "best-fit";
  return scenario;
}

double average_jct(const Scenario& scenario, const Outcome& outcome) {
  return outcome.sum_jct / static_cast<double>(scenario.jobs.size());
}

TEST(Bsbf, SharesWhereItPays) {
  Scenario scenario = sharing_scenario("sjf-bsbf", "1x1");
  scenario.profiles = uniform(1.25);
  scenario.jobs = {{0, 1, 100}, {10, 1, 20}};
  const Outcome shared = run(scenario);
  EXPECT_NEAR(shared.finish[0], 105, 1e-4);
  EXPECT_NEAR(shared.finish[1], 35, 1e-4);
  scenario.policy = "sjf";
  EXPECT_NEAR(average_jct(scenario, run(scenario)), 105, 1e-4);
}

TEST(Bsbf, WaitsWhereSharingHurts) {
  Scenario scenario = sharing_scenario("sjf-ffs", "1x1");
  scenario.profiles = uniform(1.9);
  scenario.jobs = {{0, 1, 100}, {10, 1, 100}};
  const Outcome first_fit = run(scenario);
  EXPECT_NEAR(first_fit.finish[0], 181, 1e-4);
  EXPECT_NEAR(first_fit.finish[1], 191, 1e-4);
  scenario.policy = "sjf-bsbf";
  const Outcome best = run(scenario);
  EXPECT_NEAR(best.finish[0], 100, 1e-4);
  EXPECT_NEAR(best.finish[1], 200, 1e-4);
}

Scenario five_jobs(const std::string& policy) {
  Scenario scenario = sharing_scenario(policy, "1x2");
  const ProfileId heavy = scenario.profiles.add({.name = "H"});
  const ProfileId light = scenario.profiles.add({.name = "L"});
  scenario.profiles.set_slowdown(heavy, heavy, 1.9);
  scenario.profiles.set_slowdown(heavy, light, 1.15);
  scenario.profiles.set_slowdown(light, heavy, 1.25);
  scenario.profiles.set_slowdown(light, light, 1.1);
  scenario.jobs = {{.submit = 0, .duration = 100, .model = "H"},
                   {.submit = 0, .duration = 80, .model = "L"},
                   {.submit = 10, .duration = 60, .model = "H"},
                   {.submit = 20, .duration = 30, .model = "L"},
                   {.submit = 25, .duration = 90, .model = "H"}};
  return scenario;
}

void expect_jcts(const Scenario& scenario, const std::vector<double>& jcts, double average) {
  const Outcome outcome = run(scenario);
  for (std::size_t i = 0; i < jcts.size(); ++i)
    EXPECT_NEAR(outcome.finish[i] - scenario.jobs[i].submit, jcts[i], 1e-4) << "job " << i + 1;
  EXPECT_NEAR(average_jct(scenario, outcome), average, 1e-4);
}

TEST(Bsbf, FiveJobsOnTwoGpus) {
  expect_jcts(five_jobs("sjf"), {100, 80, 150, 90, 175}, 119.0);
  expect_jcts(five_jobs("sjf-ffs"), {147.5435, 93.8, 69, 37.5, 165.1522}, 102.5991);
  expect_jcts(five_jobs("sjf-bsbf"), {104.8913, 97.5, 69, 37.5, 146.4130}, 91.0609);
  Scenario benefit = five_jobs("sjf-bsbf");
  benefit.settings = {{"rank", "benefit"}};
  expect_jcts(benefit, {104.8913, 97.5, 69, 37.5, 146.4130}, 91.0609);
}

TEST(Bsbf, TheNewcomerTakesASmallerSubBatchUntilItsPartnerIsGone) {
  Scenario scenario = sharing_scenario("sjf-bsbf", "1x1:v100");
  Profile profile{.name = "m"};
  profile.batch = 64;
  profile.iteration = {.alpha = 0.02, .beta = 0.001, .gradient_bytes = 0, .overlap = 2};
  profile.memory = {.fixed_mib = 2000, .per_sample_mib = 100};  // 8,400 MiB alone; V100 has 16,384
  scenario.profiles.add(profile);
  scenario.profiles.set_slowdown(ProfileId{1}, ProfileId{1}, 1.2);
  scenario.jobs = {{.submit = 0, .duration = 100, .model = "m"},
                   {.submit = 0, .duration = 200, .model = "m"}};
  const Outcome outcome = run(scenario);
  // 0.052 * 2 / 0.084 = 1.238 times longer in two sub-batches; both run from 0, the first ends at
  // 120, by then the second did 120 / 1.2 / 1.238 of its 200 and goes on with whole batches.
  const double stretch = 2 * 0.052 / 0.084;
  EXPECT_NEAR(outcome.finish[0], 120, 1e-3);
  EXPECT_NEAR(outcome.finish[1], 120 + 200 - 100 / stretch, 1e-3);
  scenario.settings = {{"restore", "off"}};
  EXPECT_NEAR(run(scenario).finish[1], 120 + (200 - 100 / stretch) * stretch, 1e-3);
}

// Whole batches do not fit even alone: nothing is to be restored, however often others come and go.
TEST(Bsbf, WhoAccumulatesGradientsAloneGoesOnDoingSo) {
  for (const std::string policy : {"sjf-ffs", "sjf-bsbf"}) {
    Scenario scenario = sharing_scenario(policy, "1x4:v100");
    Profile profile{.name = "large"};
    profile.batch = 64;
    profile.iteration = {.alpha = 0.02, .beta = 0.001, .gradient_bytes = 0, .overlap = 2};
    profile.memory = {.fixed_mib = 2000, .per_sample_mib = 400};  // 27,600 MiB; 14,800 in halves
    scenario.profiles.add(profile);
    for (int i = 0; i < 12; ++i)
      scenario.jobs.push_back({.submit = 0, .duration = 100.0 + i, .model = "large"});
    const Outcome outcome = run(scenario);
    const double stretch = 2 * 0.052 / 0.084;
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
      const double before = i < 4 ? 0 : outcome.finish[i - 4];
      EXPECT_NEAR(outcome.finish[i], before + scenario.jobs[i].duration * stretch, 1e-3)
          << policy << " job " << i + 1;
    }
  }
}

TEST(Bsbf, RefusesWhatFitsInNoDevice) {
  Scenario scenario = sharing_scenario("sjf-bsbf", "1x1:v100");
  Profile profile{.name = "huge"};
  profile.memory = {.fixed_mib = 20000, .per_sample_mib = 1};
  scenario.profiles.add(profile);
  scenario.jobs = {{.submit = 0, .duration = 100, .model = "huge"}};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.state[0], JobState::Rejected);
  ASSERT_EQ(outcome.rejected.size(), 1U);
  EXPECT_NE(outcome.rejected[0].find("20001 MiB"), std::string::npos) << outcome.rejected[0];
}

class Watcher final : public Observer {
 public:
  void append(Time, const Action&) override {}
  void instant_done(Time) override {
    const ClusterState& state = engine->cluster();
    for (std::uint32_t n = 0; n < state.cluster().nodes.size(); ++n) {
      for (int d = 0; d < state.cluster().nodes[n].gpus; ++d)
        most = std::max(most, state.jobs_on(NodeId{n}, d).size());
    }
    for (std::uint32_t i = 0; i < engine->jobs().size(); ++i) {
      if (!engine->jobs().is_waiting(JobId{i})) continue;
      std::int64_t room = 0;
      for (std::uint32_t n = 0; n < state.cluster().nodes.size(); ++n) {
        for (int d = 0; d < state.cluster().nodes[n].gpus; ++d)
          room += state.jobs_on(NodeId{n}, d).size() < 2;
      }
      if (room >= trace->jobs[i].gpus) ++refused;
    }
  }
  std::size_t most = 0;
  int refused = 0;
};

TEST(Bsbf, NeverThreeOnADeviceAndNeverRefusesAtLittleInterference) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 20, .many_nodes = true});
    scenario.policy = "sjf-bsbf";
    scenario.placement = "best-fit";
    scenario.profiles = uniform(1.2);
    Watcher watcher;
    static_cast<void>(run(scenario, &watcher));
    ASSERT_LE(watcher.most, 2U);
  }
  // Single devices: what waits has no device with fewer than two jobs.
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 30});
    scenario.policy = "sjf-bsbf";
    scenario.placement = "best-fit";
    scenario.profiles = uniform(1.2);
    for (JobSpec& job : scenario.jobs) job.gpus = 1;
    Watcher watcher;
    static_cast<void>(run(scenario, &watcher));
    ASSERT_EQ(watcher.refused, 0) << "seed " << seed;
  }
}

TEST(Bsbf, IsSjfWhereSharingNeverPays) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 20, .many_nodes = true});
    for (JobSpec& job : scenario.jobs) job.duration = 10 + std::fmod(job.duration, 30);
    scenario.placement = "best-fit";
    scenario.profiles = uniform(3);
    scenario.policy = "sjf-bsbf";
    const Outcome best = run(scenario);
    scenario.policy = "sjf";
    const Outcome plain = run(scenario);
    ASSERT_EQ(best.finish, plain.finish) << "seed " << seed;
  }
}

/// The algorithm as it is written, every waiting job against every running one, on one pool of
/// one-node clusters or many: what the policy must equal.
class Plain final : public Policy {
 public:
  explicit Plain(PartnerRank rank) : rank_(rank) {}
  std::string_view name() const noexcept override { return "plain"; }
  PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Profile, .shares_devices = true};
  }
  void on_arrival(const View&, JobId job) override { waiting_.push_back(job); }
  void on_requeue(const View&, JobId job) override { waiting_.push_back(job); }
  void decide(const View& view, Plan& plan, Rng&) override {
    std::ranges::sort(waiting_, {},
                      [&](JobId job) { return std::pair(view.estimated_left(job), job); });
    std::erase_if(waiting_, [&](JobId job) { return start(view, plan, job); });
  }

 private:
  struct Choice {
    double rank;
    bool unequal;
    JobId job;
    auto operator<=>(const Choice&) const = default;
  };
  bool start(const View& view, Plan& plan, JobId job) {
    if (plan.try_start(job)) return true;
    const ClusterState& state = view.cluster;
    const int gpus = view.gpus(job);
    if (state.free_gpus() >= gpus) return false;
    std::map<JobId, std::vector<std::pair<NodeId, int>>> singles;
    std::vector<std::pair<NodeId, int>> chosen;
    for (std::uint32_t n = 0; n < state.cluster().nodes.size(); ++n) {
      if (!state.is_up(NodeId{n})) continue;
      for (int d = 0; d < state.cluster().nodes[n].gpus; ++d) {
        const auto here = state.jobs_on(NodeId{n}, d);
        if (here.empty()) chosen.emplace_back(NodeId{n}, d);
        if (here.size() == 1) singles[here.front()].emplace_back(NodeId{n}, d);
      }
    }
    std::vector<Choice> choices;
    const double b = to_seconds(view.estimated_left(job));
    for (const auto& [mate, devices] : singles) {
      const double a = to_seconds(view.estimated_left(mate));
      const SharingSlowdown slow{
          view.believed().profiles().slowdown(view.jobs.profile[mate], view.jobs.profile[job]),
          view.believed().profiles().slowdown(view.jobs.profile[job], view.jobs.profile[mate])};
      const double sharing = average_if_sharing(a, b, slow);
      const double waiting = average_if_waiting(a, b);
      if (!(a > 0) || !is_better(sharing, waiting)) continue;
      choices.push_back({rank_ == PartnerRank::AverageTime ? sharing : sharing - waiting,
                         view.gpus(mate) != gpus, mate});
    }
    std::ranges::sort(choices);
    for (const Choice& choice : choices) {
      auto devices = singles[choice.job];
      std::ranges::stable_partition(devices, [&](const auto& device) {
        return std::ranges::any_of(chosen, [&](const auto& c) { return c.first == device.first; });
      });
      for (const auto& device : devices) {
        if (static_cast<int>(chosen.size()) < gpus) chosen.push_back(device);
      }
    }
    if (static_cast<int>(chosen.size()) < gpus) return false;
    std::map<NodeId, std::uint64_t> masks;
    for (const auto& [node, device] : chosen)
      masks[node] |= std::uint64_t{1} << static_cast<unsigned>(device);
    std::vector<Slice> slices;
    for (const auto& [node, mask] : masks) slices.push_back({node, std::popcount(mask), mask});
    return plan.try_share_on(job, PoolId{0}, slices, 2);
  }
  PartnerRank rank_;
  std::vector<JobId> waiting_;
};

TEST(Bsbf, EqualsTheAlgorithmAsWritten) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 40, .many_nodes = true});
    scenario.placement = "best-fit";
    Rng rng{seed};
    const ProfileId a = scenario.profiles.add({.name = "vgg16"});
    const ProfileId b = scenario.profiles.add({.name = "resnet50"});
    for (const ProfileId x : {a, b}) {
      for (const ProfileId y : {a, b})
        scenario.profiles.set_slowdown(x, y, 1 + 1.2 * rng.uniform());
    }
    if (seed % 3 == 0) scenario.estimator = "oracle:0.5";
    if (seed % 4 == 0) {
      scenario.sim.outages = {{NodeId{0}, seconds_to_time(6), seconds_to_time(15)}};
    }
    const bool benefit = seed % 2 == 0;
    scenario.policy = "sjf-bsbf";
    scenario.settings = {{"rank", benefit ? "benefit" : "tcon"}};
    const Outcome fast = run(scenario);
    Plain plain{benefit ? PartnerRank::Benefit : PartnerRank::AverageTime};
    const Outcome slow = run_with(scenario, plain);
    ASSERT_EQ(fast.start, slow.start) << "seed " << seed;
    ASSERT_EQ(fast.finish, slow.finish) << "seed " << seed;
  }
}

TEST(Bsbf, ConsolidateKeepsAGangOnOneServerIfItCan) {
  Scenario scenario = sharing_scenario("sjf-bsbf", "2x2");
  scenario.settings = {{"consolidate", "on"}};
  scenario.profiles = uniform(1.1);
  // One GPU of each server is taken; a gang of two shares one server rather than spread.
  scenario.jobs = {{0, 1, 100}, {0, 1, 100}, {0, 1, 90}, {10, 2, 50}};
  class Slices final : public Observer {
   public:
    void append(Time, const Action& action) override {
      if (action.gpus == 2) servers = action.slices.size();
    }
    std::size_t servers = 0;
  } observer;
  static_cast<void>(run(scenario, &observer));
  EXPECT_EQ(observer.servers, 1U);
  scenario.settings = {};
  static_cast<void>(run(scenario, &observer));
  EXPECT_EQ(observer.servers, 2U);
}

}  // namespace
}  // namespace berth::test
