// sbatch's options and what becomes of each. Slurm speaks of nodes, tasks and cores per task; a
// JobSpec of devices, cores and memory in all: see settle().
#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "base/split.h"
#include "client/draft.h"
#include "client/draft_setters.h"
#include "client/moment.h"
#include "client/sbatch_ignored.h"
#include "model/node_names.h"
#include "model/path_pattern.h"

namespace berth::client {

namespace {

using Text = std::string_view;
constexpr std::int64_t kMany = 1'000'000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// "2", "a100:2", "a100:2,v100:1": how many, and of which types. A job has devices of one type, so
/// that several are a choice.
Result<std::int64_t> typed_count(Draft& draft, Text text) {
  std::int64_t all = 0;
  std::string types;
  const auto parts = split(text, ',');
  for (Text part : parts) {
    if (const auto colon = part.rfind(':'); colon != Text::npos) {
      types += (types.empty() ? "" : "|") + std::string(part.substr(0, colon));
      part = part.substr(colon + 1);
    }
    BERTH_TRY(const auto count, parse_count(part, 0, kMany));
    all += count;
  }
  if (!types.empty()) draft.spec.gpu_type = types;
  if (parts.size() > 1)
    draft.note(fmt::format("{}: a job has GPUs of one type: asks for {} of {}", text, all,
                           types.empty() ? "any type" : types));
  return all;
}

/// The GPUs of a list of generic resources, as "gpu:a100:2,shard:1" has them.
Result<std::string> gpus_in(Draft& draft, Text value) {
  std::string gpus;
  for (const Text part : split(value, ',')) {
    std::string plain(part);  // gpu, gpu:2, gpu:a100, gpu:a100:2, and the same with '='
    std::ranges::replace(plain, '=', ':');
    Text rest = plain;
    if (rest.starts_with("gres:") || rest.starts_with("gres/")) rest.remove_prefix(5);
    if (const auto socket = rest.find('('); socket != Text::npos) rest = rest.substr(0, socket);
    const auto pieces = split(rest, ':');
    if (pieces.front() != "gpu") {
      draft.note(fmt::format("--gres={}: only gpu is known here", part));
      continue;
    }
    if (!gpus.empty()) gpus += ',';
    // A type begins with a letter: "gpu:-2" is a wrong number, not a strange type.
    if (pieces.size() == 1)
      gpus += "1";
    else if (pieces.size() == 2 && !pieces[1].empty() && is_letter(pieces[1].front()))
      gpus += std::string(pieces[1]) + ":1";
    else
      gpus += std::string(rest.substr(4));
  }
  return gpus;
}

Result<void> take_gres(Draft& draft, Text value) {
  if (value == "none" || value == "NONE") {
    draft.gpus_per_node = 0;
    return {};
  }
  BERTH_TRY(const std::string gpus, gpus_in(draft, value));
  if (gpus.empty()) return {};
  BERTH_TRY(draft.gpus_per_node, typed_count(draft, gpus));
  return {};
}

/// "cpu:4,gres/gpu:1" and the same with '='.
Result<void> take_tres_per_task(Draft& draft, Text value) {
  for (const Text part : split(value, ',')) {
    const auto mark = part.find_first_of(":=");
    const Text name = part.substr(0, mark);
    if (mark != Text::npos && name == "cpu") {
      BERTH_TRY(draft.cpus_per_task, parse_count(part.substr(mark + 1), 1, kMany));
    } else if (part.starts_with("gres")) {
      BERTH_TRY(const std::string gpus, gpus_in(draft, part));
      if (gpus.empty()) continue;
      BERTH_TRY(draft.gpus_per_task, typed_count(draft, gpus));
    } else {
      draft.note(fmt::format("--tres-per-task={}: only cpu and gres/gpu are known here", part));
    }
  }
  return {};
}

Result<void> take_nodes(Draft& draft, Text value) {
  const auto dash = value.find('-');  // MIN-MAX: the least it can do with
  BERTH_TRY(draft.nodes, parse_count(value.substr(0, dash), 1, 100'000));
  if (dash != Text::npos) {
    BERTH_TRY(const auto most, parse_count(value.substr(dash + 1), 1, 100'000));
    if (most < draft.nodes) return fail(fmt::format("'{}' counts down", value));
  }
  return {};
}

template <std::vector<std::string> JobSpec::*Field>
Result<void> take_names(Draft& draft, Text value) {
  auto& all = draft.spec.*Field;
  all.clear();
  int depth = 0;
  std::string pattern;
  for (const char c : std::string(value) + ",") {  // commas inside brackets belong to the pattern
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' || depth > 0) {
      pattern += c;
      continue;
    }
    const auto names = expand_node_names(pattern);
    if (!names) return fail(fmt::format("'{}' is no list of nodes (as in n1,n[3-8])", value));
    all.insert(all.end(), names->begin(), names->end());
    pattern.clear();
  }
  if (depth != 0) return fail(fmt::format("'{}': a bracket is not closed", value));
  return {};
}

/// Names of nodes, a line each or by commas.
Result<void> take_nodefile(Draft& draft, Text value) {
  BERTH_TRY(const std::string text, read_file(std::string(value), {.max_bytes = 1U << 20U}));
  std::string list;
  for (const char c : text) {
    const bool is_gap = c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == ',';
    if (!is_gap)
      list += c;
    else if (!list.empty() && list.back() != ',')
      list += ',';
  }
  if (list.ends_with(',')) list.pop_back();
  if (list.empty()) return fail(fmt::format("{}: no node in it", value));
  return take_names<&JobSpec::nodes>(draft, list);
}

/// NAME=VALUE, each followed by a zero byte; a number is a descriptor that is open already.
Result<void> take_export_file(Draft& draft, Text value) {
  const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == Text::npos;
  const std::string path = is_number ? fmt::format("/dev/fd/{}", value) : std::string(value);
  BERTH_TRY(const std::string text, read_file(path, {.max_bytes = kMaxEnvironmentBytes}));
  for (const Text entry : split(text, '\0')) {
    if (entry.empty() || entry == "\n") continue;
    const auto equals = entry.find('=');
    if (equals == Text::npos || equals == 0)
      return fail(fmt::format("{}: '{}' is not NAME=VALUE (with a zero byte behind it)", value,
                              entry.substr(0, 60)));
    draft.extra_env[std::string(entry.substr(0, equals))] = std::string(entry.substr(equals + 1));
  }
  draft.exported = "NONE";
  return {};
}

Result<void> take_invalid_dependency(Draft& draft, Text value) {
  if (value != "yes" && value != "no")
    return fail(fmt::format("'{}' is neither yes nor no", value));
  draft.spec.keep_unmet = value == "no";
  return {};
}

Result<void> take_clusters(Draft& draft, Text value) {
  draft.cluster = std::string(value.substr(0, value.find(',')));
  draft.note(fmt::format("--clusters={}: there is one cluster, the job goes there", value));
  return {};
}

Result<void> take_container(Draft& draft, Text value) {
  draft.spec.container = std::string(value);
  return {};
}

Result<void> take_overcommit(Draft& draft, Text) {
  draft.asked["SLURM_OVERCOMMIT"] = "1";
  draft.note("--overcommit is not honoured: the scheduler binds cores itself");
  return {};
}

Result<void> take_partition(Draft& draft, Text value) {
  const auto comma = value.find(',');
  draft.spec.queue = std::string(value.substr(0, comma));
  if (comma != Text::npos)
    draft.note(fmt::format("--partition={}: only the first, {}", value, draft.spec.queue));
  return {};
}

Result<void> take_memory(Draft& draft, Text value) {
  BERTH_TRY(const auto mib, parse_memory_mib(value));
  if (mib == 0)
    draft.note("--mem=0: the job has no limit of memory, and none is set aside for it alone");
  draft.memory_mib = mib;
  draft.memory_per_cpu = draft.memory_per_gpu = std::nullopt;
  return {};
}

Result<void> take_dependency(Draft& draft, Text value) {
  BERTH_TRY(auto found, parse_dependencies(value));
  draft.spec.dependencies = std::move(found.all);
  draft.spec.any_dependency = found.any;
  return {};
}

Result<void> take_nice(Draft& draft, Text value) {
  BERTH_TRY(const auto nice,
            parse_count(value.empty() ? "100" : value, -1'000'000'000, 1'000'000'000));
  draft.spec.priority = static_cast<std::int32_t>(-nice);
  return {};
}

Result<void> take_priority(Draft& draft, Text value) {
  if (value == "TOP" || value == "top") {
    draft.note("--priority=TOP is not honoured: give a number");
    return {};
  }
  BERTH_TRY(const auto priority, parse_count(value, -1'000'000'000, 1'000'000'000));
  draft.spec.priority = static_cast<std::int32_t>(priority);
  return {};
}

Result<void> take_open_mode(Draft& draft, Text value) {
  if (value != "append" && value != "truncate")
    return fail(fmt::format("'{}' is neither append nor truncate", value));
  draft.spec.open_mode = value == "append" ? OpenMode::Append : OpenMode::Truncate;
  draft.asked["SLURM_OPEN_MODE"] = value.substr(0, 1);
  return {};
}

template <std::string JobSpec::*Field>
Result<void> pattern(Draft& draft, Text value) {
  BERTH_TRY_VOID(check_path_pattern(value));
  return text<Field>(draft, value);
}
template <std::optional<std::int64_t> Draft::*Field>
Result<void> count(Draft& draft, Text value) {
  BERTH_TRY(draft.*Field, parse_count(value, 1, kMany));
  return {};
}
template <std::optional<std::int64_t> Draft::*Field>
Result<void> gpu_count(Draft& draft, Text value) {
  BERTH_TRY(draft.*Field, typed_count(draft, value));
  return {};
}
/// Slurm knows no range here; ours is elastic, as in `berth submit --gpus 2-8`.
Result<void> take_gpus(Draft& draft, Text value) {
  const auto colon = value.rfind(':');
  const auto dash = value.find('-', colon == Text::npos ? 1 : colon + 2);
  draft.spec.gpus_min = draft.spec.gpus_max = 0;
  if (dash == Text::npos) return gpu_count<&Draft::gpus>(draft, value);
  BERTH_TRY(const auto low, typed_count(draft, value.substr(0, dash)));
  BERTH_TRY(const auto high, parse_count(value.substr(dash + 1), 1, kMany));
  if (low < 1 || high < low) return fail(fmt::format("'{}' is no range", value));
  draft.spec.gpus_min = static_cast<std::int32_t>(low);
  draft.spec.gpus_max = static_cast<std::int32_t>(high);
  draft.gpus = high;
  return {};
}
template <std::optional<std::int64_t> Draft::*Field>
Result<void> memory_each(Draft& draft, Text value) {
  BERTH_TRY(draft.*Field, parse_memory_mib(value));
  draft.memory_mib = std::nullopt;
  return {};
}

std::vector<OptionTable::Row> honoured() {
  using enum Takes;
  return {
      {{"account", 'A', Value, "NAME", "whose share it uses"}, text<&JobSpec::group>},
      {{"array", 'a', Value, "LIST", "many jobs, as in 0-9:3,20%2"},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.array, parse_array(v));
         return {};
       }},
      {{"begin", 'b', Value, "TIME", "not before then"},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.begin, parse_moment(v, d.context.now));
         return {};
       }},
      {{"chdir", 'D', Value, "DIR", "where it runs"}, text<&JobSpec::workdir>},
      {{"cluster", 0, Value, "NAME", "any name: there is one cluster"}, take_clusters},
      {{"clusters", 'M', Value, "NAMES", "any name: there is one cluster; told with --parsable"},
       take_clusters},
      {{"comment", 0, Value, "TEXT", "any text"}, text<&JobSpec::comment>},
      {{"container", 0, Value, "IMAGE", "runs in this image, by the scheduler's `containers`"},
       take_container},
      {{"cpus-per-gpu", 0, Value, "N", "cores for each GPU"}, count<&Draft::cpus_per_gpu>},
      {{"cpus-per-task", 'c', Value, "N", "cores for each task"}, count<&Draft::cpus_per_task>},
      {{"deadline", 0, Value, "TIME", "should be over by then"},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.deadline, parse_moment(v, d.context.now));
         return {};
       }},
      {{"dependency", 'd', Value, "LIST",
        "after, afterok, afterany, afternotok, aftercorr, singleton; as in afterok:12:13_4"},
       take_dependency},
      {{"error", 'e', Value, "FILE", "standard error"}, pattern<&JobSpec::error>},
      {{"exclude", 'x', Value, "LIST", "not these nodes; names that are not here do no harm"},
       take_names<&JobSpec::exclude>},
      {{"exclusive", 0, Maybe, "MODE", "no other job on its nodes"},
       set<&JobSpec::exclusive, true>},
      {{"export", 0, Value, "LIST", "ALL, NONE, or variables"},
       [](Draft& d, Text v) -> Result<void> {
         d.exported = std::string(v);
         return {};
       }},
      {{"export-file", 0, Value, "FILE", "variables from a file or descriptor, and no others"},
       take_export_file},
      {{"gpus", 'G', Value, "[TYPE:]N", "GPUs in all; MIN-MAX is elastic"}, take_gpus},
      {{"gpus-per-node", 0, Value, "[TYPE:]N", "GPUs on each node"},
       [](Draft& d, Text v) -> Result<void> {
         d.asked["SLURM_GPUS_PER_NODE"] = std::string(v);  // not by --gres, as under Slurm
         return gpu_count<&Draft::gpus_per_node>(d, v);
       }},
      {{"gpus-per-task", 0, Value, "[TYPE:]N", "GPUs for each task"},
       gpu_count<&Draft::gpus_per_task>},
      {{"gres", 0, Value, "gpu[:TYPE]:N", "GPUs on each node"}, take_gres},
      {{"help", 'h', Nothing, "", "this text"}, raise<&Draft::help>},
      {{"hold", 'H', Nothing, "", "waits until released"}, set<&JobSpec::hold, true>},
      {{"input", 'i', Value, "FILE", "standard input"}, text<&JobSpec::input>},
      {{"job-name", 'J', Value, "NAME", "what people call it"}, text<&JobSpec::name>},
      {{"kill-on-invalid-dep", 0, Value, "yes|no",
        "cancelled or kept if its dependencies can never be met (default yes)"},
       take_invalid_dependency},
      {{"mem", 0, Value, "SIZE", "memory of each node"}, take_memory},
      {{"mem-per-cpu", 0, Value, "SIZE", "memory for each core"},
       memory_each<&Draft::memory_per_cpu>},
      {{"mem-per-gpu", 0, Value, "SIZE", "memory for each GPU"},
       memory_each<&Draft::memory_per_gpu>},
      {{"nice", 0, Maybe, "N", "so much less urgent"}, take_nice},
      {{"no-requeue", 0, Nothing, "", "never run again"}, set<&JobSpec::requeue, false>},
      {{"nodefile", 'F', Value, "FILE", "only the nodes named in it"}, take_nodefile},
      {{"nodelist", 'w', Value, "LIST", "only these nodes"}, take_names<&JobSpec::nodes>},
      {{"nodes", 'N', Value, "N[-M]", "how many nodes"}, take_nodes},
      {{"ntasks", 'n', Value, "N", "how many tasks"}, count<&Draft::tasks>},
      {{"ntasks-per-gpu", 0, Value, "N", "tasks on each GPU"}, count<&Draft::tasks_per_gpu>},
      {{"ntasks-per-node", 0, Value, "N", "tasks on each node"}, count<&Draft::tasks_per_node>},
      {{"open-mode", 0, Value, "MODE", "append or truncate"}, take_open_mode},
      {{"output", 'o', Value, "FILE", "standard output"}, pattern<&JobSpec::output>},
      {{"overcommit", 'O', Nothing, "", "told to the job; cores are bound all the same"},
       take_overcommit},
      {{"parsable", 0, Nothing, "", "print the number alone, with --clusters also its name"},
       raise<&Draft::parsable>},
      {{"partition", 'p', Value, "NAME", "queue"}, take_partition},
      {{"priority", 0, Value, "N", "larger is more urgent"}, take_priority},
      {{"qos", 'q', Value, "NAME", "kept and shown; priority and limits come from the queue"},
       text<&JobSpec::qos>},
      {{"quiet", 'Q', Nothing, "", "print nothing"}, raise<&Draft::quiet>},
      {{"requeue", 0, Nothing, "", "run again after a lost node"}, set<&JobSpec::requeue, true>},
      {{"signal", 0, Value, "[B:]SIG[@SECONDS]", "warning before the limit"}, take_warning},
      {{"tasks-per-node", 0, Value, "N", "the old name of --ntasks-per-node"},
       count<&Draft::tasks_per_node>},
      {{"test-only", 0, Nothing, "", "ask when and where it would start, do not submit"},
       raise<&Draft::test_only>},
      {{"time", 't', Value, "LIMIT", "minutes, h:m:s, d-h, or UNLIMITED"},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.time_limit, parse_job_limit(v));
         return {};
       }},
      {{"time-min", 0, Value, "LIMIT", "the least it can do with"},
       nullptr,
       "a limit is not shortened to start sooner; set --time"},
      {{"tres-per-task", 0, Value, "LIST", "cpu:N and gres/gpu:N for each task"},
       take_tres_per_task},
      {{"usage", 0, Nothing, "", "all options in a paragraph"}, raise<&Draft::help>},
      {{"version", 'V', Nothing, "", "which program this is"}, raise<&Draft::help>},
      {{"wait", 'W', Nothing, "", "until it is over"}, raise<&Draft::wait>},
      {{"workdir", 0, Value, "DIR", "where it runs"}, text<&JobSpec::workdir>},
      {{"wrap", 0, Value, "COMMAND", "a shell command instead of a script"},
       [](Draft& d, Text v) -> Result<void> {
         d.wrap = std::string(v);
         return {};
       }},
  };
}

