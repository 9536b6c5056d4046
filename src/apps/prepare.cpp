#include "apps/prepare.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/terminal.h"
#include "base/file.h"
#include "base/suggest.h"
#include "perf/profile_file.h"
#include "report/run_output.h"

namespace berth {

namespace {

/// Collects what is wrong and goes on, so that one call reports everything.
class Complaints {
 public:
  template <class T>
  T value_or(Result<T> result, T instead) {
    if (result) return std::move(*result);
    add(result.error());
    return instead;
  }
  void check(const Result<void>& result) {
    if (!result) add(result.error());
  }
  void add(const Error& error) {
    for (const std::string& message : error.messages) {  // several policies may say the same
      if (std::ranges::find(all_.messages, message) == all_.messages.end())
        all_.messages.push_back(message);
    }
  }
  [[nodiscard]] bool any() const noexcept { return !all_.messages.empty(); }
  [[nodiscard]] tl::unexpected<Error> take() { return tl::unexpected<Error>(std::move(all_)); }

 private:
  Error all_;
};

Result<Duration> time_option(std::string_view option, const std::string& text) {
  auto parsed = parse_duration(text);
  if (!parsed) return fail(fmt::format("{}: {}", option, parsed.error().text()));
  return parsed;
}

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

Result<void> keep_window(Trace& trace, const InputOptions& input) {
  Time from{};
  Time until = kNever;
  if (!input.from.empty()) {
    BERTH_TRY(const Duration begin, time_option("--from", input.from));
    from += begin;
  }
  if (!input.until.empty()) {
    BERTH_TRY(const Duration end, time_option("--until", input.until));
    until = Time{end};
  }
  if (until <= from) return fail("--until: must be later than --from");
  std::erase_if(trace.jobs,
                [&](const TraceJob& job) { return job.submit < from || job.submit >= until; });
  if (input.limit > 0 && trace.jobs.size() > input.limit) trace.jobs.resize(input.limit);
  if (trace.jobs.empty())
    return fail(
        fmt::format("{}: no job was submitted in that window (see --from, --until)", input.trace));
  trace.normalise();
  return {};
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

Result<Trace> load_history(const InputOptions& input, const std::string& path) {
  BERTH_TRY(Trace history, read_trace(path, {.format = {}, .skip_invalid = input.skip_invalid}));
  if (history.jobs.empty()) return fail(fmt::format("{}: the history has no jobs", path));
  return history;
}

Clocks clocks_of(const Trace& history, const Trace& run, const InputOptions& input,
                 const std::string& path) {
  std::error_code unknown;
  const bool one_file = std::filesystem::equivalent(input.trace, path, unknown);
  const bool calendars = history.zero_seconds != 0 && run.zero_seconds != 0;
  return one_file || calendars ? Clocks::Same : Clocks::Apart;
}

/// What estimators begin with; told in the notes of the trace.
Result<std::shared_ptr<const Past>> recall(const Trace& history, Prepared& prepared,
                                           const InputOptions& input, const std::string& path) {
  Trace& run = prepared.trace;
  const auto past =
      std::make_shared<const Past>(history, run, clocks_of(history, run, input, path));
  if (past->size() == 0)
    return fail(
        fmt::format("{}: no job of the history was over when the run begins (take an "
                    "earlier history or a later --from)",
                    path));
  run.notes.push_back(fmt::format("history: {} jobs of {}", past->size(), path));
  if (past->left_out() > 0)
    run.notes.push_back(fmt::format("history: {} jobs left out, they ended after the run begins",
                                    past->left_out()));
  if (std::ranges::none_of(prepared.specs, learns_run_times))
    run.notes.emplace_back("history: nobody in this run learns from it (see `berth estimators`)");
  return past;
}

}  // namespace

Result<std::vector<std::string>> policy_list(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
    return names;
  }
  Complaints complaints;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    begin = end + 1;
    std::erase(name, ' ');
    if (name.empty()) continue;
    if (const auto found = find_policy(name); !found) complaints.add(found.error());
    if (std::ranges::find(names, name) != names.end())
      complaints.add(Error{fmt::format("--policies: '{}' is named twice", name)});
    names.push_back(std::move(name));
  }
  if (!complaints.any()) return names;
  std::vector<std::string> known;
  for (const PolicyEntry& entry : policy_registry()) known.push_back(entry.name);
  complaints.add(Error{fmt::format("the policies are: {}", fmt::join(known, ", "))});
  return complaints.take();
}

