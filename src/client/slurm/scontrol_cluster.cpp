// scontrol show node, partition, config.
#include <algorithm>
#include <map>

#include <unistd.h>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "client/slurm/facts.h"
#include "client/slurm/format.h"
#include "client/slurm/json.h"
#include "client/slurm/node_columns.h"
#include "client/slurm/scontrol.h"

namespace berth::client::slurm {

namespace {

struct Seen {
  ClusterView cluster;
  std::vector<NodeView> nodes;
  std::map<std::string, std::int64_t> memory;  // that jobs hold
};

Result<Seen> look(Scheduler& scheduler) {
  Seen seen;
  BERTH_TRY(seen.cluster, scheduler.cluster());
  BERTH_TRY(seen.nodes, scheduler.nodes());
  JobQuery running;
  running.states = {LiveState::Starting, LiveState::Running, LiveState::Suspended,
                    LiveState::Stopping};
  BERTH_TRY(const JobRows jobs, scheduler.jobs(running));
  for (const JobRow& job : jobs.jobs)
    for (const HeldDevices& held : job.where)
      seen.memory[held.node] += job.spec->memory_mib / static_cast<std::int64_t>(job.where.size());
  return seen;
}

std::vector<QueueView> queues_of(const ClusterView& cluster) {
  if (!cluster.queues.empty()) return cluster.queues;
  return {{.name = "all"}};  // an older scheduler does not say
}

std::string queue_names(const ClusterView& cluster) {
  std::vector<std::string> names;
  for (const QueueView& queue : queues_of(cluster)) names.push_back(queue.name);
  return fmt::format("{}", fmt::join(names, ","));
}

std::string node_block(const NodeView& node, const Seen& seen, const ControlStyle& style) {
  const auto held = seen.memory.find(node.name);
  const std::int64_t memory = held != seen.memory.end() ? held->second : 0;
  const Resources all{
      .cpus = node.cpus, .memory_mib = node.memory_mib, .gpus = node.gpus, .gpu_type = node.type};
  const Resources used{
      .cpus = node.cpus_used, .memory_mib = memory, .gpus = node.gpus_used, .gpu_type = node.type};
  const std::string feature = node.type.empty() ? "(null)" : node.type;
  std::vector<std::string> lines{
      fmt::format("NodeName={} CoresPerSocket={} ", node.name, node.cpus),
      fmt::format("CPUAlloc={} CPUEfctv={} CPUTot={} CPULoad=N/A", node.cpus_used, node.cpus,
                  node.cpus),
      fmt::format("AvailableFeatures={}", feature), fmt::format("ActiveFeatures={}", feature),
      fmt::format("Gres={}", gres_of(node))};
  if (style.has_details) {
    lines.emplace_back("GresDrain=N/A");
    lines.push_back(fmt::format("GresUsed={}", gres_used(node)));
  }
  lines.push_back(fmt::format("NodeAddr={} NodeHostName={} Version={}", node.name, node.name,
                              seen.cluster.version));
  lines.push_back(fmt::format("RealMemory={} AllocMem={} FreeMem=N/A Sockets=1 Boards=1",
                              node.memory_mib, memory));
  lines.push_back(
      fmt::format("State={} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
                  fmt::join(state_words(node), "+")));
  lines.push_back(fmt::format("Partitions={} ", queue_names(seen.cluster)));
  lines.push_back(
      fmt::format("BootTime=None SlurmdStartTime={}", moment_or(seen.cluster.started, "None")));
  lines.emplace_back("LastBusyTime=Unknown ResumeAfterTime=None");
  lines.push_back(fmt::format("CfgTRES={}", tres(all, TresOrder::Table)));
  lines.push_back(fmt::format("AllocTRES={}", tres(used, TresOrder::Table)));
  lines.emplace_back("CurrentWatts=n/s AveWatts=n/s");
  if (!node.reason.empty()) lines.push_back(fmt::format("Reason={}", harmless(node.reason)));
  return record(lines, style);
}

Json node_json(const NodeView& node, const Seen& seen) {
  const auto held = seen.memory.find(node.name);
  Json partitions = Json::array();
  for (const QueueView& queue : queues_of(seen.cluster)) partitions.push_back(queue.name);
  return {{"name", node.name},
          {"hostname", node.name},
          {"address", node.name},
          {"state", state_words(node)},
          {"reason", node.reason},
          {"cpus", node.cpus},
          {"effective_cpus", node.cpus},
          {"alloc_cpus", node.cpus_used},
          {"alloc_idle_cpus", node.cpus - node.cpus_used},
          {"sockets", 1},
          {"cores", node.cpus},
          {"threads", 1},
          {"real_memory", node.memory_mib},
          {"alloc_memory", held != seen.memory.end() ? held->second : 0},
          {"free_mem", no_number()},
          {"features", node.type.empty() ? Json::array() : Json::array({node.type})},
          {"active_features", node.type.empty() ? Json::array() : Json::array({node.type})},
          {"gres", node.gpus > 0 ? gres_of(node) : ""},
          {"gres_used", gres_used(node)},
          {"partitions", partitions},
          {"version", seen.cluster.version},
          {"weight", 1}};
}

std::string partition_block(const QueueView& queue, bool is_default, const Seen& seen,
                            const ControlStyle& style) {
  Resources all;
  std::vector<std::string> names;
  for (const NodeView& node : seen.nodes) {
    names.push_back(node.name);
    all.cpus += node.cpus;
    all.memory_mib += node.memory_mib;
    all.gpus += node.gpus;
    ++all.nodes;
  }
  const std::string most =
      queue.max_time_limit > 0 ? day_clock(static_cast<double>(queue.max_time_limit)) : "UNLIMITED";
  const std::string usual = queue.default_time_limit > 0
                                ? day_clock(static_cast<double>(queue.default_time_limit))
                                : "NONE";
  return record(
      {fmt::format("PartitionName={}", queue.name),
       "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
       fmt::format("AllocNodes=ALL Default={} QoS=N/A", is_default ? "YES" : "NO"),
       fmt::format("DefaultTime={} DisableRootJobs=NO ExclusiveUser=NO ExclusiveTopo=NO "
                   "GraceTime=0 Hidden=NO",
                   usual),
       fmt::format("MaxNodes=UNLIMITED MaxTime={} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED "
                   "MaxCPUsPerSocket=UNLIMITED",
                   most),
       "NodeSets=ALL", fmt::format("Nodes={}", folded_names(std::move(names))),
       "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
       "OverTimeLimit=NONE PreemptMode=OFF",
       fmt::format("State=UP TotalCPUs={} TotalNodes={} SelectTypeParameters=NONE", all.cpus,
                   all.nodes),
       "JobDefaults=(null)", "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
       fmt::format("TRES={}", tres(all, TresOrder::Table))},
      style);
}

}  // namespace

int show_nodes(const Control& control, const std::string& list) {
  const auto wanted = expanded_hosts(list);
  if (!wanted) return control.console.complain(kFailure, wanted.error());
  const auto seen = look(control.scheduler);
  if (!seen) return control.console.complain(kFailure, seen.error());
  std::vector<const NodeView*> nodes;
  for (const NodeView& node : seen->nodes)
    if (wanted->empty() || std::ranges::find(*wanted, node.name) != wanted->end())
      nodes.push_back(&node);
  if (control.style.is_json) {
    Json rows = Json::array();
    for (const NodeView* node : nodes) rows.push_back(node_json(*node, *seen));
    control.console.put(json_answer("nodes", std::move(rows), "scontrol", seen->cluster));
    return control.console.done();
  }
  std::string text;
  for (const NodeView* node : nodes) text += node_block(*node, *seen, control.style);
  control.console.put(text);
  for (const std::string& name : *wanted)
    if (std::ranges::find(seen->nodes, name, &NodeView::name) == seen->nodes.end()) {
      control.console.put(fmt::format("Node {} not found\n", harmless(name)));
      return kFailure;
    }
  return control.console.done();
}

int show_partitions(const Control& control, const std::string& name) {
  const auto seen = look(control.scheduler);
  if (!seen) return control.console.complain(kFailure, seen.error());
  std::string text;
  const auto queues = queues_of(seen->cluster);
  for (const QueueView& queue : queues)
    if (is_listed(name, queue.name))
      text += partition_block(queue, &queue == &queues.front(), *seen, control.style);
  if (text.empty()) {
    control.console.put(fmt::format("Partition {} not found\n", harmless(name)));
    return kFailure;
  }
  control.console.put(text);
  return control.console.done();
}

int show_config(const Control& control) {
  const auto cluster = control.scheduler.cluster();
  if (!cluster) return control.console.complain(kFailure, cluster.error());
  std::vector<std::pair<std::string, std::string>> rows{
      {"BOOT_TIME", moment_or(cluster->started, "Unknown")},
      {"ClusterName", cluster->name},
      {"DefaultPartition", queues_of(*cluster).front().name},
      {"MaxArraySize", fmt::to_string(kMaxArraySize)},
      {"MinJobAge", "300 sec"},
      {"Partitions", queue_names(*cluster)},
      {"PriorityType", "berth/" + cluster->policy}};
  for (const auto& [key, value] : cluster->settings)
    rows.emplace_back("PolicySetting." + key, value);
  rows.emplace_back("SchedulerType", "berth/" + cluster->policy);
  rows.emplace_back("SelectType", "berth");
  rows.emplace_back("SLURM_VERSION", "berth " + cluster->version);
  rows.emplace_back("SlurmctldHost[0]", control.scheduler.endpoint().text());
  std::string text =
      fmt::format("Configuration data as of {}\n", moment_or(unix_now() * 1'000'000, "Unknown"));
  for (const auto& [key, value] : rows)
    text += fmt::format("{:<23} = {}\n", harmless(key), harmless(value));
  text += fmt::format("\nSlurmctld(primary) at {} is UP\n", control.scheduler.endpoint().text());
  control.console.put(text);
  return control.console.done();
}

}  // namespace berth::client::slurm
