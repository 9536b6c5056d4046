// What every policy of the registry owes its users, whatever its order: no device twice, gangs
// whole, work conserved, every feasible job ends, same input same bytes. Random contended workloads
// with ties, switch costs and node outages, under every placement.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

/// Keeps its own books from the actions alone and compares them with the cluster after every
/// instant.
class Auditor final : public Observer {
 public:
  void append(Time, const Action& action) override {
    if (action.kind == ActionKind::Start && !resizes) {
      EXPECT_EQ(action.gpus, trace->jobs[action.job.value].gpus);
    }
    switch (action.kind) {
      case ActionKind::Share:
        EXPECT_TRUE(shares) << "only a policy that says so shares devices";
        [[fallthrough]];
      case ActionKind::Start:
      case ActionKind::Resume:
        EXPECT_FALSE(held_.contains(action.job)) << "a job runs once at a time";
        take(action);
        break;
      case ActionKind::Resize:
        EXPECT_TRUE(shares || resizes) << "only a policy that says so resizes jobs";
        [[fallthrough]];
      case ActionKind::Migrate:
        EXPECT_TRUE(held_.contains(action.job)) << "only a running job moves";
        take(action);
        break;
      case ActionKind::SetSubBatch:
      case ActionKind::SetCores:
      case ActionKind::SetShare:
      case ActionKind::SetBatch:
      case ActionKind::SetMemory:
        EXPECT_TRUE(held_.contains(action.job)) << "only a running job has terms to change";
        break;
      case ActionKind::Preempt:
      case ActionKind::Suspend:
      case ActionKind::Kill:
        EXPECT_TRUE(held_.contains(action.job)) << "only a job that holds devices is stopped";
        held_.erase(action.job);
        break;
      case ActionKind::Reject: break;
      case ActionKind::PowerOn:
      case ActionKind::PowerOff:
        EXPECT_TRUE(powers) << "only a policy that says so switches nodes";
        break;
    }
  }
  void instant_done(Time) override {
    std::erase_if(held_,
                  [&](const auto& entry) { return is_over(engine->jobs().state[entry.first]); });
    std::map<std::pair<std::uint32_t, int>, std::size_t> jobs_on;
    std::int64_t counted = 0;  // without nodes
    for (const auto& [job, slices] : held_) {
      EXPECT_EQ(engine->jobs().state[job], JobState::Running);
      for (const Slice& slice : slices) {
        EXPECT_TRUE(engine->cluster().is_up(slice.node)) << "no job on a node that is down";
        for_each_device(slice.devices, [&](int d) { ++jobs_on[{slice.node.value, d}]; });
      }
      if (slices.empty()) counted += trace->jobs[job.value].gpus;
    }
    for (const auto& [device, jobs] : jobs_on)
      check_device(NodeId{device.first}, device.second, jobs);
    const std::int64_t total = counted + static_cast<std::int64_t>(jobs_on.size());
    EXPECT_EQ(total, engine->cluster().usable_gpus() - engine->cluster().free_gpus());
    EXPECT_LE(total, engine->cluster().usable_gpus());
    if (check_conservation) expect_nothing_fits();
  }
  bool check_conservation = false;
  void expect(const Policy& policy) {
    shares = policy.shares_devices();
    resizes = policy.resizes();
    powers = policy.manages_power();
  }
  bool shares = false;
  bool resizes = false;
  bool powers = false;

 private:
  void check_device(NodeId node, int device, std::size_t jobs) const {
    EXPECT_LE(jobs, shares ? kMaxSharers : 1U) << "no device beyond its limit";
    if (jobs < 2) return;
    EXPECT_EQ(engine->cluster().jobs_on(node, device).size(), jobs);
    EXPECT_GE(engine->cluster().free_memory_mib(node, device), 0) << "memory respected";
  }

