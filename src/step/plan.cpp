#include "step/plan.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/split.h"

namespace berth {

namespace {

constexpr std::int32_t kMostTasks = 4'096;

std::optional<std::int32_t> count_of(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

std::string value_in(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string{} : found->second;
}

std::int32_t count_in(const Environment& environment, const char* name, std::int32_t otherwise) {
  return count_of(value_in(environment, name)).value_or(otherwise);
}

std::vector<std::int32_t> some_of(const std::vector<std::int32_t>& all, std::size_t first,
                                  std::size_t count) {
  first = std::min(first, all.size());
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(std::min(count, all.size() - first))};
}

std::vector<std::int32_t> devices_of(const StepRequest& request, const StepView& step,
                                     std::size_t rank) {
  const auto count = static_cast<std::size_t>(std::max(1, request.binding_count));
  switch (request.binding) {
    case GpuBinding::All: return step.devices;
    case GpuBinding::PerTask: return some_of(step.devices, rank * count, count);
    case GpuBinding::Single:
      if (step.devices.empty()) return {};
      return {step.devices[rank / count % step.devices.size()]};
    case GpuBinding::Map: {
      if (request.binding_map.empty()) return step.devices;
      const auto place =
          static_cast<std::size_t>(request.binding_map[rank % request.binding_map.size()]);
      return place < step.devices.size() ? std::vector{step.devices[place]}
                                         : std::vector<std::int32_t>{};
    }
  }
  return step.devices;
}

/// What stays of a job's environment whatever --export says: without it nothing could be started.
bool is_always_kept(std::string_view name) {
  return name.starts_with("SLURM_") || name.starts_with("BERTH_") || name == "PATH" ||
         name == "HOME" || name == "USER" || name == "LOGNAME" || name == "SHELL" ||
         name == "CUDA_DEVICE_ORDER" || name == "TMPDIR";
}

/// ALL, NONE, or names and NAME=VALUE.
Environment exported_part(const std::string& exported, const Environment& whole) {
  Environment part;
  for (const auto& [name, value] : whole)
    if (is_always_kept(name)) part[name] = value;
  if (exported == "NONE" || exported == "NIL") return part;
  for (const std::string_view word : split(exported, ',')) {
    const auto equals = word.find('=');
    if (word == "ALL") {
      part.insert(whole.begin(), whole.end());
    } else if (equals != std::string_view::npos) {
      part[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
    } else if (const auto found = whole.find(std::string(word)); found != whole.end()) {
      part[found->first] = found->second;
    }
  }
  return part;
}

void say_step(Environment& env, const StepRequest& request, const StepView& step,
              const JobWorld& world) {
  const std::string tasks = fmt::to_string(step.tasks);
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS",
                           "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"})
    env[name] = tasks;
  env["SLURM_STEP_ID"] = env["SLURM_STEPID"] = step.id;
  env["SLURM_STEP_NUM_NODES"] = env["SLURM_NNODES"] = "1";
  env["SLURM_STEP_NODELIST"] = world.node;
  env["SLURM_GPUS_ON_NODE"] = fmt::to_string(step.devices.size());
  if (!world.grant.devices.empty())
    env["SLURM_JOB_GPUS"] = fmt::format("{}", fmt::join(world.grant.devices, ","));
  env["SLURM_STEP_GPUS"] = fmt::format("{}", fmt::join(step.devices, ","));
  env["SLURM_LAUNCH_NODE_IPADDR"] = env["SLURM_SRUN_COMM_HOST"] = "127.0.0.1";
  env["SLURM_NODEID"] = "0";
  if (request.cpus_per_task) env["SLURM_CPUS_PER_TASK"] = fmt::to_string(*request.cpus_per_task);
  std::string ranks;
  for (std::int32_t rank = 0; rank < step.tasks; ++rank)
    ranks += fmt::format("{}{}", rank > 0 ? "," : "", rank);
  env["SLURM_GTIDS"] = ranks;
}

void say_task(Environment& env, std::size_t rank, const std::vector<std::int32_t>& devices) {
  env["SLURM_PROCID"] = env["SLURM_LOCALID"] = env["BERTH_TASK"] = fmt::to_string(rank);
  const std::string list = fmt::format("{}", fmt::join(devices, ","));
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "BERTH_DEVICES"})
    env[name] = list;
  env["BERTH_GPUS"] = fmt::to_string(devices.size());
}