Result<std::vector<Settings>> route_settings(const std::vector<std::string>& policies,
                                             const std::vector<std::string>& texts) {
  std::vector<Settings> routed(policies.size());
  std::vector<const PolicyEntry*> entries;
  std::vector<std::string> known;
  for (const std::string& policy : policies) {
    BERTH_TRY(const PolicyEntry* entry, find_policy(policy));
    entries.push_back(entry);
    for (const ParamSpec& param : entry->params) {
      if (std::ranges::find(known, param.key) == known.end()) known.push_back(param.key);
    }
  }
  Complaints complaints;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      complaints.add(Error{fmt::format("--set {}: write KEY=VALUE or POLICY.KEY=VALUE", text)});
      continue;
    }
    std::string key = text.substr(0, equals);
    std::string owner;
    if (const std::size_t dot = key.find('.'); dot != std::string::npos) {
      owner = key.substr(0, dot);
      key = key.substr(dot + 1);
      if (std::ranges::find(policies, owner) == policies.end()) {
        complaints.add(Error{fmt::format("--set {}: policy '{}' is not in this run{}", text, owner,
                                         suggestion(owner, policies))});
        continue;
      }
    }
    bool taken = false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const bool has =
          std::ranges::find(entries[i]->params, key, &ParamSpec::key) != entries[i]->params.end();
      if (!has || (!owner.empty() && policies[i] != owner)) continue;
      routed[i].emplace_back(key, text.substr(equals + 1));
      taken = true;
    }
    if (taken) continue;
    const std::string who = !owner.empty() ? owner : policies.size() == 1 ? policies[0] : "";
    complaints.add(Error{
        fmt::format("--set {}: {} parameter '{}'{}{}", text,
                    who.empty() ? "none of the policies has a" : fmt::format("'{}' has no", who),
                    key, known.empty() ? "" : suggestion(key, known),
                    who.empty() ? "" : fmt::format("; see `berth policies {}`", who))});
  }
  if (complaints.any()) return complaints.take();
  return routed;
}

Result<Trace> load_trace(const InputOptions& input, ReadReport* report) {
  BERTH_TRY(Trace trace,
            read_trace(input.trace, {.format = input.format, .skip_invalid = input.skip_invalid},
                       report));
  if (trace.jobs.empty()) return fail(fmt::format("{}: the trace has no jobs", input.trace));
  BERTH_TRY_VOID(keep_window(trace, input));
  return trace;
}

void tell_notes(const Trace& trace, const ReadReport& report) {
  for (const std::string& note : trace.notes) say(fmt::format("note: {}", note));
  if (report.dropped == 0) return;
  say(fmt::format("note: dropped {} of {} rows", report.dropped, report.rows));
  for (const std::string& reason : report.dropped_reasons) say(fmt::format("note:   {}", reason));
}

namespace {

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
  // names and values first: they cost nothing, a large trace does
  for (const RunSpec& spec : prepared.specs)
    complaints.check(check_spec(prepared.trace, prepared.cluster, spec));
  auto trace = load_trace(input, &prepared.read);
  if (!trace)
    complaints.add(trace.error());
  else
    prepared.trace = std::move(*trace);
  if (!complaints.any() &&
      common.random_outages.mtbf > Duration::zero()) {  // how many depends on the trace
    complaints.check(check_spec(prepared.trace, prepared.cluster, prepared.specs.front()));
  }
  if (!world.history.empty()) {
    const auto history = load_history(input, world.history);
    if (!history) complaints.add(history.error());
    if (history && !complaints.any()) {
      const auto past = complaints.value_or(recall(*history, prepared, input, world.history), {});
      for (RunSpec& spec : prepared.specs) spec.past = past;
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
