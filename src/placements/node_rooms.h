// What is left on every node, with fractions of devices: cores, memory and the free thousandths of
// each device. A table of rows for rules that look at whole nodes (fgd.h, fraction_rules.h); it is
// fed with changes and remembers which nodes changed since somebody last looked.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "core/change_log.h"

namespace berth {

inline constexpr std::int32_t kWholeDevice = 1000;  // thousandths

/// What a task asks of one node. A fraction is of one device; several devices are whole ones.
struct NodeDemand {
  std::int64_t cpus_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t gpus = 1;  // 0 = cores and memory only
  std::int32_t gpu_milli = kWholeDevice;
  std::vector<PoolId> pools = {};  // acceptable device types; empty = any

  [[nodiscard]] bool is_fraction() const noexcept { return gpus == 1 && gpu_milli < kWholeDevice; }
  [[nodiscard]] bool accepts(PoolId pool) const noexcept;
  friend auto operator<=>(const NodeDemand&, const NodeDemand&) = default;
};

/// Devices of a node as a bit mask; none for a task that asks for none.
struct NodeChoice {
  NodeId node;
  std::uint64_t devices = 0;
  friend bool operator==(const NodeChoice&, const NodeChoice&) = default;
};

class NodeRooms {
 public:
  struct Room {
    PoolId pool;
    std::int32_t gpus = 0;
    std::int32_t free_milli = 0;  // of all devices
    std::int64_t cpus_milli = 0;
    std::int64_t memory_mib = 0;
    std::uint32_t version = 0;  // counts the changes
    [[nodiscard]] std::int32_t taken_milli() const noexcept {
      return gpus * kWholeDevice - free_milli;
    }
  };

  /// A node with everything free; ids count up. No node has more than `most_gpus` devices.
  explicit NodeRooms(std::int32_t most_gpus) : stride_(static_cast<std::size_t>(most_gpus)) {}
  NodeId add(PoolId pool, std::int32_t gpus, std::int64_t cpus_milli, std::int64_t memory_mib);

  [[nodiscard]] std::size_t size() const noexcept { return rooms_.size(); }
  [[nodiscard]] const Room& operator[](NodeId node) const noexcept { return rooms_[node]; }
  /// Free thousandths by device.
  [[nodiscard]] std::span<const std::uint16_t> free(NodeId node) const noexcept {
    return {free_.data() + node.value * stride_, static_cast<std::size_t>(rooms_[node].gpus)};
  }

  /// The node as it is now. Nothing is noted if nothing changed.
  void set(NodeId node, std::int64_t cpus_milli, std::int64_t memory_mib,
           std::span<const std::uint16_t> free);
  void take(const NodeChoice& choice, const NodeDemand& demand);
  void give(const NodeChoice& choice, const NodeDemand& demand);

  [[nodiscard]] bool holds(NodeId node, const NodeDemand& demand) const noexcept;
  /// The lowest-numbered devices for a demand of whole ones; the node must hold it.
  [[nodiscard]] std::uint64_t whole_devices(NodeId node, std::int32_t count) const noexcept;
  /// The device with the least room that holds the fraction; the lowest of equals.
  [[nodiscard]] std::uint64_t tightest_device(NodeId node, std::int32_t milli) const noexcept;

  /// Which nodes changed, the first time when they were added.
  [[nodiscard]] const ChangeLog& changes() const noexcept { return log_; }

 private:
  void note_change(NodeId node);
  void add_to(const NodeChoice& choice, const NodeDemand& demand, std::int32_t sign);

  std::size_t stride_;
  Column<NodeId, Room> rooms_;
  std::vector<std::uint16_t> free_;  // stride_ per node
  ChangeLog log_;
};

}  // namespace berth
