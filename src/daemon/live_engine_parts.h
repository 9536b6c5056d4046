// What a live engine is made of: policy, placement, estimates, tuner, power manager and what is
// believed of speeds, all by the options of the scheduler. Making them decides nothing and starts
// nothing.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "core/node_tuner.h"
#include "core/placement.h"
#include "core/policy.h"
#include "core/power_manager.h"
#include "daemon/learnt.h"
#include "daemon/scheduler_options.h"
#include "daemon/training_gateway.h"
#include "model/cluster.h"
#include "perf/rate_model.h"

namespace berth {

/// Its address must not change: the tuner refers to `speeds`.
struct LiveEngineParts {
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Placement> placement;
  LearntLengths estimator;
  SpeedsBySlot speeds;
  std::unique_ptr<NodeTuner> tuner{};     // may be absent
  std::unique_ptr<PowerManager> power{};  // may be absent: nobody, or the policy itself
  std::optional<RateModel> believed{};

  [[nodiscard]] bool manages_power() const {
    return policy->traits().manages_power || power != nullptr;
  }
};

/// Use counts half after as long as the options say, unless the choice says otherwise.
[[nodiscard]] Result<std::unique_ptr<Policy>> make_policy_of(PolicyChoice choice,
                                                             const SchedulerOptions& options);

struct LiveEngineSetup {
  const SchedulerOptions& options;
  const PolicyChoice& choice;
  const Cluster& cluster;
  TrainingHub* hub = nullptr;  // what is measured there, for the tuner
  bool switches_nodes = false;
};
[[nodiscard]] Result<std::unique_ptr<LiveEngineParts>> make_live_engine_parts(
    const LiveEngineSetup& setup, std::unique_ptr<Policy> policy);

}  // namespace berth
