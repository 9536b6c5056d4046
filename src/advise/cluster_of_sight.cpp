#include "advise/cluster_of_sight.h"

#include <algorithm>
#include <map>

#include "advise/room.h"
#include "model/catalogue.h"

namespace berth::advise {

namespace {

/// Where nodes stand, by the switches above them.
struct Places {
  std::map<std::string, std::string> rack_of_node, zone_of_rack;

  explicit Places(const std::vector<slurm::Switch>& switches) {
    for (const slurm::Switch& each : switches) {
      if (each.switches.empty())
        for (const std::string& node : each.nodes) rack_of_node.emplace(node, each.name);
      for (const std::string& below : each.switches)
        if (each.level == 1) zone_of_rack.emplace(below, each.name);
    }
  }
};

template <class Tag>
Id<Tag> named(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  const auto at = static_cast<std::uint32_t>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return Id<Tag>{at};
}

PoolId pool_named(Cluster& cluster, const std::string& type) {
  const auto found = std::ranges::find(cluster.pools, type, &DeviceType::name);
  const auto at = static_cast<std::uint32_t>(found - cluster.pools.begin());
  if (found == cluster.pools.end()) {
    cluster.pools.push_back(find_device(type).value_or(DeviceType{}));
    cluster.pools.back().name = type;  // as Slurm spells it: requests do too
  }
  return PoolId{at};
}

RackId rack_for(Cluster& cluster, const Places& places, const std::string& node) {
  const auto rack = places.rack_of_node.find(node);
  const std::string name = rack == places.rack_of_node.end() ? "r0" : rack->second;
  const std::size_t known = cluster.racks.size();
  const auto id = named<RackTag>(cluster.racks, name);
  if (cluster.racks.size() == known) return id;
  const auto zone = places.zone_of_rack.find(name);
  cluster.rack_zones.push_back(
      zone == places.zone_of_rack.end() ? ZoneId{0} : named<ZoneTag>(cluster.zones, zone->second));
  return id;
}

}  // namespace

std::optional<NodeId> SeenCluster::id_of(const std::string& node) const {
  const auto found = ids.find(node);
  if (found == ids.end()) return std::nullopt;
  return found->second;
}

std::string main_type(const slurm::Node& node) {
  std::map<std::string, std::int64_t> counts;
  for (const slurm::GresCount& gres : node.gres)
    if (gres.name == "gpu") counts[gres.type.empty() ? "gpu" : gres.type] += gres.count;
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() || most->second == 0 ? "none" : most->first;
}

SeenCluster cluster_of(const Sight& sight,
                       const std::function<bool(const slurm::Node&)>& is_wanted) {
  SeenCluster seen;
  Cluster& cluster = seen.cluster;
  cluster.name = "slurm";
  const Places places{sight.topology};
  const bool shares_memory = counts_memory(sight.config);
  for (const slurm::Node& node : sight.all_nodes()) {
    if (!is_wanted(node) || cluster.nodes.size() == static_cast<std::size_t>(kMaxNodes)) continue;
    const std::string type = main_type(node);
    Node made;
    made.name = node.name;
    made.pool = pool_named(cluster, type);
    made.rack = rack_for(cluster, places, node.name);
    made.gpus = std::min(type == "none" ? 0 : gpus_of(node, type == "gpu" ? std::string{} : type),
                         kMaxGpusPerNode);
    made.cpus_milli = std::int64_t{node.cpus} * 1'000;
    made.memory_mib = shares_memory ? node.memory_mib : 0;
    // Devices are numbered along the sockets: an uneven share says nothing.
    if (node.sockets > 1 && made.gpus % node.sockets == 0) made.shape.sockets = node.sockets;
    seen.ids.emplace(node.name, NodeId{static_cast<std::uint32_t>(cluster.nodes.size())});
    seen.nodes.push_back(&node);
    cluster.nodes.push_back(std::move(made));
  }
  if (cluster.racks.empty()) cluster.racks.emplace_back("r0");
  return seen;
}

}  // namespace berth::advise
