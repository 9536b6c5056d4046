#include "client/draft.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/split.h"
#include "client/moment.h"
#include "model/grid.h"

namespace berth::client {

OptionTable::OptionTable(std::vector<Row> rows) : rows_(std::move(rows)) {
  specs_.reserve(rows_.size());
  for (const Row& row : rows_) specs_.push_back(row.spec);
}

std::vector<OptionFault> OptionTable::apply(Draft& draft, const Parsed& parsed) const {
  std::vector<OptionFault> faults = parsed.faults;
  for (const Given& given : parsed.options) {
    const Row& row = rows_[static_cast<std::size_t>(given.option - specs_.data())];
    const std::string name = row.spec.name.empty() ? fmt::format("-{}", row.spec.letter)
                                                   : fmt::format("--{}", row.spec.name);
    if (row.take == nullptr) {
      draft.note(fmt::format("{} is not honoured: {}", name, row.instead));
    } else if (const auto taken = row.take(draft, given.value); !taken) {
      faults.push_back({given.word, fmt::format("{}: {}", name, taken.error().text())});
    }
  }
  std::ranges::stable_sort(faults, {}, &OptionFault::word);
  return faults;
}

Result<std::int64_t> parse_count(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size())
    return fail(fmt::format("'{}' is no whole number", text));
  if (value < low || value > high)
    return fail(fmt::format("{} is not within {} and {}", value, low, high));
  return value;
}

