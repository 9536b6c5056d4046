// Slurm's nodes as a cluster that an engine can plan with: GPU types are pools, leaf switches are
// racks, the switches above them zones. A node with several types of GPU counts those of the most
// frequent one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "advise/sight.h"
#include "model/cluster.h"

namespace berth::advise {

struct SeenCluster {
  Cluster cluster{};
  std::vector<const slurm::Node*> nodes{};  // by NodeId
  std::unordered_map<std::string, NodeId> ids{};

  [[nodiscard]] std::optional<NodeId> id_of(const std::string& node) const;
};
/// Of those nodes that are wanted, in service or not.
[[nodiscard]] SeenCluster cluster_of(const Sight& sight,
                                     const std::function<bool(const slurm::Node&)>& is_wanted);

/// The type of most of its GPUs: "a100"; "gpu" if Slurm tells none, "none" if it has no GPU.
[[nodiscard]] std::string main_type(const slurm::Node& node);

}  // namespace berth::advise
