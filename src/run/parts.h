// The five things that decide in a run, by the names people write: policy, placement, estimator,
// who shares out cores and who switches nodes. The only place where these names are parsed;
// simulated runs and `berth serve` put the same parts together. All that is wrong is said at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "core/node_tuner.h"
#include "core/placement.h"
#include "core/policy.h"
#include "core/power_manager.h"
#include "perf/estimator.h"
#include "policies/registry.h"

namespace berth {

struct SchedulerNames {
  std::string policy;
  Settings settings = {};
  std::string placement = {};  // a name, skew:LIMIT or topology:interference
  std::string estimator = {};  // empty: the policy's own
  std::string cpu = "off";
  std::string power = "off";
  std::uint64_t seed = 1;                           // of what the estimator draws
  std::shared_ptr<const ProfileSet> profiles = {};  // for placements by topology
};

struct SchedulerParts {
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Placement> placement;
  std::unique_ptr<Estimator> estimator;
  std::unique_ptr<NodeTuner> tuner;     // absent: nobody shares out cores
  std::unique_ptr<PowerManager> power;  // absent: nobody beside the policy switches nodes
};

/// The estimator of a run: the one it names, else the policy's own.
[[nodiscard]] std::string estimator_name(const SchedulerNames& names);
/// Refuses unknown names, keys and values, and a power manager beside a policy or a placement that
/// leaves it nothing to switch.
[[nodiscard]] Result<SchedulerParts> make_parts(const SchedulerNames& names);

}  // namespace berth