Result<void> take_warning(Draft& draft, std::string_view text) {
  const auto at = text.find('@');
  std::string_view name = text.substr(0, at);
  // B: to the batch shell alone, R: also for reservations, which there are none of; BR: both.
  draft.spec.warn_shell = false;
  if (const auto colon = name.find(':'); colon != std::string_view::npos) {
    const std::string_view marks = name.substr(0, colon);
    if (marks.empty() || marks.find_first_not_of("BR") != std::string_view::npos)
      return fail(fmt::format("'{}:' is neither B: nor R:", marks));
    draft.spec.warn_shell = marks.find('B') != std::string_view::npos;
    name.remove_prefix(colon + 1);
  }
  BERTH_TRY(draft.spec.warn_signal, parse_signal(name));
  draft.spec.warn_seconds = 60;
  if (at != std::string_view::npos) {
    std::string_view seconds = text.substr(at + 1);
    if (seconds.ends_with('s')) seconds.remove_suffix(1);
    BERTH_TRY(draft.spec.warn_seconds, parse_count(seconds, 0, 86'400));
  }
  return {};
}

namespace {

Result<std::int32_t> narrow(std::int64_t value, std::string_view what) {
  if (value > 1'000'000'000)
    return fail(fmt::format("{} {}: more than any cluster has", value, what));
  return static_cast<std::int32_t>(value);
}

Result<void> settle_devices(Draft& draft) {
  JobSpec& spec = draft.spec;
  const std::int64_t tasks = draft.tasks.value_or(draft.nodes * draft.tasks_per_node.value_or(1));
  std::optional<std::int64_t> gpus = draft.gpus;
  if (!gpus && draft.gpus_per_node) gpus = *draft.gpus_per_node * draft.nodes;
  if (!gpus && draft.gpus_per_task) gpus = *draft.gpus_per_task * tasks;
  if (!gpus && draft.tasks_per_gpu && draft.tasks)
    gpus = (tasks + *draft.tasks_per_gpu - 1) / *draft.tasks_per_gpu;
  if (gpus || draft.is_slurm) {  // under Slurm a script without a word of GPUs has none
    BERTH_TRY(spec.gpus, narrow(gpus.value_or(0), "GPUs"));
  }
  std::int64_t cpus = spec.cpus;
  if (draft.cpus_per_gpu)
    cpus = *draft.cpus_per_gpu * spec.gpus;
  else if (draft.cpus_per_task || draft.tasks || draft.tasks_per_node)
    cpus = tasks * draft.cpus_per_task.value_or(1);
  if (spec.gpus == 0 && draft.is_slurm) spec.gpu_type.clear();
  if (spec.gpus == 0) cpus = std::max<std::int64_t>(cpus, draft.is_slurm ? tasks : 1);
  BERTH_TRY(spec.cpus, narrow(cpus, "cores"));

  std::int64_t memory = spec.memory_mib;
  if (draft.memory_mib)
    memory = *draft.memory_mib * draft.nodes;
  else if (draft.memory_per_cpu)
    memory = *draft.memory_per_cpu * std::max(1, spec.cpus);
  else if (draft.memory_per_gpu)
    memory = *draft.memory_per_gpu * spec.gpus;
  BERTH_TRY(spec.memory_mib, narrow(memory, "MiB"));
  return {};
}

/// What Slurm tells a job of its own request, each only if it was asked for. What a program finds
/// here is what the lines of its script say, not what somebody else's said.
void tell_request(Draft& draft) {
  auto& env = draft.spec.env;
  const std::string& workdir = draft.spec.workdir;  // of a job that stays here it is the same
  if (!workdir.empty() && workdir != draft.context.directory)
    env["SLURM_SUBMIT_DIR"] = draft.context.directory;
  if (!draft.is_slurm) return;
  const auto tell = [&](const char* name, const std::optional<std::int64_t>& value) {
    if (value) env[name] = fmt::format("{}", *value);
  };
  const std::int64_t tasks = draft.tasks.value_or(draft.nodes * draft.tasks_per_node.value_or(1));
  if (draft.tasks || draft.tasks_per_node || draft.nodes > 1)
    env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = fmt::format("{}", tasks);
  tell("SLURM_NTASKS_PER_NODE", draft.tasks_per_node);
  tell("SLURM_NTASKS_PER_GPU", draft.tasks_per_gpu);
  tell("SLURM_CPUS_PER_TASK", draft.cpus_per_task);
  tell("SLURM_CPUS_PER_GPU", draft.cpus_per_gpu);
  tell("SLURM_GPUS", draft.gpus);
  tell("SLURM_GPUS_PER_TASK", draft.gpus_per_task);
  tell("SLURM_MEM_PER_CPU", draft.memory_per_cpu);
  tell("SLURM_MEM_PER_GPU", draft.memory_per_gpu);
  if (draft.cpus_per_task) env["SLURM_TRES_PER_TASK"] = fmt::format("cpu={}", *draft.cpus_per_task);
  if (draft.gpus_per_task)
    env["SLURM_TRES_PER_TASK"] +=
        fmt::format("{}gres/gpu={}", draft.cpus_per_task ? "," : "", *draft.gpus_per_task);
  if (draft.gpus_per_task)
    env["SLURM_TRES_BIND"] = fmt::format("gres/gpu:per_task:{}", *draft.gpus_per_task);
  if (draft.exported == "NONE") env["SLURM_EXPORT_ENV"] = "NONE";  // srun heeds it
  for (const auto& [name, value] : draft.asked) env[name] = value;
  if (draft.nodes > 1)
    draft.note(fmt::format("--nodes={}: asked for as {} {} in all; they may lie on fewer nodes",
                           draft.nodes, draft.spec.gpus > 0 ? draft.spec.gpus : draft.spec.cpus,
                           draft.spec.gpus > 0 ? "GPUs" : "cores"));
}

/// Told to a job about itself: a job submitted from inside another must not take them for its own.
bool is_of_a_job(std::string_view name, const SubmitContext& context) {
  constexpr std::array<std::string_view, 6> kOfClients{"BERTH_URL",        "BERTH_SOCKET",
                                                       "BERTH_TOKEN_FILE", "BERTH_CA_FILE",
                                                       "BERTH_PATIENCE",   "BERTH_ALLOW_PLAIN"};
  constexpr std::array<std::string_view, 11> kOfTasks{
      "RANK",       "LOCAL_RANK",           "WORLD_SIZE",          "LOCAL_WORLD_SIZE",
      "GROUP_RANK", "MASTER_ADDR",          "MASTER_PORT",         "SLURMD_NODENAME",
      "TMPDIR",     "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};
  if (name.starts_with("SLURM_"))
    return name != "SLURM_CONF" &&
           (name.starts_with("SLURM_NTASKS") || name == "SLURM_NPROCS" ||
            name.find("_PER_") != std::string_view::npos || name == "SLURM_OVERCOMMIT" ||
            name == "SLURM_GPUS" || name == "SLURM_SUBMIT_DIR" || context.is_in_a_job());
  if (!context.is_in_a_job()) return false;
  if (std::ranges::find(kOfClients, name) != kOfClients.end()) return false;
  return name.starts_with("BERTH_") || std::ranges::find(kOfTasks, name) != kOfTasks.end();
}

/// ALL, NONE, or names; values may be quoted to hold commas.
Result<void> settle_environment(Draft& draft) {
  auto& env = draft.spec.env;
  const auto& own = draft.context.environment;
  const auto add = [&](const std::string& word) -> Result<void> {
    const auto equals = word.find('=');
    if (word.empty() || equals == 0)
      return fail(fmt::format("--export: '{}' is no variable", word));
    if (equals != std::string::npos)
      env[word.substr(0, equals)] = word.substr(equals + 1);
    else if (word == "ALL")
      for (const auto& [name, value] : own) {
        if (!is_of_a_job(name, draft.context)) env.emplace(name, value);
      }
    else if (const auto found = own.find(word); found != own.end())
      env[word] = found->second;
    return {};
  };
  std::string word;
  char quote = 0;
  if (draft.exported != "NONE" && draft.exported != "NIL") {
    for (const char c : draft.exported + ",") {
      if (quote != 0 ? c == quote : (c == '\'' || c == '"')) {
        quote = quote != 0 ? '\0' : c;
      } else if (c == ',' && quote == 0) {
        BERTH_TRY_VOID(add(word));
        word.clear();
      } else {
        word += c;
      }
    }
    if (quote != 0) return fail(fmt::format("--export: a {} is not closed", quote));
  }
  env.erase("BERTH_TOKEN");  // what opens the door stays outside
  for (const auto& [name, value] : draft.extra_env) env[name] = value;
  return {};
}

std::string base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace

Result<void> settle(Draft& draft) {
  JobSpec& spec = draft.spec;
  BERTH_TRY_VOID(settle_devices(draft));
  BERTH_TRY_VOID(settle_environment(draft));
  tell_request(draft);
  if (spec.umask.empty() && draft.context.umask != "0022") spec.umask = draft.context.umask;
  if (spec.submit_host.empty()) spec.submit_host = draft.context.host;
  add_grid_array(spec);
  if (draft.wrap) {
    spec.script = fmt::format("#!/bin/sh\n{}\n", *draft.wrap);
    if (spec.name.empty()) spec.name = "wrap";
  }
  if (spec.name.empty() && !spec.command.empty()) spec.name = base_name(spec.command.front());
  if (spec.name.size() > kMaxNameBytes) spec.name.resize(kMaxNameBytes);
  if (spec.workdir.empty())
    spec.workdir = draft.context.directory;
  else if (spec.workdir.front() != '/')
    spec.workdir = draft.context.directory + "/" + spec.workdir;
  if (spec.output.empty() && draft.is_slurm)
    spec.output = spec.array ? "slurm-%A_%a.out" : "slurm-%j.out";
  return {};
}

}  // namespace berth::client
