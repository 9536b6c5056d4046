// The typical workload, and how much of a node it cannot use (fragmentation, FGD, ATC 2023). A
// class is a demand and how often it occurs. With counts as weights everything is integer
// arithmetic: equal fragmentation compares equal on every machine.
//
//   fragment(node) = sum over classes of weight * (free thousandths a task of that class cannot
//   use)
//
// which is all of them if the class needs no GPU or finds no room on the node (cores, memory, type,
// too few devices that are large enough), otherwise those on devices too small for it. Divide by
// total_weight() for thousandths of devices.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "placements/node_rooms.h"

namespace berth {

class TargetWorkload {
 public:
  struct TaskClass {
    NodeDemand demand;
    std::int64_t weight = 1;
  };
  /// `pools` is the number of device types of the cluster.
  TargetWorkload(std::vector<TaskClass> classes, std::size_t pools);

  [[nodiscard]] std::span<const TaskClass> classes() const noexcept { return classes_; }
  [[nodiscard]] std::int64_t total_weight() const noexcept { return total_weight_; }

  /// O(devices + distinct GPU demands). `free` rises; its sum is `free_milli`.
  [[nodiscard]] std::int64_t fragment(const NodeRooms::Room& room,
                                      std::span<const std::uint16_t> free) const;

 private:
  /// Classes that ask the same of devices.
  struct GpuDemand {
    std::int32_t gpu_milli;
    std::int32_t gpus;
    friend auto operator<=>(const GpuDemand&, const GpuDemand&) = default;
  };
  /// For a node with given cores and memory: the weight of those able to run there if the devices
  /// allow it, by GPU demand. Only the ranks among the classes' demands matter, so few rows exist.
  [[nodiscard]] std::span<const std::int64_t> able(const NodeRooms::Room& room) const;
  [[nodiscard]] std::uint32_t make_row(PoolId pool, std::int64_t cpus, std::int64_t memory) const;

  std::vector<TaskClass> classes_;
  std::int64_t total_weight_ = 0;
  std::vector<GpuDemand> gpu_demands_;         // rising
  std::vector<std::uint32_t> demand_of_;       // by class, of those with GPUs
  std::vector<std::int64_t> cpu_steps_;        // distinct demands, rising
  std::vector<std::int64_t> memory_steps_;     // distinct demands, rising
  mutable std::vector<std::uint32_t> row_of_;  // by pool, cpu rank, memory rank; 0 = not made yet
  mutable std::vector<std::int64_t> rows_;     // gpu_demands_.size() each
};

/// Counts tasks as they come and names the typical ones.
class WorkloadHistory {
 public:
  void add(const NodeDemand& demand) { ++counts_[demand]; }
  [[nodiscard]] bool is_empty() const noexcept { return counts_.empty(); }
  /// The most frequent demands that together make up at least `coverage` of all tasks, at most
  /// `most` of them.
  [[nodiscard]] std::vector<TargetWorkload::TaskClass> typical(double coverage = 0.95,
                                                               std::size_t most = 100) const;

 private:
  std::map<NodeDemand, std::int64_t> counts_;
};

}  // namespace berth
