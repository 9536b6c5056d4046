// The options of `berth submit` and of #BERTH lines.
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/split.h"
#include "client/draft.h"
#include "client/draft_setters.h"
#include "client/job_keys.h"
#include "client/moment.h"
#include "model/job_spec_json.h"
#include "model/node_names.h"

namespace berth::client {

namespace {

using Text = std::string_view;
constexpr std::int64_t kMany = 1'000'000;

constexpr Text kWhat = "What runs";
constexpr Text kWith = "With what";
constexpr Text kHow = "How it may be treated";
constexpr Text kWhen = "What it waits for";
constexpr Text kKnown = "What is known of it";
constexpr Text kTalk = "This command";

template <auto Field, std::int64_t Low, std::int64_t High>
Result<void> count(Draft& draft, Text value) {
  BERTH_TRY(const auto number, parse_count(value, Low, High));
  draft.spec.*Field = static_cast<std::remove_reference_t<decltype(draft.spec.*Field)>>(number);
  return {};
}
template <auto Field>
Result<void> span(Draft& draft, Text value) {
  BERTH_TRY(draft.spec.*Field, parse_time_limit(value));
  return {};
}

Result<void> take_limit(Draft& draft, Text value) {
  BERTH_TRY(draft.spec.time_limit, parse_job_limit(value));
  return {};
}

/// "4", or an elastic range "2-8".
Result<void> take_gpus(Draft& draft, Text value) {
  const auto dash = value.find('-', 1);
  BERTH_TRY(const auto low, parse_count(value.substr(0, dash), 0, kMany));
  draft.gpus = low;
  // A later option wins over #SBATCH lines that counted GPUs otherwise.
  draft.gpus_per_node = draft.gpus_per_task = std::nullopt;
  draft.spec.gpus_min = draft.spec.gpus_max = 0;
  if (dash == Text::npos) return {};
  BERTH_TRY(const auto high, parse_count(value.substr(dash + 1), 1, kMany));
  if (low < 1 || high < low) return fail(fmt::format("'{}' is no range", value));
  draft.spec.gpus_min = static_cast<std::int32_t>(low);
  draft.spec.gpus_max = static_cast<std::int32_t>(high);
  draft.gpus = high;
  return {};
}

// Slurm's ways to count cores give way to a plain number.
Result<void> take_cpus(Draft& draft, Text value) {
  BERTH_TRY(const auto cpus, parse_count(value, 0, kMany));
  draft.spec.cpus = static_cast<std::int32_t>(cpus);
  draft.cpus_per_task = draft.cpus_per_gpu = draft.tasks = draft.tasks_per_node = std::nullopt;
  return {};
}

Result<void> take_memory(Draft& draft, Text value) {
  BERTH_TRY(draft.spec.memory_mib, parse_memory_mib(value));
  draft.memory_mib = draft.memory_per_cpu = draft.memory_per_gpu = std::nullopt;
  return {};
}

// At least a thousandth: 0 would mean no device at all.
Result<void> take_share(Draft& draft, Text value) {
  double share = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), share);
  if (error != std::errc{} || end != value.data() + value.size() || !(share > 0) || share > 1)
    return fail(fmt::format("'{}' is not a share of a device (above 0, at most 1)", value));
  draft.spec.gpu_milli = std::max(1, static_cast<std::int32_t>(std::lround(share * 1'000)));
  return {};
}

Result<void> take_nodes(Draft& draft, Text value) {
  draft.spec.nodes.clear();
  for (const Text part : split(value, ',')) {
    const auto names = expand_node_names(part);
    if (!names) return fail(fmt::format("'{}' is not a node (as in n1,n7 or n[1-4])", part));
    draft.spec.nodes.insert(draft.spec.nodes.end(), names->begin(), names->end());
  }
  return {};
}

Result<void> take_env(Draft& draft, Text value) {
  const auto equals = value.find('=');
  const std::string name(value.substr(0, equals));
  if (name.empty()) return fail(fmt::format("'{}' is not NAME or NAME=VALUE", value));
  if (equals != Text::npos) {
    draft.extra_env[name] = std::string(value.substr(equals + 1));
  } else if (const auto found = draft.context.environment.find(name);
             found != draft.context.environment.end()) {
    draft.extra_env[name] = found->second;
  } else {
    return fail(fmt::format("{} is not set here", name));
  }
  return {};
}

/// Any key of a JobSpec, as its JSON form has it.
Result<void> take_set(Draft& draft, Text value) {
  const std::vector<std::string> one{std::string(value)};
  BERTH_TRY(const auto changes, json_of_settings(one));
  // Through JSON, so that --set obeys exactly the rules of a job file.
  auto all = to_json(draft.spec);
  all.update(changes);
  BERTH_TRY(draft.spec, job_spec_from_json(all));
  if (changes.contains("gpus")) draft.gpus = draft.spec.gpus;
  if (changes.contains("cpus"))
    draft.cpus_per_task = draft.cpus_per_gpu = draft.tasks = draft.tasks_per_node = std::nullopt;
  return {};
}

Result<void> take_dependency(Draft& draft, Text value) {
  BERTH_TRY(auto found, parse_dependencies(value));
  draft.spec.dependencies = std::move(found.all);
  draft.spec.any_dependency = found.any;
  return {};
}

Result<void> take_kind(Draft& draft, Text value) {
  const auto kind = job_kind_from(value);
  if (!kind)
    return fail(fmt::format("'{}' is none of training, hpo, debug, interactive, service", value));
  draft.spec.kind = *kind;
  return {};
}

std::vector<OptionTable::Row> rows() {
  using enum Takes;
  return {
      {{"name", 'n', Value, "NAME", "what people call it (default: the program)", kWhat},
       text<&JobSpec::name>},
      {{"chdir", 'C', Value, "DIR", "where it runs (default: here)", kWhat},
       text<&JobSpec::workdir>},
      {{"output", 'o', Value, "FILE",
        "standard output; %j %x %u %A %a %N %n %t are replaced (default berth-%j.out)", kWhat},
       text<&JobSpec::output>},
      {{"error", 'e', Value, "FILE", "standard error (default: with output)", kWhat},
       text<&JobSpec::error>},
      {{"input", 'i', Value, "FILE", "standard input (default: none)", kWhat},
       text<&JobSpec::input>},
      {{"append", 0, Nothing, "", "add to output that is there (default: begin anew)", kWhat},
       [](Draft& d, Text) -> Result<void> {
         d.spec.open_mode = OpenMode::Append;
         return {};
       }},
      {{"env", 0, Value, "NAME[=VALUE]", "a variable, repeatable", kWhat}, take_env},
      {{"export", 0, Value, "LIST", "ALL, NONE, or variables joined by commas (default ALL)",
        kWhat},
       [](Draft& d, Text v) -> Result<void> {
         d.exported = std::string(v);
         return {};
       }},
      {{"container", 0, Value, "IMAGE", "image it runs in (default: none)", kWhat},
       text<&JobSpec::container>},
      {{"umask", 0, Value, "MASK", "octal mask of the files it makes (default: yours)", kWhat},
       text<&JobSpec::umask>},
      {{"group", 0, Value, "GROUP", "whose share it uses (default: your own)", kWhat},
       text<&JobSpec::group>},
      {{"queue", 'q', Value, "QUEUE", "which queue (default: the first)", kWhat},
       text<&JobSpec::queue>},
      {{"user", 0, Value, "USER", "whose job it is; admins only (default: yours)", kWhat},
       text<&JobSpec::user>},
      {{"comment", 0, Value, "TEXT", "any text", kWhat}, text<&JobSpec::comment>},
      {{"qos", 0, Value, "NAME", "any name; kept and shown (default: none)", kWhat},
       text<&JobSpec::qos>},

      {{"gpus", 'g', Value, "N|MIN-MAX",
        "devices, all or nothing; 0: cores alone; a range is elastic (default 1)", kWith},
       take_gpus},
      {{"gpu-type", 0, Value, "TYPES", "a100|v100, in order of preference (default: any)", kWith},
       text<&JobSpec::gpu_type>},
      {{"gpu-memory", 0, Value, "SIZE", "only devices with so much memory: 24G (default: any)",
        kWith},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.gpu_memory_mib, parse_memory_mib(v));
         return {};
       }},
      {{"share", 0, Value, "X", "of one device, 0 to 1 (default 1)", kWith}, take_share},
      {{"cpus", 'c', Value, "N", "cores for the whole job (default: not said)", kWith}, take_cpus},
      {{"memory", 'm', Value, "SIZE", "16G, 512M for the whole job (default: not said)", kWith},
       take_memory},
      {{"tasks", 0, Value, "N", "processes of a gang, each with its RANK (default: one, without)",
        kWith},
       [](Draft& d, Text v) -> Result<void> {
         d.spec.ranks = true;
         return count<&JobSpec::tasks, 1, 4'096>(d, v);
       }},
      {{"nodes", 0, Value, "NAMES", "only these nodes (default: any)", kWith}, take_nodes},
      {{"exclusive", 0, Nothing, "", "no other job on its nodes", kWith},
       set<&JobSpec::exclusive, true>},

      {{"time", 't', Value, "LIMIT",
        "minutes, h:m:s, 90s, 2h, 1d or unlimited (default: the queue's)", kHow},
       take_limit},
      {{"estimate", 0, Value, "TIME", "how long it will likely run (default: not said)", kHow},
       span<&JobSpec::estimate>},
      {{"priority", 'p', Value, "N", "larger is more urgent (default 0)", kHow},
       count<&JobSpec::priority, -1'000'000'000, 1'000'000'000>},
      {{"no-preempt", 0, Nothing, "", "is never stopped for another job", kHow},
       set<&JobSpec::preemptible, false>},
      {{"no-requeue", 0, Nothing, "", "is not run again after a lost node", kHow},
       set<&JobSpec::requeue, false>},
      {{"retries", 0, Value, "N", "runs again so often after a failure (default 0)", kHow},
       count<&JobSpec::max_retries, 0, 1'000>},
      {{"requeue-exit-code", 0, Value, "N", "this exit means: run me again (default: none)", kHow},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(const auto code, parse_count(v, 1, 255));
         d.spec.requeue_exit_code = static_cast<std::int32_t>(code);
         return {};
       }},
      {{"signal", 0, Value, "SIG[@SECONDS]", "warning so long before the limit (default TERM)",
        kHow},
       take_warning},
      {{"grace", 0, Value, "TIME", "between the warning and the kill (default 30s)", kHow},
       span<&JobSpec::grace_seconds>},
      {{"deadline", 0, Value, "TIME", "should be over by then (default: none)", kHow},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.deadline, parse_moment(v, d.context.now));
         return {};
       }},
      {{"soft-deadline", 0, Nothing, "", "the deadline may be missed, at a price", kHow},
       set<&JobSpec::soft_deadline, true>},

