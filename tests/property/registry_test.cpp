// What every policy of the registry owes its users, whatever its order: no device twice, gangs
// whole, work conserved, every feasible job ends, same input same bytes. Random contended workloads
// with ties, switch costs and node outages, under every placement.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/policy_suite.h"
#include "support/random_scenario.h"
#include "support/registry_scenario.h"
#include "support/run.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, KeepsTheBooksAndEndsEveryFeasibleJob) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Scenario scenario = scenario_for(GetParam(), seed);
    Auditor auditor;
    auditor.expect(**make_policy(GetParam()));
    const Outcome outcome = run(scenario, &auditor);
    expect_all_ended(scenario, outcome, auditor.moves_rates());
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

/// What an executor has to be able to do for this action.
std::optional<Ability> needed_for(const Action& action) {
  switch (action.kind) {
    case ActionKind::Suspend: return Ability::Suspend;
    case ActionKind::SetSubBatch: return Ability::SubBatch;
    case ActionKind::SetBatch: return Ability::Batch;
    case ActionKind::SetCores: return Ability::Cores;
    case ActionKind::SetMemory: return Ability::HostMemory;
    case ActionKind::PowerOn:
    case ActionKind::PowerOff: return Ability::Power;
    default: return std::nullopt;
  }
}

class Needed final : public Observer {
 public:
  void append(Time, const Action& action) override {
    const auto add = [&](Ability ability) { seen = seen | ability; };
    if (const auto ability = needed_for(action)) add(*ability);
    if (action.kind == ActionKind::Share) add(Ability::Share);
    const bool is_stop = ends_stretch(action.kind) || action.kind == ActionKind::Kill;
    if (is_stop || action.kind == ActionKind::Reject) return;
    const Terms plain;
    if (action.terms.throttle_milli != plain.throttle_milli) add(Ability::Throttle);
    if (action.terms.memory_limit_mib != 0) add(Ability::DeviceMemory);
    if (action.terms.sub_steps != 1) add(Ability::SubBatch);
    if (action.terms.batch != 0) add(Ability::Batch);
    if (action.terms.cores_milli != 0) add(Ability::Cores);
    if (action.terms.host_memory_mib != 0) add(Ability::HostMemory);
  }
  Capabilities seen;
};

TEST_P(EveryPolicy, SaysWhatItUses) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Scenario scenario = scenario_for(GetParam(), seed);
    const auto policy = make_policy(GetParam(), scenario.settings);
    Needed needed;
    static_cast<void>(run_with(scenario, **policy, &needed));
    for (const Ability ability : kAbilities) {
      EXPECT_TRUE(!needed.seen.has(ability) || (*policy)->traits().uses().has(ability))
          << to_string(ability) << ", seed " << seed;
    }
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(EveryPolicy, PlansNothingThatCannotBeDoneAndEndsEveryJobAllTheSame) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Scenario scenario = scenario_for(GetParam(), seed);
    scenario.sim.can = {};
    Needed needed;
    const Outcome outcome = run(scenario, &needed);
    for (const Ability ability : kAbilities)
      EXPECT_FALSE(needed.seen.has(ability)) << to_string(ability);
    expect_all_ended(scenario, outcome, true);
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPolicy, ::testing::ValuesIn(all_policies()), kByName);

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
                         kByName);

// On a live cluster nobody knows the jobs of tomorrow; what does not peek decides as if it did.
TEST_P(EveryPolicy, DecidesTheSameWithoutKnowingTheJobsBefore) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Scenario scenario = scenario_for(GetParam(), seed);
    // Where nobody knows the jobs before, they are real, and have no size but what they agree to.
    if (has_param(GetParam(), "elastic")) set(scenario.settings, "elastic", "declared");
    const std::string known = run(scenario).digest;
    scenario.open = true;
    ASSERT_EQ(run(scenario).digest, known) << "seed " << seed;
  }
}

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
    if (GetParam() == "oasis") scenario.settings = {{"reject_to_besteffort", "on"}};
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

/// A policy whose point is to refuse: whom it accepts it ends, and whom it refuses it leaves alone
/// and tells why, in numbers.
class Refusing : public ::testing::TestWithParam<std::string> {};

TEST_P(Refusing, EndsWhomItAcceptsAndTellsTheOthersWhy) {
  std::size_t refused = 0;
  std::size_t jobs = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Scenario scenario = scenario_for(GetParam(), seed);
    scenario.settings = {{"slot", "2"}, {"target", "2"}, {"sensitivity", "1"}};
    Auditor auditor;
    auditor.expect(**make_policy(GetParam()));
    const Outcome outcome = run(scenario, &auditor);
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
      if (outcome.state[i] != JobState::Rejected) {
        ASSERT_EQ(outcome.state[i], JobState::Completed) << "job " << i + 1;
        continue;
      }
      ++refused;
      ASSERT_EQ(outcome.start[i], -1) << "job " << i + 1 << " was refused and held devices";
      ASSERT_EQ(outcome.held[i], 0) << "job " << i + 1;
    }
    for (const std::string& text : outcome.rejected)
      ASSERT_NE(text.find_first_of("0123456789"), std::string::npos) << text;
    ASSERT_EQ(outcome.rejected.size(),
              static_cast<std::size_t>(std::ranges::count(outcome.state, JobState::Rejected)));
    jobs += scenario.jobs.size();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(refused, jobs / 50);  // there is something to refuse
  EXPECT_LT(refused, jobs);
}

INSTANTIATE_TEST_SUITE_P(ByPrice, Refusing, ::testing::Values("oasis"),
                         [](const auto& row) { return row.param; });

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
