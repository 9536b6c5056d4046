// Where cores are as scarce as GPUs: the server on which neither runs out before the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "core/cluster_state.h"

namespace berth::pai {

struct ServerLoad {
  double used = 0, request = 0, total = 0;
  /// A server that does not describe them has enough of them.
  [[nodiscard]] constexpr double after() const noexcept {
    return total > 0 ? (used + request) / total : 0;
  }
};
/// The larger of both loads once the job is there.
[[nodiscard]] constexpr double load_with(const ServerLoad& cores, const ServerLoad& gpus) noexcept {
  return std::max(cores.after(), gpus.after());
}

/// Of the servers that hold the whole gang the one least loaded then (ties: the lower id). Costs
/// the servers of the pool that have so many free devices.
[[nodiscard]] inline std::optional<NodeId> most_balanced(const ClusterState& state,
                                                         const Shape& shape, PoolId pool) {
  const double cores_asked = static_cast<double>(shape.cpus_milli_per_gpu) * shape.gpus;
  std::optional<std::tuple<double, NodeId>> best;
  for (std::int32_t free = shape.gpus; free <= state.largest_node(pool); ++free) {
    const NodeSet& nodes = state.nodes_with(pool, free);
    for (const NodeId node : nodes) {
      if (state.room_on(node, shape) < shape.gpus) continue;
      const Node& server = state.cluster().nodes[node.value];
      const auto cores = static_cast<double>(server.cpus_milli);
      const double cores_used =
          server.cpus_milli > 0 ? cores - static_cast<double>(state.free_cpus_milli(node)) : 0;
      const double load =
          load_with({cores_used, cores_asked, cores},
                    {static_cast<double>(server.gpus - free), static_cast<double>(shape.gpus),
                     static_cast<double>(server.gpus)});
      if (const std::tuple found{load, node}; !best || found < *best) best = found;
    }
  }
  if (!best) return std::nullopt;
  return std::get<NodeId>(*best);
}

}  // namespace berth::pai
