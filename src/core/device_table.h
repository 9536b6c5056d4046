// Who is on which device, for runs in which devices are shared or given in fractions: the jobs of
// each device, the memory they use and, for fractions, the thousandths they take; and from these
// what a device has left for one more. Runs without sharing do not pay for it. Going beyond a
// device's sharers or thousandths is a broken invariant; memory is the caller's to check.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "core/slice.h"
#include "model/cluster.h"

namespace berth {

inline constexpr std::size_t kMaxSharers = 8;  // jobs on one device at most

/// What one job takes of each device it is on.
struct DeviceUse {
  std::int32_t memory_mib = 0;
  std::int32_t milli = 1000;  // 1000: not a fraction; shared devices are not counted in thousandths
};

class DeviceTable {
 public:
  explicit DeviceTable(const Cluster& cluster);

  /// In their order of arrival there.
  [[nodiscard]] std::span<const JobId> jobs(NodeId node, std::int32_t device) const noexcept {
    const Row& row = at(node, device);
    return {row.jobs.data(), row.count};
  }
  /// All jobs of a node, each once, ascending.
  void jobs(NodeId node, std::vector<JobId>& jobs) const;

  [[nodiscard]] std::int32_t free_milli(NodeId node, std::int32_t device) const noexcept;
  /// In how many of its equal parts the device could still be given; every job takes at least one.
  [[nodiscard]] std::int32_t free_slots(NodeId node, std::int32_t device) const noexcept;
  /// Without end where the cluster does not describe it.
  [[nodiscard]] std::int64_t free_memory_mib(NodeId node, std::int32_t device) const noexcept;
  /// Could one more job use each device of the slice so, at most `limit` jobs on it afterwards?
  [[nodiscard]] bool has_room(const Slice& slice, const DeviceUse& use,
                              std::int32_t limit) const noexcept;

  struct Change {
    std::uint64_t flipped = 0;  // devices that became empty, or were
    std::int64_t milli = 0;     // by which free thousandths changed
  };
  Change join(const Slice& slice, JobId job, const DeviceUse& use);
  Change leave(const Slice& slice, JobId job, const DeviceUse& use);
  /// The jobs of each of these devices together use so much more of it, or less.
  void change_memory(const Slice& slice, std::int32_t change) noexcept;

 private:
  struct Row {
    std::array<JobId, kMaxSharers> jobs;
    std::uint32_t count = 0;
    std::int32_t memory_mib = 0;
    std::int32_t milli = 0;
  };
  [[nodiscard]] const Row& at(NodeId node, std::int32_t device) const noexcept {
    return rows_[offset_[node.value] + static_cast<std::size_t>(device)];
  }
  [[nodiscard]] Row& at(NodeId node, std::int32_t device) noexcept {
    return rows_[offset_[node.value] + static_cast<std::size_t>(device)];
  }
  [[nodiscard]] const DeviceType& pool_of(NodeId node) const noexcept {
    return cluster_->pools[cluster_->nodes[node.value].pool.value];
  }

  const Cluster* cluster_;
  std::vector<std::uint32_t> offset_;  // of a node's first device
  std::vector<Row> rows_;
};

/// Calls `visit(device)` for each device of the mask, ascending.
template <class Visit>
void for_each_device(std::uint64_t mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::int32_t>(std::countr_zero(mask)));
}

}  // namespace berth
