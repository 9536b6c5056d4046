// Cores and host memory that are free: of each node, and in total of each pool for runs that know
// no nodes (Count mode). What a node does not describe never limits. Giving a core or a MiB twice
// is a broken invariant. Knows nothing of devices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/id.h"
#include "core/shape.h"
#include "core/slice.h"
#include "model/cluster.h"

namespace berth {

class HostResources {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  explicit HostResources(const Cluster& cluster);

  [[nodiscard]] std::int64_t cpus_milli(NodeId node) const noexcept {
    return nodes_[node.value].cpus_milli;
  }
  [[nodiscard]] std::int64_t memory_mib(NodeId node) const noexcept {
    return nodes_[node.value].memory_mib;
  }
  /// How many workers of the shape the node could take, `most` at most.
  [[nodiscard]] std::int64_t room(NodeId node, const Shape& shape,
                                  std::int64_t most) const noexcept {
    const NodeRow& row = nodes_[node.value];
    if (shape.cpus_milli_per_gpu > 0 && row.cpus_milli != kUnlimited)
      most = std::min(most, row.cpus_milli / shape.cpus_milli_per_gpu);
    if (shape.memory_mib_per_gpu > 0 && row.memory_mib != kUnlimited)
      most = std::min(most, row.memory_mib / shape.memory_mib_per_gpu);
    return most;
  }
  [[nodiscard]] bool has_room(const Slice& slice, const Shape& shape) const noexcept {
    const NodeRow& row = nodes_[slice.node.value];
    if (row.cpus_milli != kUnlimited && slice.workers() * shape.cpus_milli_per_gpu > row.cpus_milli)
      return false;
    return row.memory_mib == kUnlimited ||
           slice.workers() * shape.memory_mib_per_gpu <= row.memory_mib;
  }
  /// Some job here holds cores or memory but no device, so that the free devices do not show it.
  [[nodiscard]] bool has_job_without_device(NodeId node) const noexcept {
    return nodes_[node.value].without_device > 0;
  }
  void take(const Slice& slice, const Shape& shape);
  void give(const Slice& slice, const Shape& shape);

  /// The same for a whole gang in the totals of a pool.
  [[nodiscard]] bool has_room(PoolId pool, const Shape& shape) const noexcept;
  void take(PoolId pool, const Shape& shape);
  void give(PoolId pool, const Shape& shape);

 private:
  struct NodeRow {
    std::int64_t cpus_milli = kUnlimited;
    std::int64_t memory_mib = kUnlimited;
    std::int32_t without_device = 0;  // jobs
  };
  struct PoolRow {
    std::int64_t cpus_milli = 0;
    std::int64_t memory_mib = 0;
    bool limits_cpus = false;
    bool limits_memory = false;
  };
  std::vector<NodeRow> nodes_;
  std::vector<PoolRow> pools_;
};

}  // namespace berth
