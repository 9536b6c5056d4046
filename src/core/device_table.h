// Who is on which device, for runs in which devices are shared or given in fractions: the jobs of
// each device, the memory they use and, for fractions, the thousandths they take. Runs without
// sharing do not pay for it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/id.h"
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
  explicit DeviceTable(const Cluster& cluster) : offset_(cluster.nodes.size()) {
    std::size_t devices = 0;
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      offset_[i] = static_cast<std::uint32_t>(devices);
      devices += static_cast<std::size_t>(cluster.nodes[i].gpus);
    }
    rows_.resize(devices);
  }

  [[nodiscard]] std::span<const JobId> jobs(NodeId node, std::int32_t device) const noexcept {
    const Row& row = at(node, device);
    return {row.jobs.data(), row.count};
  }
  [[nodiscard]] std::int32_t memory_used(NodeId node, std::int32_t device) const noexcept {
    return at(node, device).memory_mib;
  }
  [[nodiscard]] std::int32_t milli_used(NodeId node, std::int32_t device) const noexcept {
    return at(node, device).milli;
  }

  /// True: the device was empty before.
  bool add(NodeId node, std::int32_t device, JobId job, const DeviceUse& use) {
    Row& row = at(node, device);
    BERTH_CHECK(row.count < kMaxSharers, "no device is shared beyond its limit");
    row.jobs[row.count++] = job;
    row.memory_mib += use.memory_mib;
    if (use.milli < 1000) row.milli += use.milli;
    BERTH_CHECK(row.milli <= 1000, "no device is given beyond its thousandths");
    return row.count == 1;
  }
  /// True: the device is empty now.
  bool remove(NodeId node, std::int32_t device, JobId job, const DeviceUse& use) {
    Row& row = at(node, device);
    auto* const end = row.jobs.data() + row.count;
    auto* const found = std::find(row.jobs.data(), end, job);
    BERTH_CHECK(found != end, "only a job that is on a device leaves it");
    std::copy(found + 1, end, found);  // the others keep their order of arrival
    --row.count;
    row.memory_mib -= use.memory_mib;
    if (use.milli < 1000) row.milli -= use.milli;
    return row.count == 0;
  }
  void change_memory(NodeId node, std::int32_t device, std::int32_t change) noexcept {
    at(node, device).memory_mib += change;
  }

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

  std::vector<std::uint32_t> offset_;  // of a node's first device
  std::vector<Row> rows_;
};

/// Calls `visit(device)` for each device of the mask, ascending.
template <class Visit>
void for_each_device(std::uint64_t mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::int32_t>(std::countr_zero(mask)));
}

}  // namespace berth
