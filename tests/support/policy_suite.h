// What every policy owes its users, whatever its order: no device twice, gangs whole, work
// conserved, every feasible job ends, same input same bytes. For the policies of the registry and
// for your own.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {

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
    shares = policy.traits().shares_devices;
    resizes = policy.traits().resizes;
    powers = policy.traits().manages_power;
  }
  bool shares = false;
  bool resizes = false;
  bool powers = false;
  [[nodiscard]] bool moves_rates() const noexcept { return shares || resizes; }

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

/// Every job is completed with all its work done; without sharing and resizing it also held its
/// devices exactly as long as that took, beside what moving it about cost.
inline void expect_all_ended(const Scenario& scenario, const Outcome& outcome, bool moves_rates) {
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
    const double length = scenario.jobs[i].duration;
    ASSERT_EQ(outcome.state[i], JobState::Completed) << "job " << i + 1;
    // Each change of rate rounds down by less than a microsecond of work.
    ASSERT_NEAR(outcome.work[i], length, 1e-3) << "job " << i + 1;
    if (moves_rates) continue;  // beside others, or on more devices, it holds them otherwise
    ASSERT_NEAR(outcome.held[i] - outcome.overhead[i], length, 1e-9) << "job " << i + 1;
    ASSERT_GE(outcome.finish[i] + 1e-9, scenario.jobs[i].submit + length);
  }
}

using PolicyMaker = std::function<std::unique_ptr<Policy>()>;

/// Random contended workloads with ties, switch costs, node outages and two device types.
inline Scenario suite_scenario(std::uint64_t seed) {
  Scenario scenario = random_scenario(seed, {.max_jobs = seed % 8 == 0 ? 60 : 15,
                                             .many_nodes = true,
                                             .fractions = seed % 2 == 0,
                                             .two_types = seed % 5 >= 3});
  scenario.placement = "best-fit";
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
  return scenario;
}

inline void expect_sound(const PolicyMaker& make, std::uint64_t workloads = 100) {
  for (std::uint64_t seed = 1; seed <= workloads; ++seed) {
    SCOPED_TRACE(fmt::format("workload {}", seed));
    Scenario scenario = suite_scenario(seed);
    const auto policy = make();
    Auditor auditor;
    auditor.expect(*policy);
    const Outcome outcome = run_with(scenario, *policy, &auditor);
    expect_all_ended(scenario, outcome, auditor.moves_rates());
    const auto again = make();
    EXPECT_EQ(run_with(scenario, *again).digest, outcome.digest) << "the same bytes again";
    scenario.shuffle = seed;
    const auto shuffled = make();
    EXPECT_EQ(run_with(scenario, *shuffled).digest, outcome.digest) << "for a shuffled file too";
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace berth::test
