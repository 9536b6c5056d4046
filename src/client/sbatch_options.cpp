// sbatch's options and what becomes of each. Slurm speaks of nodes, tasks and cores per task; a
// JobSpec of devices, cores and memory in all: see settle().
#include <algorithm>

#include <fmt/format.h>

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

/// "2", "a100:2": how many, and of which type.
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Result<std::int64_t> typed_count(Draft& draft, Text text) {
  if (const auto colon = text.rfind(':'); colon != Text::npos) {
    draft.spec.gpu_type = std::string(text.substr(0, colon));
    text = text.substr(colon + 1);
  }
  return parse_count(text, 0, kMany);
}

Result<void> take_gres(Draft& draft, Text value) {
  if (value == "none" || value == "NONE") {
    draft.gpus_per_node = 0;
    return {};
  }
  for (const Text part : split(value, ',')) {
    std::string plain(part);  // gpu, gpu:2, gpu:a100, gpu:a100:2, and the same with '='
    std::ranges::replace(plain, '=', ':');
    Text rest = plain;
    if (rest.starts_with("gres:") || rest.starts_with("gres/")) rest.remove_prefix(5);
    const auto pieces = split(rest, ':');
    if (pieces.front() != "gpu") {
      draft.note(fmt::format("--gres={}: only gpu is known here", part));
      continue;
    }
    draft.gpus_per_node = 1;
    // A type begins with a letter: "gpu:-2" is a wrong number, not a strange type.
    if (pieces.size() == 2 && !pieces[1].empty() && is_letter(pieces[1].front()))
      draft.spec.gpu_type = std::string(pieces[1]);
    else if (pieces.size() > 1) {
      BERTH_TRY(draft.gpus_per_node, typed_count(draft, rest.substr(4)));
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

Result<void> take_nodelist(Draft& draft, Text value) {
  draft.spec.nodes.clear();
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
    draft.spec.nodes.insert(draft.spec.nodes.end(), names->begin(), names->end());
    pattern.clear();
  }
  if (depth != 0) return fail(fmt::format("'{}': a bracket is not closed", value));
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
  if (mib == 0) draft.note("--mem=0: all memory of a node is not reserved; nothing is set aside");
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
      {{"comment", 0, Value, "TEXT", "any text"}, text<&JobSpec::comment>},
      {{"cpus-per-gpu", 0, Value, "N", "cores for each GPU"}, count<&Draft::cpus_per_gpu>},
      {{"cpus-per-task", 'c', Value, "N", "cores for each task"}, count<&Draft::cpus_per_task>},
      {{"deadline", 0, Value, "TIME", "should be over by then"},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.deadline, parse_moment(v, d.context.now));
         return {};
       }},
      {{"dependency", 'd', Value, "LIST", "as in afterok:12:13"}, take_dependency},
      {{"error", 'e', Value, "FILE", "standard error"}, pattern<&JobSpec::error>},
      {{"exclusive", 0, Maybe, "MODE", "no other job on its nodes"},
       set<&JobSpec::exclusive, true>},
      {{"export", 0, Value, "LIST", "ALL, NONE, or variables"},
       [](Draft& d, Text v) -> Result<void> {
         d.exported = std::string(v);
         return {};
       }},
      {{"gpus", 'G', Value, "[TYPE:]N", "GPUs in all; MIN-MAX is elastic"}, take_gpus},
      {{"gpus-per-node", 0, Value, "[TYPE:]N", "GPUs on each node"},
       gpu_count<&Draft::gpus_per_node>},
      {{"gpus-per-task", 0, Value, "[TYPE:]N", "GPUs for each task"},
       gpu_count<&Draft::gpus_per_task>},
      {{"gres", 0, Value, "gpu[:TYPE]:N", "GPUs on each node"}, take_gres},
      {{"hold", 'H', Nothing, "", "waits until released"}, set<&JobSpec::hold, true>},
      {{"input", 'i', Value, "FILE", "standard input"}, text<&JobSpec::input>},
      {{"job-name", 'J', Value, "NAME", "what people call it"}, text<&JobSpec::name>},
      {{"mem", 0, Value, "SIZE", "memory of each node"}, take_memory},
      {{"mem-per-cpu", 0, Value, "SIZE", "memory for each core"},
       memory_each<&Draft::memory_per_cpu>},
      {{"mem-per-gpu", 0, Value, "SIZE", "memory for each GPU"},
       memory_each<&Draft::memory_per_gpu>},
      {{"nice", 0, Maybe, "N", "so much less urgent"}, take_nice},
      {{"no-requeue", 0, Nothing, "", "never run again"}, set<&JobSpec::requeue, false>},
      {{"nodelist", 'w', Value, "LIST", "only these nodes"}, take_nodelist},
      {{"nodes", 'N', Value, "N[-M]", "how many nodes"}, take_nodes},
      {{"ntasks", 'n', Value, "N", "how many tasks"}, count<&Draft::tasks>},
      {{"ntasks-per-gpu", 0, Value, "N", "tasks on each GPU"}, count<&Draft::tasks_per_gpu>},
      {{"ntasks-per-node", 0, Value, "N", "tasks on each node"}, count<&Draft::tasks_per_node>},
      {{"open-mode", 0, Value, "MODE", "append or truncate"}, take_open_mode},
      {{"output", 'o', Value, "FILE", "standard output"}, pattern<&JobSpec::output>},
      {{"parsable", 0, Nothing, "", "print the number alone"}, raise<&Draft::parsable>},
      {{"partition", 'p', Value, "NAME", "queue"}, take_partition},
      {{"priority", 0, Value, "N", "larger is more urgent"}, take_priority},
      {{"quiet", 'Q', Nothing, "", "print nothing"}, raise<&Draft::quiet>},
      {{"requeue", 0, Nothing, "", "run again after a lost node"}, set<&JobSpec::requeue, true>},
      {{"signal", 0, Value, "[B:]SIG[@SECONDS]", "warning before the limit"}, take_warning},
      {{"test-only", 0, Nothing, "", "check, do not submit"}, raise<&Draft::dry_run>},
      {{"time", 't', Value, "LIMIT", "minutes, h:m:s, d-h, or UNLIMITED"},
       [](Draft& d, Text v) -> Result<void> {
         BERTH_TRY(d.spec.time_limit, parse_job_limit(v));
         return {};
       }},
      {{"time-min", 0, Value, "LIMIT", "the least it can do with"},
       nullptr,
       "a limit is not shortened to start sooner; set --time"},
      {{"wait", 'W', Nothing, "", "until it is over"}, raise<&Draft::wait>},
      {{"workdir", 0, Value, "DIR", "where it runs"}, text<&JobSpec::workdir>},
      {{"wrap", 0, Value, "COMMAND", "a shell command instead of a script"},
       [](Draft& d, Text v) -> Result<void> {
         d.wrap = std::string(v);
         return {};
       }},
  };
}

}  // namespace

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
