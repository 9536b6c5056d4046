// What of a job's request is free now, node by node, as Slurm sees it: without its order of jobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advise/sight.h"

namespace berth::advise {

/// What one job needs of each node, if its parts are equal.
struct PerNode {
  std::int32_t nodes = 1;  // so many of them
  std::int32_t gpus = 0;   // of each; 0: none, or not said per node
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
};
/// `counts_memory`: memory is shared out by this Slurm.
[[nodiscard]] PerNode needs_of(const slurm::Job& job, bool counts_memory);
[[nodiscard]] bool counts_memory(const slurm::Config& config);

struct NodeRoom {
  const slurm::Node* node = nullptr;
  std::int32_t gpus = 0, gpus_free = 0;  // of the type it wants
  std::int32_t cpus_free = 0;
  std::int64_t memory_free_mib = 0;
  bool fits = false;  // now
};

struct Room {
  PerNode needs;
  std::int64_t gpus_needed = 0;   // in all
  std::vector<NodeRoom> nodes{};  // that it may use and that are in service, in order of names
  std::vector<const slurm::Node*> out{};  // that it could use and are not in service
  std::int64_t gpus_free = 0, gpus_out = 0, gpus_in_all = 0;
  std::int64_t other_types_free =
      0;                     // on nodes of its partition that it may not use for their type
  std::int32_t fitting = 0;  // nodes that could take their part now

  [[nodiscard]] bool fits() const noexcept { return fitting >= needs.nodes; }
};
[[nodiscard]] Room room_for(const slurm::Job& job, const Sight& sight);

/// GPUs of a type that a node has; empty: of any.
[[nodiscard]] std::int32_t gpus_of(const slurm::Node& node, const std::string& type) noexcept;
/// Its partition has it and the request does not rule it out: by names or by features.
[[nodiscard]] bool may_use(const slurm::Job& job, const slurm::Node& node);

}  // namespace berth::advise
