#include "core/node_status.h"

namespace berth {

NodeStatus::NodeStatus(const Cluster& cluster) : kinds_(cluster.pools.size()) {
  nodes_.reserve(cluster.nodes.size());
  for (const Node& node : cluster.nodes) {
    std::vector<NodeKind>& kinds = kinds_[node.pool.value];
    auto found = std::ranges::find_if(kinds, [&](const NodeKind& kind) {
      return kind.gpus == node.gpus && kind.cpus_milli == node.cpus_milli &&
             kind.memory_mib == node.memory_mib;
    });
    if (found == kinds.end()) {
      found = kinds.insert(
          found, {.gpus = node.gpus, .cpus_milli = node.cpus_milli, .memory_mib = node.memory_mib});
    }
    ++found->working;
    nodes_.push_back(
        {.pool = node.pool, .kind = static_cast<std::uint32_t>(found - kinds.begin())});
  }
}

void NodeStatus::set_failed(NodeId node, bool failed) {
  NodeRow& row = nodes_[node.value];
  if (row.failed == failed) return;  // said twice, it still counts once
  row.failed = failed;
  kinds_[row.pool.value][row.kind].working += failed ? -1 : 1;
}

}  // namespace berth
