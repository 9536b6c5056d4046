#include "exec/environment.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/split.h"
#include "exec/run_dir.h"
#include "model/grid.h"
#include "model/output_pattern.h"
#include "step/grant.h"

namespace berth {

namespace {

using Variables = std::map<std::string, std::string>;

/// Frameworks take RANK and MASTER_ADDR as a sign that somebody has started a process per device.
bool has_ranks(const JobSpec& spec) { return spec.tasks > 1 || spec.ranks; }

void suggest(Variables& env, const JobSpec& spec, const AttemptFacts& facts) {
  const auto put = [&](const char* name, std::string value) {
    env.try_emplace(name, std::move(value));
  };
  put("PATH", "/usr/local/bin:/usr/bin:/bin");
  put("HOME", facts.account.home);
  put("USER", facts.account.name);
  put("LOGNAME", facts.account.name);
  put("SHELL", facts.account.shell);
  if (has_ranks(spec)) {
    put("MASTER_ADDR", "127.0.0.1");
    if (facts.master_port != 0) put("MASTER_PORT", fmt::to_string(facts.master_port));
  }
  // Tasks that share cores would each start a thread per core. A single one sees its own cores and
  // needs no advice.
  const auto cores = static_cast<std::int32_t>(facts.where.cores.size());
  if (spec.tasks > 1 && cores > 0)
    put("OMP_NUM_THREADS", fmt::to_string(std::max(1, cores / spec.tasks)));
}

void say_devices(Variables& env, const AttemptFacts& facts) {
  // Without devices the list is empty rather than missing: missing would mean all of them.
  const std::string list = fmt::format("{}", fmt::join(facts.where.devices, ","));
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "BERTH_DEVICES"})
    env[name] = list;
  env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";  // numbers as the driver's tools show them
  env["BERTH_GPUS"] = fmt::to_string(facts.where.devices.size());
  if (facts.where.devices.empty()) return;
  env["SLURM_JOB_GPUS"] = list;
  const std::string count = fmt::to_string(facts.where.devices.size());
  env["SLURM_GPUS_ON_NODE"] = count;
  // Only who asked by --gpus has it. An elastic job is told what it holds now.
  if (const auto asked = env.find("SLURM_GPUS"); asked != env.end()) asked->second = count;
}

/// How many tasks it has by its own word: ours, or those of its #SBATCH lines, which `srun` starts.
std::string tasks_text(const Variables& env, const JobSpec& spec) {
  const auto asked = env.find("SLURM_NTASKS");
  return !has_ranks(spec) && asked != env.end() ? asked->second : fmt::to_string(spec.tasks);
}