/// Words of a line, with quotes as in a shell.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool is_open = false;
  char quote = 0;
  for (const char c : line) {
    if (quote == 0 && (c == ' ' || c == '\t')) {
      if (is_open) words.push_back(std::exchange(word, {}));
      is_open = false;
    } else if (quote != 0 ? c == quote : (c == '"' || c == '\'')) {
      quote = quote != 0 ? '\0' : c;
      is_open = true;
    } else {
      word += c;
      is_open = true;
    }
  }
  if (is_open) words.push_back(std::move(word));
  return words;
}

Result<std::vector<std::int32_t>> ranks_of(std::string_view text, std::int32_t tasks) {
  std::vector<std::int32_t> ranks;
  for (const std::string_view part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = part == "*" ? 0 : count_of(part.substr(0, dash));
    const auto last = part == "*"                      ? tasks - 1
                      : dash == std::string_view::npos ? first
                                                       : count_of(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMostTasks)
      return fail(fmt::format("'{}' is no list of ranks (as in 0-2,5 or *)", text));
    for (std::int32_t rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

std::string replaced(std::string word, std::string_view what, const std::string& by) {
  for (auto at = word.find(what); at != std::string::npos; at = word.find(what, at + by.size()))
    word.replace(at, what.size(), by);
  return word;
}

}  // namespace

Result<JobWorld> world_of(const Environment& environment) {
  JobWorld world;
  world.job = value_in(environment, "SLURM_JOB_ID");
  world.steps = value_in(environment, kStepsVariable);
  if (world.job.empty() || world.steps.empty()) return fail("this is not a job of Berth");
  world.node = value_in(environment, "SLURMD_NODENAME");
  world.job_name = value_in(environment, "SLURM_JOB_NAME");
  world.tasks = std::clamp(count_in(environment, "SLURM_NTASKS", 1), 1, kMostTasks);
  world.shim = count_in(environment, "BERTH_SHIM", 0);
  return world;
}

StepWish wish_of(const StepRequest& request) {
  StepWish wish;
  wish.name = request.name;
  wish.tasks = request.tasks;
  wish.overlaps = request.overlaps;
  wish.overcommits = request.overcommits;
  wish.gpu_types = request.gpu_types;
  wish.nodes = request.nodes;
  wish.gpus = request.gpus;
  if (request.gpus_per_task) wish.gpus = *request.gpus_per_task * request.tasks;
  if (request.is_exact || request.cpus_per_task)
    wish.cpus = request.tasks * request.cpus_per_task.value_or(1);
  return wish;
}

std::vector<TaskPlan> plan_tasks(const StepRequest& request, const StepView& step,
                                 const JobWorld& world, const Environment& environment) {
  Environment common = exported_part(request.exported, environment);
  say_step(common, request, step, world);
  std::vector<TaskPlan> tasks;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(step.tasks); ++rank) {
    TaskPlan task;
    task.program = request.programs[std::min(rank, request.programs.size() - 1)];
    task.environment = common;
    say_task(task.environment, rank, devices_of(request, step, rank));
    task.cores = step.cores;
    if (request.cpus_per_task && !step.cores.empty()) {
      const auto each = static_cast<std::size_t>(*request.cpus_per_task);
      task.cores = some_of(step.cores, rank * each, each);
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Result<std::vector<std::vector<std::string>>> parse_multi_prog(std::string_view text,
                                                               std::int32_t tasks) {
  std::vector<std::vector<std::string>> programs(static_cast<std::size_t>(tasks));
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const auto words = words_of(line);
    if (words.empty() || words.front().starts_with('#')) continue;
    if (words.size() < 2) return fail(fmt::format("line {}: ranks without a program", number));
    auto ranks = ranks_of(words.front(), tasks);
    if (!ranks) return fail(fmt::format("line {}: {}", number, ranks.error().text()));
    std::int32_t offset = 0;
    for (const std::int32_t rank : *ranks) {
      if (rank >= tasks) continue;  // for runs with more tasks
      auto& program = programs[static_cast<std::size_t>(rank)];
      if (!program.empty()) return fail(fmt::format("line {}: rank {} twice", number, rank));
      for (std::size_t i = 1; i < words.size(); ++i)
        program.push_back(
            replaced(replaced(words[i], "%t", fmt::to_string(rank)), "%o", fmt::to_string(offset)));
      ++offset;
    }
  }
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    if (programs[rank].empty()) return fail(fmt::format("rank {} has no program", rank));
  return programs;
}

}  // namespace berth
