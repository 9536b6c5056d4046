// The random workloads of the property suites for each policy of the registry: under every
// placement and estimator, with periods, leases and thresholds as short as the jobs.
#pragma once

#include <string>
#include <vector>

#include "support/policy_suite.h"

namespace berth::test {

[[nodiscard]] inline std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
  return names;
}

[[nodiscard]] inline bool needs_devices(const std::string& policy) {
  return (*make_policy(policy))->traits().needs_devices();
}

/// A workload of the suite with settings of the policy that its small times exercise.
[[nodiscard]] inline Scenario scenario_for(const std::string& policy, std::uint64_t seed) {
  Scenario scenario = suite_scenario(seed);
  scenario.policy = policy;
  const auto known = placements();
  scenario.placement = known[seed % known.size()].name;
  if (needs_devices(policy) && scenario.placement == "count") scenario.placement = "best-fit";
  scenario.estimator = seed % 3 == 0 ? "oracle:1" : seed % 3 == 1 ? "oracle" : "history";
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
  if (policy == "fair-share") {
    scenario.settings = {
        {"preempt", "both"}, {"min_run", "5"}, {"advance", "3"}, {"half_life", "30"}};
  }
  if (policy.starts_with("gavel")) scenario.settings = {{"round", "4"}};
  if (policy == "gandiva-fair") scenario.settings = {{"quantum", "3"}};
  if (policy == "chronus") {
    scenario.settings = {{"lease", "6"}, {"restart", "2"}, {"be_starve", "5"}};
  }
  if (policy == "elasticflow") scenario.settings = {{"slot", "4"}};
  if (policy == "chronus" && seed % 3 == 0) scenario.settings.push_back({"be_in_milp", "on"});
  if (policy == "chronus" || policy == "elasticflow") {
    scenario.settings.push_back({"unmet", "best-effort"});
    for (std::size_t i = 0; i < scenario.jobs.size(); i += 2)
      scenario.jobs[i].deadline = scenario.jobs[i].submit + 6 + 2.5 * scenario.jobs[i].duration;
  }
  if (policy == "pollux" || policy == "sia")
    scenario.settings = {{"interval", "2"}, {"restart", "1"}, {"max_gpus", "4"}};
  if (policy == "pollux")
    scenario.settings.insert(scenario.settings.end(), {{"population", "8"}, {"generations", "5"}});
  if (policy == "optimus") {
    scenario.settings = {{"interval", "5"},
                         {"overhead", "1"},
                         {"speed", seed % 3 == 0 ? "fit" : "profile"},
                         {"work", seed % 4 == 1 ? "estimate" : "losses"},
                         {"start", seed % 5 == 0 ? "interval" : "now"},
                         {"place", seed % 7 < 3 ? "even" : "run"},
                         {"look_ahead", seed % 2 == 0 ? "2" : "1"}};
  }
  if (policy == "themis") {
    scenario.settings = {{"lease", seed % 5 == 2 ? "1" : "8"}, {"align", "1"}};
    if (seed % 3 == 0) scenario.settings.push_back({"elastic", "all"});
    if (seed % 7 == 0) scenario.settings.push_back({"slowdown", "class"});
  }
  if (policy == "ftf-fractional") scenario.settings = {{"round", "5"}};
  if (policy == "shockwave") scenario.settings = {{"round", "5"}, {"window", "4"}};
  if (policy == "antman") scenario.settings = {{"op", "q1"}, {"op_upgrade", "20"}};
  if (policy == "oasis" || policy == "aonline")
    scenario.settings = {{"slot", "2"}, {"elastic", seed % 2 == 0 ? "all" : "declared"}};
  // Who refuses jobs for their price ends them all the same if told to; see Refusing below.
  if (policy == "oasis") scenario.settings.push_back({"reject_to_besteffort", "on"});
  return scenario;
}

}  // namespace berth::test
