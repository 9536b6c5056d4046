// The random workloads of the property suites for each policy of the registry: under every
// placement and estimator, with periods, leases and thresholds as short as the jobs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
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

[[nodiscard]] inline const PolicyEntry& entry_of(const std::string& policy) {
  return **find_policy(policy);
}

[[nodiscard]] inline bool has_param(const std::string& policy, std::string_view key) {
  return std::ranges::any_of(entry_of(policy).params, [&](const auto& p) { return p.key == key; });
}

inline void set(Settings& settings, const std::string& key, const std::string& value) {
  std::erase_if(settings, [&](const auto& setting) { return setting.first == key; });
  settings.emplace_back(key, value);
}

/// What some workloads try beside a policy's test settings, so that its other ways are walked too.
struct Variation {
  std::string_view policies;              // names that begin so
  std::uint64_t of = 1;                   // seeds that leave one of these
  std::vector<std::uint64_t> remainders;  // after division by `of`
  Settings settings;
};

[[nodiscard]] inline const std::vector<Variation>& variations() {
  static const std::vector<Variation> all{
      {"tiresias", 2, {0}, {{"promote_knob", "2"}}},
      // Its own times: leases that outlast every job, one arbiter.
      {"agents",
       3,
       {0},
       {{"pod_devices", "2000"}, {"lease", "20m"}, {"interval", "60"}, {"exchange", "10"}}},
      {"chronus", 3, {0}, {{"be_in_milp", "on"}}},
      {"optimus", 3, {0}, {{"speed", "fit"}}},
      {"optimus", 4, {1}, {{"work", "estimate"}}},
      {"optimus", 5, {0}, {{"start", "interval"}}},
      {"optimus", 7, {0, 1, 2}, {{"place", "even"}}},
      {"optimus", 2, {0}, {{"look_ahead", "2"}}},
      {"themis", 5, {2}, {{"lease", "1"}}},
      {"themis", 3, {0}, {{"elastic", "all"}}},
      {"themis", 7, {0}, {{"slowdown", "class"}}},
      {"oasis", 2, {1}, {{"elastic", "declared"}}},
      {"aonline", 2, {1}, {{"elastic", "declared"}}},
  };
  return all;
}

[[nodiscard]] inline Settings settings_for(const std::string& policy, std::uint64_t seed) {
  Settings settings = entry_of(policy).test_settings;
  for (const Variation& each : variations()) {
    if (!policy.starts_with(each.policies)) continue;
    if (std::ranges::find(each.remainders, seed % each.of) == each.remainders.end()) continue;
    for (const auto& [key, value] : each.settings) set(settings, key, value);
  }
  return settings;
}

/// A workload of the suite with settings of the policy that its small times exercise.
[[nodiscard]] inline Scenario scenario_for(const std::string& policy, std::uint64_t seed) {
  Scenario scenario = suite_scenario(seed);
  scenario.policy = policy;
  const auto known = placements();
  scenario.placement = known[seed % known.size()].name;
  if (needs_devices(policy) && scenario.placement == "count") scenario.placement = "best-fit";
  scenario.estimator = seed % 3 == 0 ? "oracle:1" : seed % 3 == 1 ? "oracle" : "history";
  scenario.settings = settings_for(policy, seed);
  if (has_param(policy, "unmet")) {  // it makes promises, and deadlines are what it promises
    for (std::size_t i = 0; i < scenario.jobs.size(); i += 2)
      scenario.jobs[i].deadline = scenario.jobs[i].submit + 6 + 2.5 * scenario.jobs[i].duration;
  }
  return scenario;
}

}  // namespace berth::test
