// Nodes that are set aside for short runs (a profiler, a debug pool): of the cluster's largest
// pool, the last ones first. Who may be on them is for the policy to say; here short jobs find a
// place inside, and all others one outside. A node that changes sides keeps the jobs it has.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace berth {

class ReservedNodes {
 public:
  /// None is reserved yet.
  void begin(const Cluster& cluster);
  [[nodiscard]] PoolId pool() const noexcept { return pool_; }
  /// All nodes of the pool, last first.
  [[nodiscard]] const std::vector<NodeId>& candidates() const noexcept { return candidates_; }
  /// Those that are reserved, in the order in which they were.
  [[nodiscard]] const std::vector<NodeId>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] bool contains(NodeId node) const noexcept { return is_reserved_[node]; }
  void reserve(NodeId node);
  void release(NodeId node);

  /// On one of the reserved nodes, all of the gang.
  [[nodiscard]] bool try_start_inside(Plan& plan, JobId job, Reason reason) const;
  /// On none of them: on the node with the smallest rest that holds the gang, else on the roomiest
  /// nodes. Costs the nodes with free devices that are looked at.
  [[nodiscard]] bool try_start_outside(Plan& plan, JobId job, Reason reason);
  /// Do the other nodes of an acceptable pool have as many devices at all?
  [[nodiscard]] bool is_outside_large_enough(const Cluster& cluster, const Shape& shape) const;

 private:
  [[nodiscard]] bool place_outside(const ClusterState& state, const Shape& shape, PoolId pool);
  [[nodiscard]] std::ptrdiff_t fewest_outside(const ClusterState& state, const Shape& shape,
                                              PoolId pool) const;

  PoolId pool_;
  std::vector<NodeId> candidates_;
  std::vector<NodeId> nodes_;
  Column<NodeId, bool> is_reserved_;
  std::vector<Slice> slices_;  // scratch
};

}  // namespace berth
