#include "daemon/live_engine_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cpu/cpu_tuner.h"
#include "daemon/beliefs.h"
#include "placements/placements.h"
#include "power/power_managers.h"

namespace berth {

Result<std::unique_ptr<Policy>> make_policy_of(PolicyChoice choice,
                                               const SchedulerOptions& options) {
  constexpr const char* kHalfLife = "half_life";
  const auto is_half_life = [](const auto& named) { return named == kHalfLife; };
  BERTH_TRY(const PolicyEntry* entry, find_policy(choice.policy));
  const bool has_one = std::ranges::any_of(entry->params, is_half_life, &ParamSpec::key);
  const bool was_told =
      std::ranges::any_of(choice.settings, is_half_life, &Settings::value_type::first);
  if (has_one && !was_told)
    choice.settings.emplace_back(kHalfLife, fmt::format("{}", options.half_life));
  return make_live_policy(choice.policy, choice.settings);
}

Result<std::unique_ptr<LiveEngineParts>> make_live_engine_parts(const LiveEngineSetup& setup,
                                                                std::unique_ptr<Policy> policy) {
  const SchedulerOptions& options = setup.options;
  BERTH_TRY(auto placement, make_placement(options.placement));
  const std::string estimator_name = live_estimator(options.estimator, setup.choice);
  BERTH_TRY(auto guesses, make_estimator(estimator_name, options.seed));
  // Those of the literature believe what they were described to.
  const OwnWord word = estimator_name == "history" ? OwnWord::First : OwnWord::Last;
  auto parts = std::make_unique<LiveEngineParts>(
      LiveEngineParts{.policy = std::move(policy),
                      .placement = std::move(placement),
                      .estimator = LearntLengths{std::move(guesses), word},
                      .speeds = SpeedsBySlot{setup.hub}});
  const PolicyTraits traits = parts->policy->traits();
  if (options.cpu != "off") {
    BERTH_TRY(parts->tuner, make_cpu_tuner(options.cpu, *parts->policy, &parts->speeds));
  }
  // A policy that switches nodes itself may have been set after the configuration was read.
  if (setup.switches_nodes && !traits.manages_power) {
    BERTH_TRY(parts->power, make_power_manager(options.power));
  }
  // Where somebody shares out cores they count; else all would seem alike.
  const bool cores_count = parts->tuner != nullptr || traits.sets_cores;
  BERTH_TRY(parts->believed,
            believed_of(options.beliefs, setup.cluster, cores_count, options.seed));
  return parts;
}

}  // namespace berth
