// Which devices are free. Nodes in service lie in buckets by their number of free devices, so that
// "best fit for k" is a look at the first non-empty bucket from k on; totals per pool, per rack and
// of the cluster are kept beside them. Every change is O(1) in the size of the cluster. Taking a
// device twice is a broken invariant. Knows neither jobs nor cores, nor why a node is out of
// service.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "core/bit_set.h"
#include "model/cluster.h"

namespace berth {

/// The mask of a node's `count` devices.
[[nodiscard]] constexpr std::uint64_t all_devices(std::int32_t count) noexcept {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << static_cast<unsigned>(count)) - 1;
}

class FreeDevices {
 public:
  /// No node is in service yet.
  explicit FreeDevices(const Cluster& cluster);

  [[nodiscard]] std::size_t pools() const noexcept { return pools_.size(); }
  [[nodiscard]] std::int64_t free() const noexcept { return free_; }
  [[nodiscard]] std::int64_t free(PoolId pool) const noexcept { return pools_[pool.value].free; }
  [[nodiscard]] std::int64_t free_in_rack(PoolId pool, RackId rack) const noexcept {
    return pools_[pool.value].rack_free[rack.value];
  }
  /// Thousandths of the pool's devices, those of full devices included.
  [[nodiscard]] std::int64_t free_milli(PoolId pool) const noexcept {
    return pools_[pool.value].free_milli;
  }
  /// Devices of nodes in service, free or not.
  [[nodiscard]] std::int64_t usable() const noexcept { return usable_; }
  [[nodiscard]] std::int64_t usable(PoolId pool) const noexcept {
    return pools_[pool.value].usable;
  }

  [[nodiscard]] bool is_in_service(NodeId node) const noexcept {
    return nodes_[node.value].in_service;
  }
  [[nodiscard]] std::int32_t free_on(NodeId node) const noexcept { return nodes_[node.value].free; }
  [[nodiscard]] std::uint64_t mask(NodeId node) const noexcept { return nodes_[node.value].mask; }
  [[nodiscard]] bool is_free(NodeId node, std::uint64_t devices) const noexcept {
    const NodeRow& row = nodes_[node.value];
    return row.in_service && (devices & ~row.mask) == 0;
  }
  [[nodiscard]] const NodeSet& nodes_with(PoolId pool, std::int32_t free) const noexcept {
    return pools_[pool.value].by_free[static_cast<std::size_t>(free)];
  }
  [[nodiscard]] std::int32_t largest_node(PoolId pool) const noexcept {
    return static_cast<std::int32_t>(pools_[pool.value].by_free.size()) - 1;
  }

  void take(NodeId node, std::uint64_t devices);
  void give(NodeId node, std::uint64_t devices);
  /// Without nodes: only the totals of the pool and of the cluster change.
  void take_count(PoolId pool, std::int32_t gpus);
  void give_count(PoolId pool, std::int32_t gpus);
  /// Fractions of devices came or went, whether or not the devices were free before.
  void add_milli(PoolId pool, std::int64_t change) { pools_[pool.value].free_milli += change; }
  /// With all its devices free; it must be out of service.
  void enter_service(NodeId node);
  /// It must be in service with all its devices free.
  void leave_service(NodeId node);

 private:
  struct NodeRow {
    std::uint64_t mask = 0;
    std::int32_t free = 0;
    bool in_service = false;
  };
  struct PoolRow {
    std::int64_t free = 0;
    std::int64_t usable = 0;
    std::int64_t free_milli = 0;
    std::vector<NodeSet> by_free;  // index = free devices; nodes out of service are in none
    std::vector<std::int64_t> rack_free;
  };
  void move(NodeId node, std::int32_t change);
  void add_totals(NodeId node, std::int64_t gpus);

  const Cluster* cluster_;
  std::vector<NodeRow> nodes_;
  std::vector<PoolRow> pools_;
  std::int64_t free_ = 0;
  std::int64_t usable_ = 0;
};

}  // namespace berth
