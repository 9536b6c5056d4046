// No priority inversion: nobody waits behind jobs of lower rank that could make room. After every
// instant, for every job that waits: even if all running jobs that it outranks and that may be
// preempted gave their devices back, the placement would find no place for it.
//
// Which jobs a job outranks is written down here once more, from the documentation of the policy,
// and every preemptive policy of the registry is either in that table or in the list of those whose
// published algorithm is not by rank, with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/naive_policies.h"
#include "support/random_scenario.h"
#include "support/registry_scenario.h"
#include "support/run.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

using Outranks = bool (*)(const Engine& engine, const Trace& trace, JobId waiting, JobId running);

Int128 left_of(const Engine& engine, JobId job) {
  return (engine.estimates()[job] - engine.jobs().work_done(job, engine.now())).count();
}
Int128 attained_by(const Engine& engine, JobId job) {
  return engine.jobs().attained(job, engine.now()).count();
}
Time deadline_of(const Trace& trace, JobId job) {
  return trace.jobs[job.value].deadline.value_or(kNever);
}
/// With thresholds of 9 and 30 GPU-seconds.
int queue_of(const Engine& engine, const Trace& trace, JobId job) {
  const Int128 service = attained_by(engine, job) * trace.jobs[job.value].gpus;
  return (service >= 9'000'000 ? 1 : 0) + (service >= 30'000'000 ? 1 : 0);
}

template <class Key>
bool comes_before(const Key& a, JobId a_job, const Key& b, JobId b_job) {
  return std::tuple(a, a_job) < std::tuple(b, b_job);
}

const std::map<std::string, Outranks>& ranks() {
  static const std::map<std::string, Outranks> kRanks{
      {"srtf", [](const Engine& e, const Trace&, JobId a,
                  JobId b) { return comes_before(left_of(e, a), a, left_of(e, b), b); }},
      {"srsf",
       [](const Engine& e, const Trace& t, JobId a, JobId b) {
         return comes_before(left_of(e, a) * t.jobs[a.value].gpus, a,
                             left_of(e, b) * t.jobs[b.value].gpus, b);
       }},
      {"las", [](const Engine& e, const Trace&, JobId a,
                 JobId b) { return comes_before(attained_by(e, a), a, attained_by(e, b), b); }},
      {"las-2d",
       [](const Engine& e, const Trace& t, JobId a, JobId b) {
         return comes_before(attained_by(e, a) * t.jobs[a.value].gpus, a,
                             attained_by(e, b) * t.jobs[b.value].gpus, b);
       }},
      {"edf", [](const Engine&, const Trace& t, JobId a,
                 JobId b) { return comes_before(deadline_of(t, a), a, deadline_of(t, b), b); }},
      // Runners are safe from waiting jobs of their own queue.
      {"tiresias-l", [](const Engine& e, const Trace& t, JobId a,
                        JobId b) { return queue_of(e, t, a) < queue_of(e, t, b); }},
      // Inside a queue by an index that moves between two looks: here by queue alone.
      {"tiresias-g", [](const Engine& e, const Trace& t, JobId a,
                        JobId b) { return queue_of(e, t, a) < queue_of(e, t, b); }},
      {"priority", [](const Engine&, const Trace& t, JobId a,
                      JobId b) { return t.jobs[a.value].priority > t.jobs[b.value].priority; }},
  };
  return kRanks;
}

/// Preemptive policies whose published algorithm is not by rank, and what it is by.
const std::map<std::string, std::string>& not_by_rank() {
  static const std::string kRounds = "shares of time by a program over rounds";
  static const std::map<std::string, std::string> kReasons{
      {"capacity", "takes back what other queues borrowed, within guarantees"},
      {"fair-share", "a victim has run a minimum and is ahead of its share by a margin"},
      {"pai", "runs jobs to the end; only guests on reserved devices are put out"},
      {"philly", "takes back quotas of virtual clusters"},
      {"agents", "leases go to bids"},
      {"andreas", "least cost by randomised search"},
      {"hived", "tenants own cells; only guests make way"},
      {"muri-l", "groups of interleaved jobs, chosen together"},
      {"muri-s", "groups of interleaved jobs, chosen together"},
      {"gandiva", "time slices for all"},
      {"gandiva-fair", "time slices by stride"},
      {"antman", "guaranteed jobs wait in order; opportunistic ones share"},
      {"synergy", "rounds"},
      {"oasis", "schedules by price, made at admission"},
      {"chronus", "promised leases"},
      {"elasticflow", "shares that meet deadlines"},
      {"pollux", "goodput of all jobs together"},
      {"sia", "goodput of all jobs together"},
      {"rubick", "speed promised to each job"},
      {"optimus", "marginal gains"},
      {"themis", "leases by auction"},
      {"ftf-fractional", kRounds},
      {"shockwave", kRounds},
      {"hpo", "fair shares of studies"},
      {"gavel-las", kRounds},
      {"gavel-ftf", kRounds},
      {"gavel-makespan", kRounds},
      {"gavel-cost", kRounds},
      {"gavel-slo", kRounds},
      {"gavel-hierarchical", kRounds},
      {"gavel-fifo", kRounds},
      {"gavel-sjf", kRounds},
      {"gavel-throughput", kRounds},
  };
  return kReasons;
}

