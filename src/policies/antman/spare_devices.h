// Where opportunistic jobs can go: the devices with compute and memory to spare, by utilisation.
// Each device has a level (its utilisation in steps of 1/20) or is no candidate. For every level
// the servers are kept by how many candidates they offer up to that level, so that "K devices on
// one server, as idle as possible" is a look at 20 levels x devices of a server, whatever the size
// of the cluster; a change of one device costs at most 20 set operations.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"
#include "core/bit_set.h"
#include "core/cluster_state.h"

namespace berth::antman {

inline constexpr std::int32_t kUtilisationLevels = 21;
/// The highest level at which nothing above this utilisation is met.
[[nodiscard]] std::int32_t level_within(double utilisation) noexcept;

/// Those of one pool.
class SpareDevices {
 public:
  /// All nodes of the cluster count as known, with no candidate yet.
  SpareDevices(std::size_t nodes, std::int32_t largest_node);

  /// The device is used to this share of its compute, 0..1, and may take one more job.
  void offer(NodeId node, std::int32_t device, double utilisation);
  /// No candidate (any more).
  void withdraw(NodeId node, std::int32_t device);

  /// K candidates on as few servers as possible, and there on the least used: the lowest level at
  /// which one server has them all (the tightest such server, then the lowest id); if none ever
  /// has, the lowest level with K in all, servers with most candidates first. Nothing: too few up
  /// to the highest level allowed.
  [[nodiscard]] std::optional<std::vector<Slice>> choose(std::int32_t gpus,
                                                         std::int32_t highest = kUtilisationLevels -
                                                                                1) const;
  [[nodiscard]] std::int64_t candidates() const noexcept { return total_[kUtilisationLevels - 1]; }
  [[nodiscard]] bool has_idle() const noexcept { return total_[0] > 0; }

 private:
  static constexpr std::int8_t kNone = kUtilisationLevels;
  struct Node {
    std::vector<std::int8_t> level;                          // by device
    std::array<std::int32_t, kUtilisationLevels> offered{};  // candidates up to each level
  };
  void set_level(NodeId node, std::int32_t device, std::int8_t level);
  [[nodiscard]] Slice pick(NodeId node, std::int32_t gpus) const;
  [[nodiscard]] std::optional<NodeId> tightest(std::size_t level, std::int32_t gpus) const;

  std::int32_t largest_;
  std::vector<Node> nodes_;
  std::array<std::vector<NodeSet>, kUtilisationLevels> by_offer_;  // by level, then candidates
  std::array<std::int64_t, kUtilisationLevels> total_{};
};

/// Those of every pool.
class SparePools {
 public:
  explicit SparePools(const ClusterState& state) {
    for (std::uint32_t pool = 0; pool < state.pools(); ++pool)
      pools_.push_back({state.cluster().nodes.size(), state.largest_node(PoolId{pool})});
  }
  /// Looks at the node again: `utilisation(device)` answers nothing if the device takes no job.
  template <class Utilisation>
  void refresh(const ClusterState& state, NodeId id, Utilisation&& utilisation) {
    const berth::Node& node = state.cluster().nodes[id.value];
    for (std::int32_t device = 0; device < node.gpus; ++device) {
      const std::optional<double> busy =
          state.is_up(id) ? utilisation(device) : std::optional<double>{};
      if (busy) {
        pools_[node.pool].offer(id, device, *busy);
      } else {
        pools_[node.pool].withdraw(id, device);
      }
    }
  }
  [[nodiscard]] std::optional<std::vector<Slice>> choose(PoolId pool, std::int32_t gpus,
                                                         std::int32_t highest) const {
    return pools_[pool].choose(gpus, highest);
  }
  [[nodiscard]] bool has_idle() const noexcept {
    return std::ranges::any_of(pools_, &SpareDevices::has_idle);
  }

 private:
  Column<PoolId, SpareDevices> pools_;
};

}  // namespace berth::antman