      {{"hold", 'H', Nothing, "", "waits until it is released", kWhen}, set<&JobSpec::hold, true>},
      {{"begin", 'b', Value, "TIME", "not before then: now+2hours, 22:00, 2026-11-20", kWhen},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.begin, parse_moment(v, d.context.now));
         return {};
       }},
      {{"dependency", 'd', Value, "LIST", "afterok:12:13, afterany:9, singleton; ? for or", kWhen},
       take_dependency},
      {{"array", 'a', Value, "LIST", "many jobs: 0-9:3,20%2 is five, two at once", kWhen},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.array, parse_array(v));
         return {};
       }},

      {{"grid", 0, Value, "NAME=VALUES", "a job for each combination: lr=0.1,0.01 or seed=1-5",
        kWhen},
       [](Draft& d, Text v) -> Result<void> {
         if (!std::exchange(d.has_grid, true)) d.spec.grid.clear();  // a job file's
         d.spec.grid.emplace_back(v);
         return {};
       }},
      {{"grid-zip", 0, Nothing, "", "the first values together, then the second ones", kWhen},
       set<&JobSpec::grid_zip, true>},
      {{"keep-unmet", 0, Nothing, "", "stays though its dependencies can never be met", kWhen},
       set<&JobSpec::keep_unmet, true>},

      {{"model", 0, Value, "NAME", "what it trains, as `berth models` calls it", kKnown},
       text<&JobSpec::model>},
      {{"batch-size", 0, Value, "N", "samples per iteration over all devices", kKnown},
       count<&JobSpec::batch_size, 0, 1'000'000'000>},
      {{"iterations", 0, Value, "N", "iterations in all", kKnown},
       count<&JobSpec::iterations, 0, 1'000'000'000'000'000>},
      {{"study", 0, Value, "NAME", "hyper-parameter study it belongs to", kKnown},
       text<&JobSpec::study>},
      {{"kind", 0, Value, "KIND", "training, hpo, debug, interactive or service", kKnown},
       take_kind},
      {{"set", 0, Value, "NAME=VALUE", "any key of a job file, repeatable (docs/formats/job.md)",
        kKnown},
       take_set},

      {{"key", 0, Value, "KEY", "the same key again is the same job (default: a random one)",
        kTalk},
       text<&JobSpec::key>},
      {{"wait", 'w', Nothing, "", "until it is over; exits as the job did", kTalk},
       raise<&Draft::wait>},
      {{"test-only", 0, Nothing, "", "ask when it would start and what it would wait for", kTalk},
       raise<&Draft::test_only>},
      {{"dry-run", 0, Nothing, "", "show what would be asked for, as JSON; submit nothing", kTalk},
       raise<&Draft::dry_run>},
      {{"parsable", 0, Nothing, "", "print the number alone", kTalk}, raise<&Draft::parsable>},
      {{"json", 0, Nothing, "", "the scheduler's answer as JSON", kTalk}, raise<&Draft::json>},
      {{"server", 0, Value, "ADDRESS", "socket path or URL (default: BERTH_URL, BERTH_SOCKET)",
        kTalk},
       [](Draft& d, Text v) -> Result<void> {
         d.server = std::string(v);
         return {};
       }},
      {{"help", 'h', Nothing, "", "this text", kTalk}, raise<&Draft::help>},
  };
}

}  // namespace

std::vector<OptionTable::Row> own_rows() { return rows(); }

const OptionTable& own_options() {
  static const OptionTable table(rows());
  return table;
}

}  // namespace berth::client