  void take(const Action& action) {
    std::int32_t sum = 0;
    for (const Slice& slice : action.slices) {
      EXPECT_EQ(std::popcount(slice.devices), slice.gpus);
      EXPECT_LE(std::bit_width(slice.devices),
                engine->cluster().cluster().nodes[slice.node.value].gpus);
      sum += slice.gpus;
    }
    if (!action.slices.empty()) {
      EXPECT_EQ(sum, action.gpus) << "gangs whole";
    }
    held_[action.job].assign(action.slices.begin(), action.slices.end());
  }
  void expect_nothing_fits() const {
    for (std::uint32_t i = 0; i < engine->jobs().size(); ++i) {
      if (engine->jobs().is_waiting(JobId{i})) {
        EXPECT_GT(trace->jobs[i].gpus, engine->cluster().free_gpus())
            << "a job waits beside GPUs it fits on";
      }
    }
  }
  std::map<JobId, std::vector<Slice>> held_;
};

bool needs_devices(const std::string& policy) { return (*make_policy(policy))->needs_devices(); }

Scenario scenario_for(const std::string& policy, std::uint64_t seed) {
  Scenario scenario = random_scenario(seed, {.max_jobs = seed % 8 == 0 ? 60 : 15,
                                             .many_nodes = true,
                                             .fractions = seed % 2 == 0,
                                             .two_types = seed % 5 >= 3});
  scenario.policy = policy;
  const auto known = placements();
  scenario.placement = known[seed % known.size()].name;
  if (needs_devices(policy) && scenario.placement == "count") scenario.placement = "best-fit";
  scenario.estimator = seed % 3 == 0 ? "oracle:1" : seed % 3 == 1 ? "oracle" : "history";
  if (seed % 2 == 1) {
    scenario.sim.costs = {.start = std::chrono::seconds{1},
                          .preempt = std::chrono::milliseconds{1500},
                          .resume = std::chrono::seconds{2},
                          .migrate = std::chrono::seconds{3}};
  }
  if (seed % 4 == 2) {
    scenario.sim.outages = {{NodeId{0}, seconds_to_time(6), seconds_to_time(15)},
                            {NodeId{0}, seconds_to_time(30), seconds_to_time(31)}};
  }
  if (policy.starts_with("tiresias"))
    scenario.settings = {{"thresholds", "9,30"}, {"promote_knob", seed % 2 == 0 ? "2" : "off"}};
  if (policy == "tiresias-g") scenario.settings.push_back({"min_samples", "3"});
  if (policy.starts_with("las")) scenario.settings = {{"quantum", "5"}};
  if (policy == "gandiva") {
    scenario.settings = {{"slice", "3"},     {"tick", "2"},        {"pack_probe", "1"},
                         {"rebalance", "5"}, {"idle_period", "3"}, {"migrate_cooldown", "4"}};
  }
  if (policy == "agents" && seed % 3 != 0) {
    scenario.settings = {
        {"pod_devices", "6"}, {"lease", "5"}, {"interval", "2"}, {"exchange", "1"}};
  }
  if (policy == "antman") scenario.settings = {{"op", "q1"}, {"op_upgrade", "20"}};
  return scenario;
}

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, KeepsTheBooksAndEndsEveryFeasibleJob) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Scenario scenario = scenario_for(GetParam(), seed);
    Auditor auditor;
    auditor.expect(**make_policy(GetParam()));
    const Outcome outcome = run(scenario, &auditor);
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
      ASSERT_EQ(outcome.state[i], JobState::Completed) << "job " << i + 1;
      // Each change of rate rounds down by less than a microsecond of work.
      ASSERT_NEAR(outcome.work[i], scenario.jobs[i].duration, 1e-3) << "job " << i + 1;
      if (auditor.shares || auditor.resizes)
        continue;  // beside others, or on more devices, it holds them longer, or shorter
      // Work is conserved: what it held less what moving it about cost is exactly its length.
      ASSERT_NEAR(outcome.held[i] - outcome.overhead[i], scenario.jobs[i].duration, 1e-9)
          << "job " << i + 1;
      ASSERT_GE(outcome.finish[i] + 1e-9, scenario.jobs[i].submit + scenario.jobs[i].duration);
    }
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(EveryPolicy, GivesTheSameBytesAgainAndForAShuffledFile) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Scenario scenario = scenario_for(GetParam(), seed);
    const std::string digest = run(scenario).digest;
    ASSERT_EQ(run(scenario).digest, digest) << "seed " << seed;
    // The error of a noisy estimate belongs to the job's name, which is numbered in reading order.
    if (scenario.estimator == "oracle:1") scenario.estimator = "oracle";
    const std::string ordered = run(scenario).digest;
    scenario.shuffle = seed;
    ASSERT_EQ(run(scenario).digest, ordered) << "seed " << seed;
  }
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPolicy, ::testing::ValuesIn(all_policies()),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

