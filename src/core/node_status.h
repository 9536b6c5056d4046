// Which nodes work and which are on. Both are independent: a node takes jobs when it works and is
// on. Beside it the kinds of nodes of each pool, with how many of each kind work. Does not know
// what runs on a node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "core/shape.h"
#include "model/cluster.h"

namespace berth {

/// Booting: switched on, not ready for jobs yet.
enum class PowerState : std::uint8_t { On, Off, Booting };

/// Nodes of a pool that are built alike, and how many of them work.
struct NodeKind {
  std::int32_t gpus = 0;
  std::int64_t cpus_milli = 0;  // 0 = not described: never a limit
  std::int64_t memory_mib = 0;  // the same
  std::int32_t working = 0;     // not failed, be they on or off

  /// How many devices of such a node, with nothing on it, a gang of the shape could use.
  [[nodiscard]] std::int32_t room(const Shape& shape) const noexcept {
    std::int64_t room = gpus;
    if (shape.cpus_milli_per_gpu > 0 && cpus_milli > 0)
      room = std::min(room, cpus_milli / shape.cpus_milli_per_gpu);
    if (shape.memory_mib_per_gpu > 0 && memory_mib > 0)
      room = std::min(room, memory_mib / shape.memory_mib_per_gpu);
    return static_cast<std::int32_t>(room);
  }
};

class NodeStatus {
 public:
  /// All nodes work and are on.
  explicit NodeStatus(const Cluster& cluster);

  [[nodiscard]] bool takes_jobs(NodeId node) const noexcept {
    return !has_failed(node) && power(node) == PowerState::On;
  }
  [[nodiscard]] bool has_failed(NodeId node) const noexcept { return nodes_[node.value].failed; }
  [[nodiscard]] PowerState power(NodeId node) const noexcept { return nodes_[node.value].power; }
  [[nodiscard]] std::span<const NodeKind> kinds(PoolId pool) const noexcept {
    return kinds_[pool.value];
  }

  void set_failed(NodeId node, bool failed);
  void set_power(NodeId node, PowerState power) { nodes_[node.value].power = power; }

 private:
  struct NodeRow {
    PoolId pool;
    std::uint32_t kind = 0;  // of its pool
    bool failed = false;
    PowerState power = PowerState::On;
  };
  std::vector<NodeRow> nodes_;
  std::vector<std::vector<NodeKind>> kinds_;  // by pool
};

}  // namespace berth
