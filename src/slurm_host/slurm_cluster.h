// The cluster that policies decide on, from what Slurm says of its nodes and switches. Nodes
// without GPUs are left out: policies place by devices.
#pragma once

#include <string>
#include <vector>

#include "model/cluster.h"
#include "slurm/facts.h"

namespace berth {

/// Racks are the lowest switches or blocks. An error: there is no node with a GPU, or one has more
/// than a node can have.
[[nodiscard]] Result<Cluster> cluster_from(const std::vector<slurm::Node>& nodes,
                                           const std::vector<slurm::Switch>& switches,
                                           std::string name);

}  // namespace berth
