#include "advise/node_views.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "advise/cluster_of_sight.h"
#include "advise/room.h"

namespace berth::advise {

namespace {

std::int32_t used_on(const slurm::Node& node) {
  std::int64_t used = 0;
  for (const slurm::GresCount& gres : node.gres_held) used += gres.name == "gpu" ? gres.count : 0;
  return static_cast<std::int32_t>(used);
}

/// Whoever has devices of which Slurm does not tell the indices is on the first ones that nobody is
/// on: then at least their number is right.
void put_on_devices(const slurm::Job& job, const slurm::HeldNode& held, NodeView& view) {
  for (const slurm::GresCount& gres : held.gres) {
    if (gres.name != "gpu" && gres.name != "shard") continue;
    for (const std::int32_t index : gres.indices)
      if (index >= 0 && static_cast<std::size_t>(index) < view.devices.size())
        view.devices[static_cast<std::size_t>(index)].push_back(job.key.job);
    std::int64_t untold =
        gres.name == "gpu" ? gres.count - static_cast<std::int64_t>(gres.indices.size()) : 0;
    for (auto& device : view.devices) {
      if (untold <= 0) break;
      if (!device.empty()) continue;
      device.push_back(job.key.job);
      --untold;
    }
  }
}

bool holds_devices(const slurm::Job& job) {
  return job.phase == slurm::JobPhase::Running || job.phase == slurm::JobPhase::Suspended ||
         job.completing;
}

}  // namespace

std::string state_of(const slurm::Node& node) {
  const auto has = [&](std::string_view word) {
    return node.state.find(word) != std::string::npos;
  };
  if (has("POWERING_UP")) return "booting";
  if (has("POWERED_DOWN") || has("POWERING_DOWN") || has("POWER_DOWN")) return "off";
  if (has("DOWN") || has("FAIL") || has("ERROR") || has("UNKNOWN") || has("NOT_RESPONDING"))
    return "down";
  if (has("DRAIN")) return has("ALLOC") || has("MIX") || has("COMPLETING") ? "draining" : "drained";
  if (has("MAINT") || has("RESERVED")) return "reserved";
  return "up";
}

std::vector<NodeView> node_views(const Sight& sight) {
  std::vector<NodeView> views;
  std::unordered_map<std::string, std::size_t> at;
  for (const slurm::Node& node : sight.all_nodes()) {
    NodeView view;
    view.name = node.name;
    view.state = state_of(node);
    view.reason = node.reason;
    view.type = main_type(node);
    view.gpus = gpus_of(node, {});
    view.cpus = node.cpus;
    view.cpus_used = node.cpus_held;
    view.memory_mib = node.memory_mib;
    view.devices.resize(static_cast<std::size_t>(std::max(0, view.gpus)));
    at.emplace(node.name, views.size());
    views.push_back(std::move(view));
  }
  for (const slurm::Job& job : sight.all_jobs()) {
    if (!holds_devices(job)) continue;
    for (const slurm::HeldNode& held : job.held) {
      const auto found = at.find(held.node);
      if (found != at.end()) put_on_devices(job, held, views[found->second]);
    }
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto busy = static_cast<std::int32_t>(
        std::ranges::count_if(views[i].devices, [](const auto& jobs) { return !jobs.empty(); }));
    // The node knows of jobs that are hidden from us; of shards the jobs know more.
    views[i].gpus_used = std::min(views[i].gpus, std::max(busy, used_on(sight.all_nodes()[i])));
  }
  return views;
}

std::vector<TypeUse> uses_of_types(const Sight& sight) {
  std::map<std::string, TypeUse> by_type;
  for (const NodeView& node : node_views(sight)) {
    if (node.gpus == 0) continue;
    TypeUse& use = by_type[node.type];
    use.type = node.type;
    use.used += node.gpus_used;
    (node.state == "up" ? use.free : use.out) += node.gpus - node.gpus_used;
  }
  std::vector<TypeUse> uses;
  for (auto& [type, use] : by_type) uses.push_back(std::move(use));
  return uses;
}

}  // namespace berth::advise
