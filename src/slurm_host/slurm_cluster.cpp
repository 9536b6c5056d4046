#include "slurm_host/slurm_cluster.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace berth {

namespace {

/// A node of several types counts as one of its first: a gang never mixes types, and which of them
/// it gets Slurm would choose.
struct Gpus {
  std::string type;
  std::int64_t count = 0;
};
Gpus gpus_on(const slurm::Node& node) {
  Gpus gpus;
  for (const slurm::GresCount& gres : node.gres) {
    if (gres.name != "gpu" || gres.count <= 0) continue;
    const std::string type = gres.type.empty() ? "gpu" : gres.type;
    if (gpus.count > 0 && gpus.type != type) continue;
    gpus.type = type;
    gpus.count += gres.count;
  }
  return gpus;
}

PoolId pool_of(Cluster& cluster, const std::string& type) {
  const auto found = std::ranges::find(cluster.pools, type, &DeviceType::name);
  if (found != cluster.pools.end())
    return PoolId{static_cast<std::uint32_t>(found - cluster.pools.begin())};
  DeviceType device = find_device(type).value_or(DeviceType{});
  device.name = type;
  cluster.pools.push_back(std::move(device));
  return PoolId{static_cast<std::uint32_t>(cluster.pools.size() - 1)};
}

/// By node: the lowest switch above it.
std::map<std::string, std::string> racks_of(const std::vector<slurm::Switch>& switches) {
  std::map<std::string, std::pair<std::int32_t, std::string>> lowest;
  for (const slurm::Switch& one : switches) {
    for (const std::string& node : one.nodes) {
      const auto [entry, is_new] = lowest.try_emplace(node, one.level, one.name);
      if (!is_new && one.level < entry->second.first) entry->second = {one.level, one.name};
    }
  }
  std::map<std::string, std::string> racks;
  for (const auto& [node, rack] : lowest) racks[node] = rack.second;
  return racks;
}

}  // namespace

Result<Cluster> cluster_from(const std::vector<slurm::Node>& nodes,
                             const std::vector<slurm::Switch>& switches, std::string name) {
  Cluster cluster;
  cluster.name = std::move(name);
  const auto racks = racks_of(switches);
  for (const slurm::Node& node : nodes) {
    const Gpus gpus = gpus_on(node);
    if (gpus.count == 0) continue;
    if (gpus.count > kMaxGpusPerNode)
      return fail(fmt::format("node {} has {} GPUs, at most {} are supported", node.name,
                              gpus.count, kMaxGpusPerNode));
    const auto rack = racks.find(node.name);
    const std::string& rack_name = rack == racks.end() ? "r0" : rack->second;
    auto known = std::ranges::find(cluster.racks, rack_name);
    if (known == cluster.racks.end()) known = cluster.racks.insert(known, rack_name);
    Node& own = cluster.nodes.emplace_back();
    own.name = node.name;
    own.pool = pool_of(cluster, gpus.type);
    own.rack = RackId{static_cast<std::uint32_t>(known - cluster.racks.begin())};
    own.gpus = static_cast<std::int32_t>(gpus.count);
    own.cpus_milli = std::int64_t{node.cpus} * 1000;
    own.memory_mib = node.memory_mib;
    own.shape.sockets = std::max(1, node.sockets);
    own.stays_on = true;
  }
  if (cluster.nodes.empty()) return fail("Slurm has no node with GPUs (gres/gpu)");
  return cluster;
}

}  // namespace berth