class SkipPolicies : public ::testing::TestWithParam<std::string> {};

TEST_P(SkipPolicies, LeaveNoJobWaitingBesideGpusItFitsOn) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 20});
    scenario.policy = GetParam();
    Auditor auditor;
    auditor.check_conservation = true;
    static_cast<void>(run(scenario, &auditor));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Conserving, SkipPolicies,
                         ::testing::Values("fifo-skip", "sjf", "smallest", "srtf", "srsf", "las",
                                           "las-2d", "tiresias-l", "tiresias-g", "priority"),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Pools of different size, many passes, costs that delay starts: what once left a preemptive policy
// believing that an empty cluster was full.
TEST_P(EveryPolicy, EndsEveryJobOnUnequalPoolsWithCosts) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Rng rng{seed};
    Scenario scenario;
    scenario.policy = GetParam();
    scenario.cluster = seed % 2 == 0 ? "3x4:v100,2x2:a100" : "3x4:v100,2x4:a100";
    scenario.placement = seed <= 2 || needs_devices(GetParam()) ? "best-fit" : "count";
    if (GetParam().starts_with("las")) scenario.settings = {{"quantum", "5"}};
    double submit = 0;
    for (int i = 0; i < 120; ++i) {
      scenario.jobs.push_back({.submit = submit,
                               .gpus = 1 + static_cast<int>(rng.below(4)),
                               .duration = 0.5 + static_cast<double>(rng.below(4000)) / 100});
      submit += static_cast<double>(rng.below(500)) / 100;
    }
    const Duration cost = std::chrono::milliseconds{250};
    scenario.sim.costs = {.start = cost, .preempt = cost, .resume = cost * 2, .migrate = cost};
    Auditor auditor;
    auditor.expect(**make_policy(GetParam()));
    const Outcome outcome = run(scenario, &auditor);
    for (const JobState state : outcome.state)
      ASSERT_EQ(state, JobState::Completed) << "seed " << seed;
  }
}

TEST(Fifo, StartsInArrivalOrder) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scenario scenario = random_scenario(seed, {.max_jobs = 20, .many_nodes = true});
    const Outcome outcome = run(scenario);
    ASSERT_TRUE(std::ranges::is_sorted(outcome.start)) << "seed " << seed;
  }
}

/// Least possible sum of completion times on one GPU, by trying every job at every second.
double best_sum(const std::vector<JobSpec>& jobs, std::vector<int> left, int now,
                std::map<std::pair<int, std::vector<int>>, double>& known) {
  if (std::ranges::all_of(left, [](int l) { return l == 0; })) return 0;
  if (const auto found = known.find({now, left}); found != known.end()) return found->second;
  double best = 1e18;
  bool any = false;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (left[i] == 0 || jobs[i].submit > now) continue;
    any = true;
    std::vector<int> next = left;
    --next[i];
    best = std::min(best, (next[i] == 0 ? now + 1 : 0) + best_sum(jobs, next, now + 1, known));
  }
  if (!any) best = best_sum(jobs, left, now + 1, known);
  return known[{now, left}] = best;
}

TEST(Srtf, IsOptimalOnOneGpu) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng{seed};
    Scenario scenario;
    scenario.policy = "srtf";
    scenario.cluster = "1x1";
    std::vector<int> left;
    double submits = 0;
    for (int i = 0; i < 4; ++i) {
      JobSpec job{.submit = i == 0 ? 0 : static_cast<double>(rng.below(6)),
                  .gpus = 1,
                  .duration = 1 + static_cast<double>(rng.below(5))};
      submits += job.submit;
      left.push_back(static_cast<int>(job.duration));
      scenario.jobs.push_back(job);
    }
    std::map<std::pair<int, std::vector<int>>, double> known;
    ASSERT_DOUBLE_EQ(run(scenario).sum_jct, best_sum(scenario.jobs, left, 0, known) - submits)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::test