TEST(ByRank, EveryPreemptivePolicyIsRankedHereOrSaysWhyNot) {
  for (const PolicyEntry& entry : policy_registry()) {
    if (!traits_of(entry).preempts) continue;
    EXPECT_EQ(ranks().contains(entry.name) + not_by_rank().contains(entry.name), 1) << entry.name;
  }
}

/// Looks at every job that waits after every instant.
class InversionWatch final : public Observer {
 public:
  InversionWatch(Outranks outranks, const std::string& placement)
      : outranks_(outranks), placement_(*make_placement(placement)) {}

  void append(Time, const Action& action) override {
    switch (action.kind) {
      case ActionKind::Start:
      case ActionKind::Resume:
      case ActionKind::Migrate:
        if (action.kind == ActionKind::Migrate) {
          EXPECT_TRUE(trace->jobs[action.job.value].preemptible) << "a firm job never moves";
        }
        held_[action.job].assign(action.slices.begin(), action.slices.end());
        break;
      case ActionKind::Preempt:
        if (action.reason != Reason::NodeLost) {
          EXPECT_TRUE(trace->jobs[action.job.value].preemptible) << "a firm job is never stopped";
        }
        held_.erase(action.job);
        stopped_.insert(action.job);
        break;
      default: break;
    }
  }
  void instant_done(Time now) override {
    std::erase_if(held_,
                  [&](const auto& entry) { return !engine->jobs().is_running(entry.first); });
    for (std::uint32_t i = 0; i < engine->jobs().size() && looks(now); ++i) {
      const bool has_turn = !one_turn || !stopped_.contains(JobId{i});
      if (has_turn && engine->jobs().is_waiting(JobId{i})) expect_no_way(now, JobId{i});
    }
    stopped_.clear();
  }
  /// Zero: the order holds at every instant. Otherwise it is looked at when jobs come and go and at
  /// multiples of this.
  Duration quantum{};
  /// Who is stopped has no second turn in the same pass; another one follows at once.
  bool one_turn = false;

 private:
  [[nodiscard]] bool looks(Time now) const {
    if (quantum <= Duration::zero() || now.time_since_epoch() % quantum == Duration::zero())
      return true;
    const JobTable& jobs = engine->jobs();
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const JobId job{i};
      const bool counts = jobs.state[job] != JobState::Rejected;
      if (counts && (jobs.submitted[job] == now || jobs.finished[job] == now)) return true;
    }
    return false;
  }
  void expect_no_way(Time now, JobId job) {
    ClusterState without = engine->cluster();
    std::string lower;
    for (const auto& [other, slices] : held_) {
      if (!trace->jobs[other.value].preemptible || !outranks_(*engine, *trace, job, other))
        continue;
      without.give(slices, engine->shapes()[engine->jobs().shape[other]], other);
      lower += fmt::format(" {}", other.value + 1);
    }
    Rng rng{1};
    std::vector<Slice> slices;
    const Shape& shape = engine->shapes()[engine->jobs().shape[job]];
    EXPECT_FALSE(placement_->place_in_any(without, shape, rng, slices).has_value())
        << "job " << job.value + 1 << " waits at " << to_seconds(now)
        << " s; lower ranks:" << lower;
  }
  Outranks outranks_;
  std::unique_ptr<Placement> placement_;
  std::map<JobId, std::vector<Slice>> held_;
  std::set<JobId> stopped_;  // in this instant
};

// Two nodes of two GPUs, gangs not spread. A and B share the first node, C and D the second; A and
// C end at 10 and 12. E needs two GPUs for 60 s at 20: two are free, on two nodes. D has run for
// less than B and moves beside it. Tiresias-l protects B and D until B falls to the second queue at
// 3201; then it is B who moves.
TEST(ByRank, AShortGangDoesNotWaitBehindLongJobsThatSitOnANodeEach) {
  for (const std::string policy : {"srtf", "srsf", "las", "las-2d", "edf", "tiresias-l"}) {
    Scenario scenario{.policy = policy, .cluster = "2x2", .placement = "consolidated", .jobs = {}};
    scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 10},
                     {.submit = 1, .gpus = 1, .duration = 100000},
                     {.submit = 2, .gpus = 1, .duration = 10},
                     {.submit = 3, .gpus = 1, .duration = 100000},
                     {.submit = 20, .gpus = 2, .duration = 60, .deadline = 100}};
    const Outcome outcome = run(scenario);
    const bool is_tiresias = policy == "tiresias-l";
    EXPECT_EQ(outcome.start[4], is_tiresias ? 3201 : 20) << policy;
    EXPECT_EQ(outcome.migrations,
              (is_tiresias ? std::vector<int>{0, 1, 0, 0, 0} : std::vector<int>{0, 0, 0, 1, 0}))
        << policy;
    EXPECT_EQ(outcome.total_preemptions, 0) << policy;
    scenario.jobs[3].preemptible = false;  // then it is B who moves
    EXPECT_EQ(run(scenario).migrations, (std::vector<int>{0, 1, 0, 0, 0})) << policy;
    scenario.jobs[1].preemptible = false;
    EXPECT_EQ(run(scenario).start[4], 100001) << policy;
  }
}

