#include "policies/pai/balance.h"

#include <tuple>

namespace berth {

std::optional<NodeId> most_balanced(const ClusterState& state, const Shape& shape, PoolId pool) {
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

}  // namespace berth
