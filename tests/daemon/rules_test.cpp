// What holds whatever the policy: a job with --no-preempt is never stopped or suspended, and no
// attempt is stopped before it has run `min_run`. Under every policy of the registry, which are not
// told of it and give the devices to others; with restarts and a change of policy in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/drawn_load.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

struct CrowdedLife : DrawnLoad {
  double dies_at = 0, changes_at = 0;
  std::string next_policy = {};
};

/// More jobs than devices, so that preemptive policies have a reason; every third is firm.
CrowdedLife crowded_life(const std::string& policy, std::uint64_t seed) {
  Rng rng = Rng{seed}.fork("rules");
  CrowdedLife drawn{empty_load(policy, seed)};
  drawn.options.deadline = 100'000;
  drawn.options.scheduling.min_run = seed % 2 == 0 ? 7 : 20;
  drawn.options.host.device_limit = 8;  // another policy may share
  drawn.options.oversleeping = {.most_micros = 500'000};
  drawn.options.hears_nonsense = seed % 3 == 0;
  for (int i = 0; i < 14; ++i) {
    LiveSpec spec = drawn_job(rng, i, 2 + 50 * rng.uniform() * rng.uniform(), DrawnName::None);
    spec.preemptible = rng.below(3) > 0;
    if (rng.below(3) == 0) spec.warn_seconds = 1;  // can save: makes way as often as one wants
    draw_range(rng, spec);
    drawn.jobs.emplace_back(40 * rng.uniform(), std::move(spec));
  }
  drawn.dies_at = 90 * rng.uniform();
  drawn.changes_at = 120 * rng.uniform();
  const auto all = all_policies();
  drawn.next_policy = all[rng.below(all.size())];
  return drawn;
}

/// Reads what was done to jobs, in its order; answers what broke a rule.
class Judge {
 public:
  Judge(const std::map<JobNumber, LiveSpec>& jobs, double min_run)
      : jobs_(jobs), min_run_(min_run) {}

  [[nodiscard]] std::vector<std::string> judge(const std::vector<std::string>& acts) {
    for (const std::string& act : acts) handle(act);
    return broken_;
  }

 private:
  void handle(const std::string& act) {
    std::istringstream words(act);
    std::string job_word, what;
    double at = 0;
    JobNumber job = 0;
    words >> at >> job_word >> job >> what;
    const bool is_firm = !jobs_.at(job).preemptible;
    if (what == "starts") {
      began_[job] = at;
      asleep_.erase(job);
      if (is_firm && !firm_.insert(job).second) broken_.push_back("begins again: " + act);
    }
    if (what == "suspend") asleep_.insert(job);
    if (what == "resume") asleep_.erase(job);
    if (what != "suspend" && what != "preempt") return;
    if (is_firm) broken_.push_back("is firm: " + act);
    if (what != "preempt") return;
    if (!asleep_.contains(job) && at - began_.at(job) < min_run_)
      broken_.push_back(fmt::format("ran only {:.6f} s: {}", at - began_.at(job), act));
  }

  const std::map<JobNumber, LiveSpec>& jobs_;
  double min_run_;
  std::map<JobNumber, double> began_;
  std::set<JobNumber> asleep_, firm_;
  std::vector<std::string> broken_;
};

class Rules : public ::testing::TestWithParam<std::string> {};

TEST_P(Rules, HoldWhateverThePolicy) {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    const CrowdedLife drawn = crowded_life(GetParam(), seed);
    LiveWorld world{drawn.options};
    std::map<JobNumber, LiveSpec> jobs;
    for (const auto& [at, spec] : drawn.jobs)
      world.at(at, [&world, &jobs, spec = spec](LiveService& service) {
        jobs[world.submit(service, spec)] = spec;
      });
    world.crash_at_time(drawn.dies_at, CrashKind::Kill);
    if (seed % 4 == 3)
      world.at(drawn.changes_at, [&](LiveService& service) {
        ASSERT_TRUE(service.set_policy(kRoot, drawn.next_policy, {}));
      });
    world.run();
    ASSERT_EQ(world.violations(), std::vector<std::string>{}) << "seed " << seed;
    Judge judge{jobs, static_cast<double>(drawn.options.scheduling.min_run)};
    ASSERT_EQ(judge.judge(world.acts()), std::vector<std::string>{}) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Rules, ::testing::ValuesIn(all_policies()), kByName);

}  // namespace
}  // namespace berth::test
