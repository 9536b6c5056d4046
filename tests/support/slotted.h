// Scenarios of policies that plan in slots: slots of a second, up to four GPUs, perfect scaling,
// and messages that take no time, so that slots can be counted by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/run.h"
#include "support/scaling_models.h"

namespace berth::test {

[[nodiscard]] inline Scenario slotted(const std::string& policy, const std::string& cluster,
                                      std::vector<JobSpec> jobs, const Settings& more = {}) {
  Scenario scenario;
  scenario.policy = policy;
  scenario.settings = {{"slot", "1"}, {"max_gpus", "4"}};
  scenario.settings.insert(scenario.settings.end(), more.begin(), more.end());
  scenario.cluster = cluster;
  scenario.placement = "best-fit";
  scenario.profiles = perfect();
  scenario.edit_cluster = [](Cluster& built) {
    built.links.nvlink_latency = built.links.pcie_latency = built.links.socket_latency = 0;
  };
  scenario.jobs = std::move(jobs);
  return scenario;
}

}  // namespace berth::test