void say_tasks(Variables& env, const JobSpec& spec) {
  env["BERTH_TASKS"] = fmt::to_string(spec.tasks);
  env["SLURM_TASKS_PER_NODE"] = tasks_text(env, spec);
  env["SLURM_NODEID"] = "0";
  if (!has_ranks(spec)) return;
  for (const char* name :
       {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"})
    env[name] = fmt::to_string(spec.tasks);
  env["GROUP_RANK"] = "0";
}

void say_times(Variables& env, const AttemptFacts& facts) {
  constexpr std::int64_t kYear = std::int64_t{365} * 86'400;  // Slurm's end of a job without limit
  if (facts.time_limit > 0) env["BERTH_TIME_LIMIT"] = fmt::to_string(facts.time_limit);
  if (facts.now == 0) return;
  env["SLURM_JOB_START_TIME"] = fmt::to_string(facts.now);
  env["SLURM_JOB_END_TIME"] =
      fmt::to_string(facts.now + (facts.time_limit > 0 ? facts.time_limit : kYear));
}

void say_place(Variables& env, const AttemptFacts& facts) {
  for (const char* name : {"BERTH_NODE", "SLURMD_NODENAME", "SLURM_JOB_NODELIST", "SLURM_NODELIST",
                           "SLURM_TOPOLOGY_ADDR"})
    env[name] = facts.where.node;
  env["SLURM_TOPOLOGY_ADDR_PATTERN"] = "node";
  env["SLURM_JOB_NUM_NODES"] = env["SLURM_NNODES"] = "1";
}

void say_job(Variables& env, const JobSpec& spec, const AttemptFacts& facts) {
  for (const char* name : {"BERTH_JOB_ID", "SLURM_JOB_ID", "SLURM_JOBID"})
    env[name] = fmt::to_string(facts.job);
  const std::string shown = shown_name(spec, facts.array_index);
  for (const char* name : {"BERTH_JOB_NAME", "SLURM_JOB_NAME"}) env[name] = shown;
  env["BERTH_RESTARTS"] = fmt::to_string(facts.restarts);
  // Scripts ask whether it is there at all.
  if (facts.restarts > 0) env["SLURM_RESTART_COUNT"] = env["BERTH_RESTARTS"];
  env["BERTH_ATTEMPT"] = fmt::format("{}.{}", facts.attempt.generation, facts.attempt.counter);
  env["SLURM_CLUSTER_NAME"] = facts.cluster;
  env["SLURM_JOB_USER"] = facts.account.name;
  env["SLURM_JOB_UID"] = fmt::to_string(facts.account.uid);
  env["SLURM_JOB_GID"] = fmt::to_string(facts.account.gid);
  env["SLURM_PRIO_PROCESS"] = env["SLURM_OOM_KILL_STEP"] = "0";
  env.try_emplace("SLURM_SUBMIT_DIR", spec.workdir);
  if (!spec.submit_host.empty()) env["SLURM_SUBMIT_HOST"] = spec.submit_host;
  if (!spec.queue.empty()) env["SLURM_JOB_PARTITION"] = env["BERTH_QUEUE"] = spec.queue;
  if (!spec.group.empty()) env["BERTH_GROUP"] = spec.group;
  env["SLURM_JOB_ACCOUNT"] = spec.group.empty() ? facts.account.name : spec.group;
  env["SLURM_JOB_QOS"] = spec.qos.empty() ? "normal" : spec.qos;
  const bool by_part = env.contains("SLURM_MEM_PER_CPU") || env.contains("SLURM_MEM_PER_GPU");
  if (spec.memory_mib > 0 && !by_part) env["SLURM_MEM_PER_NODE"] = fmt::to_string(spec.memory_mib);
}

/// 0: nobody counts them.
std::int32_t cores_of(const JobSpec& spec, const AttemptFacts& facts) {
  const auto bound = static_cast<std::int32_t>(facts.where.cores.size());
  return bound > 0 ? bound : spec.cpus;
}

void say_cores(Variables& env, const JobSpec& spec, const AttemptFacts& facts) {
  const std::int32_t cores = cores_of(spec, facts);
  // Who names no cores is told what Slurm would give: one for each task. Programs size their pools
  // of workers by it and end if it is missing.
  const std::string told = cores > 0 ? fmt::to_string(cores) : tasks_text(env, spec);
  env["SLURM_CPUS_ON_NODE"] = env["SLURM_JOB_CPUS_PER_NODE"] = told;
  if (cores == 0) return;
  env["BERTH_CPUS"] = told;
  if (has_ranks(spec))
    env["SLURM_CPUS_PER_TASK"] = fmt::to_string(std::max(1, cores / std::max(1, spec.tasks)));
}

JobGrant grant_of(const JobSpec& spec, const AttemptFacts& facts) {
  JobGrant grant;
  grant.devices = facts.where.devices;
  grant.gpu_type = facts.where.devices.empty() ? std::string{} : facts.gpu_type;
  grant.cpus = cores_of(spec, facts);
  // Who asks for cores by GPU, and for more tasks than that makes, has one for each.
  if (spec.cpus > 0)
    grant.most_tasks =
        std::max<std::int32_t>(spec.cpus, std::atoi(tasks_text(spec.env, spec).c_str()));
  for (const std::string_view node : split(facts.where.node, ','))
    if (!node.empty()) grant.nodes.emplace_back(node);
  return grant;
}

void say_grid(Variables& env, const GridPoint& point) {
  for (const auto& [name, value] : point) env[grid_variable(name)] = value;
}

void say_array(Variables& env, const JobSpec& spec, const AttemptFacts& facts) {
  if (facts.array == 0) return;
  for (const char* name : {"BERTH_ARRAY_JOB_ID", "SLURM_ARRAY_JOB_ID"})
    env[name] = fmt::to_string(facts.array);
  for (const char* name : {"BERTH_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"})
    env[name] = fmt::to_string(facts.array_index);
  if (!spec.array || spec.array->indices.empty()) return;
  const auto& indices = spec.array->indices;
  env["SLURM_ARRAY_TASK_COUNT"] = fmt::to_string(indices.size());
  env["SLURM_ARRAY_TASK_MIN"] = fmt::to_string(indices.front());
  env["SLURM_ARRAY_TASK_MAX"] = fmt::to_string(indices.back());
  env["SLURM_ARRAY_TASK_STEP"] = fmt::to_string(indices.size() > 1 ? indices[1] - indices[0] : 1);
}

Result<void> check_variables(const Variables& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
      return fail(fmt::format("'{}' is no name for a variable", name));
    if (value.find('\0') != std::string::npos)
      return fail(fmt::format("variable {} holds a zero byte", name));
  }
  return {};
}

/// Absolute, so that people can be told where the file is.
Result<std::string> file_for(const std::string& pattern, const JobSpec& spec,
                             const AttemptFacts& facts) {
  if (pattern.empty()) return std::string{};
  const PatternContext context{.job = facts.job,
                               .array = facts.array,
                               .array_index = facts.array_index,
                               .name = spec.name,
                               .user = facts.account.name,
                               .node = facts.where.node};
  BERTH_TRY(auto path, expand_pattern(pattern, context));
  if (path.find('\0') != std::string::npos) return fail("a file name holds a zero byte");
  if (path.starts_with('/')) return path;
  std::string folder;
  for (const char c : spec.workdir) folder += c == '%' ? std::string("%%") : std::string(1, c);
  return fmt::format("{}/{}", folder, path);
}

/// As one job of its grid.
JobSpec at_point(JobSpec spec, const GridPoint& point) {
  if (point.empty()) return spec;
  for (std::string& word : spec.command) word = filled_in(word, point);
  for (auto& [name, value] : spec.env) value = filled_in(value, point);
  for (std::string* path : {&spec.input, &spec.output, &spec.error})
    *path = filled_in(*path, point);
  return spec;
}

}  // namespace

