#include "run/run.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "cpu/cpu_tuner.h"
#include "placements/placements.h"
#include "power/power_managers.h"

namespace berth {

namespace {

/// Tiresias calls the limit of skew pack_limit, so it may also come with the policy's settings.
Result<std::unique_ptr<Placement>> placement_from(const RunSpec& spec) {
  PlacementOptions options;
  options.profiles = spec.profiles;
  for (const auto& [key, value] : spec.settings) {
    if (key != "pack_limit") continue;
    std::from_chars(value.data(), value.data() + value.size(), options.pack_limit);
  }
  return make_placement(spec.placement, options);
}

/// What the run says, or whom the policy asks by itself.
std::string estimator_of(const RunSpec& spec) {
  if (!spec.estimator.empty()) return spec.estimator;
  const auto entry = find_policy(spec.policy);
  return entry ? (*entry)->estimator : "oracle";
}

void add(Error& error, const Error& more) {
  error.messages.insert(error.messages.end(), more.messages.begin(), more.messages.end());
}

Result<std::unique_ptr<NodeTuner>> tuner_from(const RunSpec& spec, const Policy& policy) {
  if (spec.cpu == "off") return nullptr;
  return make_cpu_tuner(spec.cpu, policy);
}

/// Nodes fail at random; a device does as often as its node, shared among the devices there.
std::optional<CheckpointRule> checkpoints_of(const RunSpec& spec, const Cluster& cluster) {
  if (!spec.checkpoint_cost || cluster.nodes.empty()) return std::nullopt;
  const double gpus_per_node =
      static_cast<double>(cluster.total_gpus()) / static_cast<double>(cluster.nodes.size());
  const double seconds = to_seconds(spec.random_outages.mtbf) * gpus_per_node;
  return CheckpointRule{*spec.checkpoint_cost,
                        seconds_to_duration(std::min(seconds, kMaxInputSeconds))};
}

/// Beyond sharing, which policies that share bring in themselves.
bool needs_rates(const Effects& effects) {
  return effects.locality || effects.server || effects.cpu || effects.device;
}

/// What one choice forbids of another.
void check_against(const Policy& policy, const RunSpec& spec, Error& error) {
  if (const auto tuner = tuner_from(spec, policy); !tuner) add(error, tuner.error());
  if (const auto power = make_power_manager(spec.power); !power) add(error, power.error());
  if (spec.power != "off" && policy.traits().manages_power) {
    add(error, Error{fmt::format("--policy {} switches nodes on and off itself (leave --power out)",
                                 spec.policy)});
  }
  if (spec.placement != "count") return;
  if (policy.traits().needs_devices()) {
    const char* why = policy.traits().shares_devices ? "puts several jobs on one device"
                      : policy.traits().resizes
                          ? "gives jobs more or fewer devices than they ask for"
                          : "switches nodes on and off";
    add(error, Error{fmt::format("--policy {} {}, and --placement count knows no devices (choose "
                                 "another placement)",
                                 spec.policy, why)});
  }
  if (spec.power != "off") {
    add(error, Error{"--power switches nodes on and off, and --placement count knows none (choose "
                     "another placement)"});
  }
  if (spec.cpu != "off") {
    add(error, Error{"--cpu shares out the cores of servers, and --placement count knows none "
                     "(choose another placement)"});
  }
}

}  // namespace

Result<void> check_spec(const Trace& trace, const Cluster& cluster, const RunSpec& spec) {
  Error error;
  if (const auto policy = make_policy(spec.policy, spec.settings); !policy) {
    add(error, policy.error());
  } else {
    check_against(**policy, spec, error);
  }
  if (const auto placement = placement_from(spec); !placement) add(error, placement.error());
  if (const auto estimator = make_estimator(estimator_of(spec), spec.seed); !estimator)
    add(error, estimator.error());
  const auto outages =
      draw_outages(cluster, spec.random_outages, outage_horizon(trace, cluster), spec.seed);
  if (!outages) add(error, outages.error());
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return {};
}

bool learns_run_times(const RunSpec& spec) {
  const auto policy = make_policy(spec.policy, spec.settings);
  const auto estimator = make_estimator(estimator_of(spec), spec.seed);
  return policy && estimator && includes((*policy)->traits().needs, Need::RunTime) &&
         (*estimator)->learns();
}

Result<RunData> run_one(const Trace& trace, const Cluster& cluster, const RunSpec& spec,
                        const ProgressFn& progress) {
  const auto began = std::chrono::steady_clock::now();
  BERTH_TRY(const auto policy, make_policy(spec.policy, spec.settings));
  BERTH_TRY(const auto placement, placement_from(spec));
  BERTH_TRY(auto estimator, make_estimator(estimator_of(spec), spec.seed));
  if (spec.past) estimator = with_past(std::move(estimator), spec.past);
  SimOptions sim = spec.sim;
  sim.boot_seed = spec.seed;
  BERTH_TRY(const auto random,
            draw_outages(cluster, spec.random_outages, outage_horizon(trace, cluster), spec.seed));
  sim.outages.insert(sim.outages.end(), random.begin(), random.end());

  const ProfileSet& profiles = spec.profiles ? *spec.profiles : built_in_profiles();
  Effects effects = spec.effects;
  effects.cpu = effects.cpu || spec.cpu != "off";  // sharing cores out is about their effect
  const RateModel truth{profiles, cluster, effects};
  const RateModel believed{profiles.with_error(spec.profile_error, spec.seed), cluster, effects};
  BERTH_TRY(const auto tuner, tuner_from(spec, *policy));
  BERTH_TRY(const auto power, make_power_manager(spec.power));
  const bool profiles_matter = needs_rates(effects) || policy->traits().shares_devices ||
                               policy->traits().resizes || tuner != nullptr ||
                               includes(policy->traits().needs, Need::Profile) ||
                               includes(policy->traits().needs, Need::Reports);
  if (profiles_matter) sim.truth = &truth;

  SimExecutor executor{trace, cluster, sim};
  const bool everything = spec.recording == Recording::Everything;
  std::optional<Recorder> recorder;
  if (spec.recording != Recording::None) {
    recorder.emplace(
        trace, cluster,
        RecordOptions{.actions = everything, .intervals = everything, .timeline = everything});
  }
  Engine engine{{.trace = trace,
                 .cluster = cluster,
                 .policy = *policy,
                 .placement = *placement,
                 .estimator = *estimator,
                 .executor = executor,
                 .believed = believed,
                 .observer = recorder ? &*recorder : nullptr,
                 .tuner = tuner.get(),
                 .power = power.get(),
                 .seed = spec.seed,
                 .checkpoint_interval = spec.checkpoint_interval,
                 .checkpoints = checkpoints_of(spec, cluster)}};
  if (recorder) recorder->watch(engine);
  if (progress) engine.set_progress(progress);
  BERTH_TRY_VOID(engine.run());

  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  return analyse(engine, trace, cluster, recorder ? &*recorder : nullptr,
                 {.policy = spec.policy,
                  .label = spec.label,
                  .placement = spec.placement,
                  .estimator = estimator_of(spec),
                  .seed = spec.seed,
                  .wall_seconds = wall.count(),
                  .profiles_matter = profiles_matter,
                  .forecast_error = power ? power->forecast_error() : std::nullopt});
}

}  // namespace berth
