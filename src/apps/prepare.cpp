#include "apps/prepare.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/complaints.h"
#include "apps/policy_settings.h"
#include "base/file.h"
#include "perf/profile_file.h"
#include "report/run_output.h"

namespace berth {

namespace {

/// As much of the spec as makes sense, so that the rest is checked too.
RunSpec world_of(const WorldOptions& world, Complaints& complaints) {
  RunSpec spec;
  const auto time = [&](std::string_view option, const std::string& text) {
    return complaints.value_or(time_option(option, text), Duration{});
  };
  spec.placement = world.placement;
  spec.estimator = world.estimator;
  spec.seed = world.seed;
  spec.sim.costs.start = time("--start-cost", world.start_cost);
  spec.sim.costs.preempt = time("--preempt-cost", world.preempt_cost);
  spec.sim.costs.resume = time("--restart-cost", world.restart_cost);
  spec.sim.costs.migrate = world.migrate_cost.empty() ? spec.sim.costs.resume
                                                      : time("--migrate-cost", world.migrate_cost);
  spec.sim.spread = world.spread_slowdown ? SpreadCost::ByModel : SpreadCost::Ignored;
  spec.effects = complaints.value_or(parse_effects(world.effects), Effects{});
  spec.profile_error = world.profile_error;
  spec.cpu = world.cpu;
  spec.power = world.power;
  spec.sim.boot = time("--boot-time", world.boot_time);
  spec.sim.boot_failures = world.boot_failures;
  if (!world.profiles.empty()) {
    spec.profiles = std::make_shared<const ProfileSet>(
        complaints.value_or(load_profiles(world.profiles), ProfileSet{}));
  }
  if (constexpr std::string_view kAuto = "auto:"; world.checkpoint_interval.starts_with(kAuto)) {
    spec.checkpoint_cost =
        time("--checkpoint-interval", world.checkpoint_interval.substr(kAuto.size()));
    if (world.mtbf.empty())
      complaints.add(
          Error{"--checkpoint-interval auto: goes by how often nodes fail (give --mtbf)"});
  } else {
    spec.checkpoint_interval = time("--checkpoint-interval", world.checkpoint_interval);
  }
  if (!world.mtbf.empty()) {
    spec.random_outages = {.mtbf = time("--mtbf", world.mtbf),
                           .repair = time("--repair", world.repair)};
    if (spec.random_outages.mtbf == Duration::zero())
      complaints.add(Error{"--mtbf: must be more than zero"});
    if (!world.failures.empty())
      complaints.add(Error{"--failures and --mtbf exclude each other (give one)"});
  }
  return spec;
}

/// The first complaint of a newcomer: say what is missing and show a command that works.
Result<void> check_given(const InputOptions& input, bool has_policy) {
  Error error;
  if (input.trace.empty()) {
    error.messages.emplace_back(
        "no --trace: which jobs? Give a file, as in --trace examples/traces/philly-small.csv, or "
        "make one first:\n"
        "  berth generate --like philly --jobs 2000 --cluster 16x4 --load 0.9 --seed 1 -o "
        "trace.csv");
  }
  if (input.cluster.empty()) {
    error.messages.emplace_back(
        "no --cluster: on which machines? Give NODESxGPUS, as in --cluster 16x4, or a YAML file");
  }
  if (!has_policy) {
    error.messages.emplace_back(
        "no policy: which one? `berth policies` lists them; for example\n"
        "  berth simulate --trace examples/traces/philly-small.csv --cluster 16x4 --policy srtf\n"
        "  berth compare --trace examples/traces/philly-small.csv --cluster 16x4 --policies "
        "fifo,easy,srtf");
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return {};
}

Result<std::vector<NodeOutage>> load_outages(const std::string& path, const Cluster& cluster) {
  BERTH_TRY(const std::string text, read_file(path));
  return parse_outages(text, path, cluster);
}

/// With fewer than all of them elastic an elastic policy is not what its paper shows: people are
/// told how many jobs it may not resize, and how to suppose that it may.
void note_rigid_jobs(Prepared& prepared) {
  std::string names;
  for (const RunSpec& spec : prepared.specs) {
    const auto entry = find_policy(spec.policy);
    const bool has_choice =
        entry && std::ranges::any_of((*entry)->params, [](const ParamSpec& param) {
          return param.key == "elastic" && param.default_value == "declared";
        });
    const bool is_chosen = std::ranges::any_of(
        spec.settings, [](const auto& setting) { return setting.first == "elastic"; });
    if (has_choice && !is_chosen) names += (names.empty() ? "" : ", ") + spec.policy;
  }
  const auto rigid = std::ranges::count_if(prepared.trace.jobs, [](const TraceJob& job) {
    return job.gpus_min == 0 && job.gpus_max == 0 && job.gpus > 0 && job.gpu_milli == 1000;
  });
  if (names.empty() || rigid == 0) return;
  prepared.trace.notes.push_back(
      fmt::format("{}: {} of {} jobs declare no range of GPUs (gpus_min, gpus_max) and are not "
                  "resized; --set elastic=all takes every job as elastic",
                  names, rigid, prepared.trace.jobs.size()));
}

}  // namespace

Result<Prepared> prepare(const InputOptions& input, const WorldOptions& world,
                         const std::vector<std::string>& policies) {
  BERTH_TRY_VOID(check_given(input, !policies.empty()));
  Complaints complaints;
  Prepared prepared;
  RunSpec common = world_of(world, complaints);
  const auto settings = complaints.value_or(route_settings(policies, world.set),
                                            std::vector<Settings>(policies.size()));
  auto cluster = load_cluster(input.cluster);
  if (!cluster)
    complaints.add(cluster.error());
  else
    prepared.cluster = std::move(*cluster);
  if (!world.failures.empty() && !prepared.cluster.nodes.empty()) {
    common.sim.outages = complaints.value_or(load_outages(world.failures, prepared.cluster),
                                             std::vector<NodeOutage>{});
  }
  for (std::size_t i = 0; i < policies.size(); ++i) {
    common.policy = policies[i];
    common.settings = settings[i];
    prepared.specs.push_back(common);
  }
  // Names and values first, against no jobs at all: they cost nothing, a large trace does.
  bool learns = false;
  for (const RunSpec& spec : prepared.specs) {
    const auto run = make_run(prepared.trace, prepared.cluster, spec);
    if (!run) complaints.add(run.error());
    learns = learns || (run && run->learns_run_times());
  }
  auto trace = load_trace(input, &prepared.read);
  if (!trace)
    complaints.add(trace.error());
  else
    prepared.trace = std::move(*trace);
  if (!complaints.any() &&
      common.random_outages.mtbf > Duration::zero()) {  // how many depends on the trace
    const auto run = make_run(prepared.trace, prepared.cluster, prepared.specs.front());
    if (!run) complaints.add(run.error());
  }
  if (!world.history.empty()) {
    const auto history = load_history(input, world.history);
    if (!history) complaints.add(history.error());
    if (history && !complaints.any()) {
      const auto past =
          complaints.value_or(past_of(*history, input, world.history, prepared.trace), {});
      for (RunSpec& spec : prepared.specs) spec.past = past;
      if (!learns)
        prepared.trace.notes.emplace_back(
            "history: nobody in this run learns from it (see `berth estimators`)");
    }
  }
  if (complaints.any()) return complaints.take();
  note_rigid_jobs(prepared);
  return prepared;
}

Result<void> check_output(const OutputOptions& output) {
  if (output.out.empty()) {
    if (output.force) return fail("--force: there is nothing to replace without --out DIR");
    if (output.figures) return fail("--figures: where to? Give --out DIR");
    return {};
  }
  const auto directory = OutputDirectory::create(
      output.out, output.force ? Overwrite::Anything : Overwrite::BerthRunsOnly);
  if (!directory) return tl::unexpected<Error>(directory.error());
  return {};  // dropped again, it leaves no trace: a run that is killed has nothing to clean up
}

}  // namespace berth
