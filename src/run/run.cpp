// make_run() checks and resolves everything by name; what is left for run() cannot fail because of
// a wrong argument.

#include "run/run.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/check.h"

namespace berth {

namespace {

SchedulerNames names_of(const RunSpec& spec) {
  return {.policy = spec.policy,
          .settings = spec.settings,
          .placement = spec.placement,
          .estimator = spec.estimator,
          .cpu = spec.cpu,
          .power = spec.power,
          .seed = spec.seed,
          .profiles = spec.profiles};
}

void add(Error& error, const Error& more) {
  error.messages.insert(error.messages.end(), more.messages.begin(), more.messages.end());
}

/// Effects other than sharing; policies that share devices bring that one in themselves.
bool needs_rates(const Effects& effects) {
  return effects.locality || effects.server || effects.cpu || effects.device;
}

/// A placement that only counts devices cannot serve policies and tuners that need to know which
/// ones.
void check_counting(const RunSpec& spec, const PolicyTraits& traits, Error& error) {
  if (spec.placement != "count") return;
  if (traits.needs_devices()) {
    const char* why = traits.shares_devices ? "puts several jobs on one device"
                      : traits.resizes      ? "gives jobs more or fewer devices than they ask for"
                                            : "switches nodes on and off";
    error.messages.push_back(fmt::format(
        "--policy {} {}, and --placement count knows no devices (choose another placement)",
        spec.policy, why));
  }
  if (spec.cpu != "off") {
    error.messages.emplace_back(
        "--cpu shares out the cores of servers, and --placement count knows none (choose another "
        "placement)");
  }
}

}  // namespace

Result<Run> make_run(const Trace& trace, const Cluster& cluster, RunSpec spec) {
  Error error;
  auto parts = make_parts(names_of(spec));
  if (parts)
    check_counting(spec, parts->policy->traits(), error);
  else
    add(error, parts.error());
  const auto outages =
      draw_outages(cluster, spec.random_outages, outage_horizon(trace, cluster), spec.seed);
  if (!outages) add(error, outages.error());
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));

  if (spec.past) parts->estimator = with_past(std::move(parts->estimator), spec.past);
  // The one seed of a run also drives what is random in the simulated world.
  spec.sim.boot_seed = spec.seed;
  spec.sim.outages.insert(spec.sim.outages.end(), outages->begin(), outages->end());
  return Run{trace, cluster, std::move(spec), std::move(*parts)};
}

/// Nodes fail at random. The failure rate of a node is divided evenly among its devices.
std::optional<CheckpointRule> Run::checkpoints() const {
  if (!spec_.checkpoint_cost || cluster_->nodes.empty()) return std::nullopt;
  const double gpus_per_node =
      static_cast<double>(cluster_->total_gpus()) / static_cast<double>(cluster_->nodes.size());
  const double seconds = to_seconds(spec_.random_outages.mtbf) * gpus_per_node;
  return CheckpointRule{*spec_.checkpoint_cost,
                        seconds_to_duration(std::min(seconds, kMaxInputSeconds))};
}

/// If this is false, every job runs at the rate of its trace and the executor need not watch any.
bool Run::profiles_matter(const Effects& effects) const {
  const PolicyTraits traits = parts_.policy->traits();
  return needs_rates(effects) || traits.shares_devices || traits.resizes || parts_.tuner ||
         includes(traits.needs, Need::Profile) || includes(traits.needs, Need::Reports);
}

Result<RunData> Run::run(const ProgressFn& progress) {
  BERTH_CHECK(!has_run_, "a run is run once: its policy and estimator remember what they saw");
  has_run_ = true;
  const auto began = std::chrono::steady_clock::now();
  const ProfileSet& profiles = spec_.profiles ? *spec_.profiles : built_in_profiles();
  Effects effects = spec_.effects;
  effects.cpu = effects.cpu || spec_.cpu != "off";  // sharing cores out is about their effect
  // Two models: the executor moves jobs by the truth, the policy sees the other one, which errs if
  // the user asks for it.
  const RateModel truth{profiles, *cluster_, effects};
  const RateModel believed{profiles.with_error(spec_.profile_error, spec_.seed), *cluster_,
                           effects};
  const bool rates_matter = profiles_matter(effects);
  SimOptions sim = spec_.sim;
  // Left out, every job runs at the rate of its trace and the executor has nothing to watch.
  if (rates_matter) sim.truth = &truth;

  SimExecutor executor{*trace_, *cluster_, sim};
  const bool everything = spec_.recording == Recording::Everything;
  std::optional<Recorder> recorder;
  if (spec_.recording != Recording::None) {
    recorder.emplace(
        *trace_, *cluster_,
        RecordOptions{.actions = everything, .intervals = everything, .timeline = everything});
  }
  Engine engine{{.trace = *trace_,
                 .cluster = *cluster_,
                 .policy = *parts_.policy,
                 .placement = *parts_.placement,
                 .estimator = *parts_.estimator,
                 .executor = executor,
                 .believed = believed,
                 .observer = recorder ? &*recorder : nullptr,
                 .tuner = parts_.tuner.get(),
                 .power = parts_.power.get(),
                 .seed = spec_.seed,
                 .checkpoint_interval = spec_.checkpoint_interval,
                 .checkpoints = checkpoints(),
                 .cores_beside = !parts_.placement->places_fractions()}};
  if (recorder) recorder->watch(engine);
  if (progress) engine.set_progress(progress);
  BERTH_TRY_VOID(engine.run());

  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  return analyse(engine, *trace_, *cluster_, recorder ? &*recorder : nullptr,
                 {.policy = spec_.policy,
                  .label = spec_.label,
                  .placement = spec_.placement,
                  .estimator = estimator_name(names_of(spec_)),
                  .seed = spec_.seed,
                  .wall_seconds = wall.count(),
                  .profiles_matter = rates_matter,
                  .forecast_error = parts_.power ? parts_.power->forecast_error() : std::nullopt});
}

}  // namespace berth