// Nodes of 8 cores; B and D take 6 each, and E needs 6 as well: there is a free GPU on each node,
// and nowhere a core for it. D, who lost less, waits until E is done.
TEST(ByRank, AShortJobDoesNotWaitForCoresOfLongOnes) {
  for (const std::string policy : {"srtf", "srsf", "las", "las-2d", "edf"}) {
    Scenario scenario{
        .policy = policy, .cluster = "2x2", .placement = "best-fit", .jobs = {}, .node_cpus = 8};
    scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 100000, .cpus = 6},
                     {.submit = 1, .gpus = 1, .duration = 100000, .cpus = 6},
                     {.submit = 20, .gpus = 1, .duration = 60, .cpus = 6, .deadline = 100}};
    const Outcome outcome = run(scenario);
    EXPECT_EQ(outcome.start[2], 20) << policy;
    EXPECT_EQ(outcome.preemptions[1], policy.starts_with("las") ? outcome.preemptions[1] : 1)
        << policy;
  }
}

// Two jobs of one shape, of which one fits at a time: who finds no place does not keep the one
// before it from its own. Both waited for ever.
TEST(ByRank, WhoFindsNoPlaceBlocksNobodyBeforeIt) {
  for (const std::string policy : {"srtf", "edf", "tiresias-l"}) {
    Scenario scenario{
        .policy = policy, .cluster = "1x4", .placement = "best-fit", .jobs = {}, .node_cpus = 8};
    scenario.jobs = {{.submit = 0, .gpus = 4, .duration = 5},
                     {.submit = 1, .gpus = 2, .duration = 10, .cpus = 5},
                     {.submit = 2, .gpus = 2, .duration = 10, .cpus = 5}};
    EXPECT_EQ(run(scenario).finish, (std::vector<double>{5, 15, 25})) << policy;
  }
}

/// Nodes, cores, types and jobs that fit together badly.
Scenario fragmented_scenario(const std::string& policy, std::uint64_t seed) {
  Scenario scenario = random_scenario(seed, {.max_jobs = seed % 8 == 0 ? 50 : 16,
                                             .max_gpus = 6,
                                             .many_nodes = true,
                                             .two_types = seed % 4 == 3});
  scenario.policy = policy;
  const std::vector<std::string> known{"consolidated", "best-fit", "skew",    "first-fit",
                                       "consolidated", "spread",   "topology"};
  scenario.placement = known[seed % known.size()];
  Rng rng = Rng{seed}.fork("cores");
  if (seed % 3 != 0) {
    scenario.node_cpus = 8;
    for (JobSpec& job : scenario.jobs) job.cpus = static_cast<int>(rng.below(7)) * job.gpus / 2;
  }
  for (JobSpec& job : scenario.jobs) {
    if (policy == "edf" && rng.below(3) > 0)
      job.deadline = job.submit + static_cast<double>(rng.below(60));
    job.preemptible = rng.below(6) > 0;
  }
  scenario.settings = (*find_policy(policy))->test_settings;
  if (policy == "priority") {  // it knows nobody who may not be preempted
    scenario.settings = {{"preempt_classes", "all"}};
    for (JobSpec& job : scenario.jobs) job.preemptible = true;
  }
  if (seed % 5 == 4) {
    scenario.sim.outages = {{NodeId{0}, seconds_to_time(6), seconds_to_time(15)},
                            {NodeId{0}, seconds_to_time(30), seconds_to_time(31)}};
  }
  return scenario;
}

class ByRank : public ::testing::TestWithParam<std::string> {};

TEST_P(ByRank, NobodyWaitsBehindLowerRanksThatCouldMakeRoom) {
  for (std::uint64_t seed = 1; seed <= 700; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Scenario scenario = fragmented_scenario(GetParam(), seed);
    InversionWatch watch{ranks().at(GetParam()), scenario.placement};
    if (GetParam().starts_with("las")) watch.quantum = std::chrono::seconds{5};
    watch.one_turn = GetParam() == "priority";
    const Outcome outcome = run(scenario, &watch);
    for (const JobState state : outcome.state)
      ASSERT_TRUE(state == JobState::Completed || state == JobState::Rejected);
    ASSERT_FALSE(HasFailure()) << scenario.cluster << " " << scenario.placement;
  }
}

std::vector<std::string> ranked_policies() {
  std::vector<std::string> names;
  for (const auto& [name, rank] : ranks()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ByRank, ::testing::ValuesIn(ranked_policies()), kByName);

}  // namespace
}  // namespace berth::test
