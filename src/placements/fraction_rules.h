// The usual ways to place tasks that ask for fractions of devices, to compare fgd.h with: each
// looks at every node that holds the task and takes the best by its own measure; ties go to the
// lower id.
//   random-fit      any of them, and any device that holds a fraction
//   best-fit        least weighted rest of cores and devices
//   dot-product     least alignment of what is free with what is asked
//   gpu-packing     devices in use first, then nodes in use, then idle nodes; fuller ones first
//   gpu-clustering  nodes that run only tasks of the same size first, then those that run such
//                   among others, then idle ones; fuller ones first
// But for random-fit, a fraction takes the device with the least room that holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "placements/node_rooms.h"

namespace berth {

enum class FractionRule : std::uint8_t {
  RandomFit,
  BestFit,
  DotProduct,
  GpuPacking,
  GpuClustering
};

/// Which sizes of task run on each node: for gpu-clustering.
class TaskSizes {
 public:
  explicit TaskSizes(std::size_t nodes) : by_node_(nodes) {}
  void add(NodeId node, const NodeDemand& demand);
  void remove(NodeId node, const NodeDemand& demand);
  void clear(NodeId node) { by_node_[node].clear(); }

  enum class Company : std::uint8_t { OnlySame, AlsoSame, Nobody, OnlyOthers };
  [[nodiscard]] Company company(NodeId node, const NodeDemand& demand) const noexcept;

 private:
  struct Count {
    std::int32_t gpus;
    std::int32_t gpu_milli;
    std::int32_t tasks;
  };
  Column<NodeId, std::vector<Count>> by_node_;
};

class FractionPlacer {
 public:
  /// `rooms` and `sizes` must outlive it. The rooms are empty now: the largest node sets the scale.
  FractionPlacer(FractionRule rule, const NodeRooms& rooms, const TaskSizes& sizes);
  /// O(nodes x devices).
  [[nodiscard]] std::optional<NodeChoice> choose(const NodeDemand& demand, Rng& rng);

 private:
  [[nodiscard]] double badness(NodeId node, const NodeDemand& demand) const;
  [[nodiscard]] double rest_after(const NodeRooms::Room& room, const NodeDemand& demand) const;
  [[nodiscard]] double alignment(const NodeRooms::Room& room, const NodeDemand& demand) const;
  [[nodiscard]] double packing_rank(NodeId node, const NodeDemand& demand) const;
  [[nodiscard]] std::uint64_t devices_on(NodeId node, const NodeDemand& demand, Rng& rng) const;

  FractionRule rule_;
  const NodeRooms* rooms_;
  const TaskSizes* sizes_;
  double most_cpus_ = 1;
  double most_milli_ = 1;
  std::vector<NodeId> candidates_;  // scratch
};

}  // namespace berth