Result<LaunchOrder> make_order(const JobSpec& asked, const AttemptFacts& facts) {
  const GridPoint point = facts.array != 0 ? grid_point(asked, facts.array_index) : GridPoint{};
  const JobSpec spec = at_point(asked, point);
  LaunchOrder order;
  order.job = facts.job;
  order.attempt = facts.attempt;
  order.script = spec.script;
  order.command = spec.command;
  order.workdir = spec.workdir;
  const std::string unnamed = facts.array != 0 ? "berth-%A_%a.out" : "berth-%j.out";
  BERTH_TRY(order.input, file_for(spec.input, spec, facts));
  BERTH_TRY(order.output, file_for(spec.output.empty() ? unnamed : spec.output, spec, facts));
  BERTH_TRY(order.error, file_for(spec.error, spec, facts));
  // What earlier attempts of the job have said is not thrown away with them.
  order.append_output = spec.open_mode == OpenMode::Append || facts.restarts > 0;
  order.tasks = spec.tasks;
  order.ranks = has_ranks(spec);
  if (!spec.umask.empty())
    order.umask = static_cast<std::uint32_t>(std::strtoul(spec.umask.c_str(), nullptr, 8)) & 0777U;
  order.uid = facts.account.uid;
  order.gid = facts.account.gid;
  order.groups = facts.account.groups;
  order.cores = facts.where.cores;
  order.grant = grant_text(grant_of(spec, facts));
  order.memory_mib = spec.memory_mib;
  order.time_limit = facts.time_limit;
  order.warn_seconds = spec.warn_seconds;
  order.warn_signal = spec.warn_signal;
  order.warn_shell = spec.warn_shell;
  order.grace_seconds = spec.grace_seconds;

  Variables env = spec.env;
  suggest(env, spec, facts);
  say_devices(env, facts);
  say_job(env, spec, facts);
  say_place(env, facts);
  say_tasks(env, spec);
  say_times(env, facts);
  say_cores(env, spec, facts);
  say_array(env, spec, facts);
  say_grid(env, point);
  for (const auto& [name, value] : facts.extra) env[name] = value;
  BERTH_TRY_VOID(check_variables(env));
  order.env.assign(env.begin(), env.end());
  return order;
}

std::uint16_t pick_master_port(JobNumber job, const std::function<bool(std::uint16_t)>& is_free) {
  const auto port = [&](JobNumber step) {
    return static_cast<std::uint16_t>(kFirstMasterPort + (job + step) % kMasterPorts);
  };
  for (JobNumber step = 0; step < 100; ++step)
    if (is_free(port(step))) return port(step);
  return port(0);
}

bool is_port_free(std::uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;  // ends of old connections do not count, as for the job that will listen
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace berth
