#include "daemon/launch.h"

#include <algorithm>
#include <ctime>

#include <unistd.h>

#include "exec/account.h"
#include "exec/environment.h"
#include "exec/user_limits.h"
#include "model/elastic.h"
#include "model/grid.h"
#include "model/output_pattern.h"

namespace berth {

namespace {

/// Nodes of one machine have its devices one after the other.
std::int32_t first_device_of(const Cluster& cluster, const std::string& node) {
  std::int32_t first = 0;
  for (const Node& other : cluster.nodes) {
    if (other.name == node) return first;
    first += other.gpus;
  }
  return first;
}

std::string type_of(const std::vector<HeldDevices>& where, const Cluster& cluster) {
  if (where.empty()) return {};
  const auto node = std::ranges::find(cluster.nodes, where.front().node, &Node::name);
  return node == cluster.nodes.end() ? std::string{} : cluster.pools[node->pool.value].name;
}

std::string node_names(const std::vector<HeldDevices>& where) {
  std::string names;
  for (const HeldDevices& held : where) names += (names.empty() ? "" : ",") + held.node;
  return names;
}

std::string path_for(const JobSpec& spec, const LedgerJob& job, const std::string& pattern) {
  const auto expanded =
      expand_pattern(pattern, {.job = job.number,
                               .array = job.array,
                               .array_index = job.array_index,
                               .name = spec.name,
                               .user = spec.user,
                               .node = job.attempt ? node_names(job.attempt->where) : ""});
  if (!expanded) return {};
  const std::string path = path_of_task(*expanded, 0);
  return path.starts_with('/') ? path : spec.workdir + "/" + path;
}

}  // namespace

HeldDevices on_this_machine(const std::vector<HeldDevices>& where, const Cluster& cluster) {
  HeldDevices all;
  all.node = node_names(where);
  for (const HeldDevices& held : where) {
    const std::int32_t first = first_device_of(cluster, held.node);
    for (const std::int32_t device : held.devices) all.devices.push_back(first + device);
    all.cores.insert(all.cores.end(), held.cores.begin(), held.cores.end());
  }
  return all;
}

std::int32_t tasks_on(const JobSpec& spec, std::int32_t gpus) {
  if (spec.tasks <= 1 || agreed_range(spec).is_fixed()) return spec.tasks;
  return std::max(1, spec.tasks * gpus / std::max(1, spec.gpus));
}

Result<LaunchOrder> launch_order(const LedgerJob& job, const Attempt& attempt,
                                 const Cluster& cluster,
                                 const std::vector<std::pair<std::string, std::string>>& extra_env,
                                 const ContainerOptions& containers) {
  AttemptFacts facts;
  facts.job = job.number;
  facts.array = job.array;
  facts.array_index = job.array_index;
  facts.attempt = attempt.id;
  facts.restarts = std::max(0, job.attempts - 1);
  facts.where = on_this_machine(attempt.where, cluster);
  facts.gpu_type = type_of(attempt.where, cluster);
  facts.time_limit = job.spec->time_limit;
  facts.now = std::time(nullptr);
  BERTH_TRY(facts.account, find_account(job.spec->user));
  facts.cluster = cluster.name;
  facts.master_port = pick_master_port(job.number, is_port_free);
  facts.extra = extra_env;
  JobSpec spec = *job.spec;
  // A gang that has shrunk to one is still a gang: its code looks for its rank.
  spec.ranks = spec.ranks || spec.tasks > 1;
  spec.tasks = tasks_on(spec, attempt.gpus);
  BERTH_TRY(LaunchOrder order, make_order(spec, facts));
  if (!spec.container.empty())
    BERTH_TRY_VOID(put_into_container(order, containers,
                                      {.image = spec.container,
                                       .home = facts.account.home,
                                       .devices = facts.where.devices,
                                       .has_cdi = machine_has_cdi()}));
  // Who serves only themselves has been given their limits already.
  if (::geteuid() == 0) order.files = ordinary_file_limits(facts.account);
  return order;
}

std::vector<std::pair<std::string, std::string>> session_environment(
    const JobSpec& spec, const std::vector<QueueOptions>& queues) {
  const auto queue = std::ranges::find(queues, spec.queue, &QueueOptions::name);
  if (spec.kind != JobKind::Interactive || queue == queues.end() || queue->idle_limit == 0)
    return {};
  return {{"BERTH_IDLE_LIMIT", std::to_string(queue->idle_limit)}};
}

std::pair<std::string, std::string> output_paths(const LedgerJob& job) {
  const JobSpec& asked = *job.spec;
  const GridPoint point = grid_point(asked, job.array_index);
  const JobSpec* filled = &asked;
  JobSpec copy;
  if (!point.empty()) {
    copy.name = asked.name;
    copy.user = asked.user;
    copy.workdir = asked.workdir;
    copy.output = filled_in(asked.output, point);
    copy.error = filled_in(asked.error, point);
    filled = &copy;
  }
  const JobSpec& spec = *filled;
  const std::string unnamed = job.array != 0 ? "berth-%A_%a.out" : "berth-%j.out";
  const std::string output = path_for(spec, job, spec.output.empty() ? unnamed : spec.output);
  return {output, spec.error.empty() ? output : path_for(spec, job, spec.error)};
}

}  // namespace berth
