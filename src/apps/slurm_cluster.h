// A Slurm's nodes as a cluster file (docs/formats/cluster.md): groups of like nodes, their GPUs,
// cores and memory, and its switches as racks. What the file cannot say (nodes without GPUs, two
// types of GPU in one node) is left out and told.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/facts.h"

namespace berth {

/// How names appear in what is written: as they are, or as pseudonyms.
using Naming = std::function<std::string(std::string_view kind, std::string_view name)>;

struct SlurmCluster {
  std::string yaml;
  std::set<std::string> nodes;  // that are in the file, by Slurm's names
  std::set<std::string> types;  // of GPUs, as Slurm writes them
  std::int64_t gpus = 0;
  std::size_t groups = 0;
  std::int64_t shards_per_gpu = 0;  // 0: GPUs are not shared
  std::vector<std::string> notes;   // what could not be known or said
};

/// An error: not one node has a GPU.
[[nodiscard]] Result<SlurmCluster> slurm_cluster(const std::string& name,
                                                 std::span<const slurm::Node> nodes,
                                                 std::span<const slurm::Switch> switches,
                                                 const Naming& naming);

}  // namespace berth
