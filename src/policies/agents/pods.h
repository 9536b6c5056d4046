// How a cluster is divided among arbiters. A pod is a run of neighbouring servers, zone by zone and
// rack by rack, with at most so many devices: whole racks while they fit, parts of a rack only
// where one rack is larger than a pod. Every job has a home pod, by its id in turn among those that
// could ever hold its gang; gangs larger than any pod belong to the root, which stands above all
// pods and sees the whole cluster. A cluster of one pod is not divided: its pod is the root.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster_state.h"
#include "core/shape.h"

namespace berth::agents {

using PodId = Id<struct PodTag>;

/// What arbiters tell each other of the free cells of one device type.
struct PodSummary {
  std::int64_t free = 0;
  std::int32_t largest_server = 0;  // the most free devices of one server
};

class Pods {
 public:
  Pods() = default;
  Pods(const ClusterState& state, std::int64_t most_devices);

  /// Without the root of a divided cluster.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] bool is_divided() const noexcept { return size() > 1; }
  /// Of a cluster that is not divided it is the only pod.
  [[nodiscard]] PodId root() const noexcept {
    return PodId{is_divided() ? static_cast<std::uint32_t>(size()) : 0};
  }
  [[nodiscard]] std::span<const NodeId> nodes(PodId pod) const noexcept { return nodes_[pod]; }
  [[nodiscard]] PodId pod_of(NodeId node) const noexcept { return pod_of_[node]; }
  /// The pod that all of these lie in, or the root.
  [[nodiscard]] PodId pod_of(std::span<const Slice> slices) const noexcept;
  [[nodiscard]] PodId home(JobId job, const Shape& shape) const noexcept;
  /// Would the gang fit by numbers if the pod were empty?
  [[nodiscard]] bool could_hold(PodId pod, const Shape& shape) const noexcept;
  /// Does it by numbers now? O(servers of the pod), O(1) for the root.
  [[nodiscard]] bool may_hold(const ClusterState& state, PodId pod, PoolId pool,
                              const Shape& shape) const noexcept;
  /// The first acceptable pool in which it does.
  [[nodiscard]] std::optional<PoolId> first_pool(const ClusterState& state, PodId pod,
                                                 const Shape& shape) const noexcept;
  [[nodiscard]] std::int64_t free_gpus(const ClusterState& state, PodId pod,
                                       PoolId pool) const noexcept;
  /// O(servers of the pod); not of the root.
  [[nodiscard]] PodSummary summary(const ClusterState& state, PodId pod,
                                   PoolId pool) const noexcept;

 private:
  void add_rack(const Cluster& cluster, std::span<const NodeId> nodes, std::int64_t most_devices);
  void open_pod(const Cluster& cluster);
  void add_node(const Cluster& cluster, NodeId node);

  Column<PodId, std::vector<NodeId>> nodes_;
  Column<PodId, Column<PoolId, std::int64_t>> devices_;  // of each type
  std::int64_t last_size_ = 0;                           // devices of the last pod
  Column<NodeId, PodId> pod_of_;
};

}  // namespace berth::agents
