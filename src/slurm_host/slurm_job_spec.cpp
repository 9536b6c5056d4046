#include "slurm_host/slurm_job_spec.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace berth {

namespace {

using slurm::GresCount;

std::int64_t count_of(const std::vector<GresCount>& asked, std::string_view name) {
  std::int64_t count = 0;
  for (const GresCount& one : asked)
    if (one.name == name) count += one.count;
  return count;
}

std::string type_in(const std::vector<GresCount>& asked) {
  for (const GresCount& one : asked)
    if (one.name == "gpu" && !one.type.empty()) return one.type;
  return {};
}

std::int32_t clamped(std::int64_t number) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
}

bool has_shards(const slurm::Job& job) {
  for (const auto* asked : {&job.per_job, &job.per_node, &job.per_task, &job.per_socket})
    if (count_of(*asked, "shard") > 0) return true;
  return false;
}

/// Every node that has devices of this type has exactly so many.
bool takes_whole_nodes(const Cluster& cluster, const GpuRequest& gpus) {
  bool any = false;
  for (const Node& node : cluster.nodes) {
    if (!gpus.type.empty() && cluster.pools[node.pool.value].name != gpus.type) continue;
    if (node.gpus != gpus.per_node) return false;
    any = true;
  }
  return any;
}

/// Types that have a node with so many devices; empty: every type has. Where a type has none, a job
/// that asks for so many on each of its nodes would be spread over more of them.
std::string types_with(const Cluster& cluster, std::int32_t per_node) {
  std::string types;
  bool are_all = true;
  for (std::uint32_t pool = 0; pool < cluster.pools.size(); ++pool) {
    const bool has = std::ranges::any_of(cluster.nodes, [&](const Node& node) {
      return node.pool == PoolId{pool} && node.gpus >= per_node;
    });
    are_all = are_all && has;
    if (has) types += (types.empty() ? "" : "|") + cluster.pools[pool].name;
  }
  return are_all ? std::string{} : types;
}

bool is_everything(const Cluster& cluster, const std::vector<std::string>& partition) {
  return std::ranges::all_of(cluster.nodes, [&](const Node& node) {
    return std::ranges::find(partition, node.name) != partition.end();
  });
}

}  // namespace

std::vector<SlurmName> names_of(const slurm::Job& job) {
  if (job.array == 0 || job.array_tasks.empty()) return {SlurmName{.job = job.key.job}};
  const auto tasks = parse_array(job.array_tasks);
  if (!tasks) return {};
  std::vector<SlurmName> names;
  for (const std::int32_t task : tasks->indices) names.push_back({.job = job.array, .task = task});
  return names;
}

std::int32_t tasks_at_once(const slurm::Job& job) {
  const auto tasks = parse_array(job.array_tasks);
  return tasks ? tasks->at_once : 0;
}

GpuRequest gpus_of(const slurm::Job& job) {
  const std::int32_t nodes = std::max(1, job.min_nodes);
  if (const auto each = count_of(job.per_node, "gpu"); each > 0)
    return {clamped(each * nodes), clamped(each), type_in(job.per_node)};
  if (const auto all = count_of(job.per_job, "gpu"); all > 0)
    return {clamped(all), 0, type_in(job.per_job)};
  if (const auto each = count_of(job.per_task, "gpu"); each > 0)
    return {clamped(each * std::max(1, job.tasks)), 0, type_in(job.per_task)};
  return {};
}

std::string obstacle_of(const slurm::Job& job, const Cluster& cluster,
                        const std::vector<std::string>& partition) {
  const GpuRequest gpus = gpus_of(job);
  if (has_shards(job)) return "it asks for shards of a GPU";
  if (!job.per_socket.empty()) return "it asks for GPUs by socket";
  if (!job.required_nodes.empty()) return "it asks for nodes by name";
  if (!job.excluded_nodes.empty()) return "it excludes nodes by name";
  if (!job.features.empty()) return "it asks for features (--constraint)";
  if (!job.reservation.empty()) return "it asks for a reservation";
  if (!partition.empty() && !is_everything(cluster, partition))
    return fmt::format("partition {} has only some of the nodes", job.partition);
  if (job.exclusive) return "it asks for whole nodes (--exclusive)";
  if (gpus.total == 0 && job.min_nodes > 1) return "it asks for several nodes without GPUs";
  if (gpus.per_node > 0 && job.min_nodes > 1 && !takes_whole_nodes(cluster, gpus))
    return "it asks for a part of the GPUs of each of several nodes";
  return {};
}

JobSpec spec_of(const slurm::Job& job, const FirstSight& seen, const Cluster& cluster) {
  JobSpec spec;
  const GpuRequest gpus = gpus_of(job);
  spec.command = {"slurm", to_text(seen.name)};  // for people; Slurm has the script
  spec.workdir = "/";
  spec.name = job.name.substr(0, kMaxNameBytes);
  spec.user = job.user.empty() ? fmt::format("{}", job.uid) : job.user;
  spec.group = job.account;
  spec.queue = job.partition;
  spec.comment = job.comment;
  spec.qos = job.qos;
  spec.gpus = gpus.total;
  spec.gpu_type = gpus.type.empty() ? types_with(cluster, gpus.per_node) : gpus.type;
  spec.cpus = job.cpus;
  if (spec.gpus == 0) spec.cpus = std::max(1, spec.cpus);
  spec.memory_mib = clamped(job.memory_mib);
  spec.time_limit = job.time_limit;
  spec.requeue = spec.preemptible = job.may_requeue;
  spec.key = key_of(seen);
  return spec;
}

std::string misfit_of(const slurm::Job& job, const std::vector<HeldDevices>& where) {
  const GpuRequest gpus = gpus_of(job);
  if (gpus.total > 0 && gpus.per_node == 0) return {};
  const bool is_alike = std::ranges::all_of(where, [&](const HeldDevices& part) {
    return static_cast<std::int32_t>(part.devices.size()) == gpus.per_node;
  });
  if (is_alike && (gpus.total > 0 || where.size() == 1)) return {};
  return fmt::format("it asks for {} GPUs on each node and was given other numbers", gpus.per_node);
}

}  // namespace berth