std::string option_row(const OptionSpec& option, std::string_view happens) {
  std::string name = fmt::format("`--{}", option.name);
  if (!option.value.empty())
    name += option.takes == Takes::Maybe ? fmt::format("[={}]", option.value)
                                         : fmt::format("={}", option.value);
  name += "`";
  if (option.letter != 0) name += fmt::format(", `-{}`", option.letter);
  std::string row = fmt::format("| {} | {} |", name, happens);
  for (std::size_t at = 0; (at = row.find("yes|no", at)) != std::string::npos;)
    row.replace(at, 6, "yes\\|no");
  return row + "\n";
}

}  // namespace

std::string sbatch_option_rows() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const OptionTable::Row& row : honoured()) {
    const std::string happens =
        row.take != nullptr ? std::string(row.spec.help) : fmt::format("noted: {}", row.instead);
    all.emplace_back(row.spec.name, option_row(row.spec, happens));
  }
  for (const IgnoredOption& one : ignored_sbatch_options())
    all.emplace_back(one.name, option_row({one.name, one.letter, one.takes, "", ""},
                                          fmt::format("noted: {}", one.instead)));
  std::ranges::sort(all);
  std::string text;
  for (const auto& [name, row] : all) text += row;
  return text;
}

std::vector<OptionTable::Row> sbatch_rows() {
  auto rows = honoured();
  for (const IgnoredOption& one : ignored_sbatch_options())
    rows.push_back({{one.name, one.letter, one.takes, "", ""}, nullptr, one.instead});
  return rows;
}

const OptionTable& sbatch_options() {
  static const OptionTable table(sbatch_rows());
  return table;
}

}  // namespace berth::client
