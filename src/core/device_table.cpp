#include "core/device_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/device_mask.h"
#include "core/host_resources.h"

namespace berth {

DeviceTable::DeviceTable(const Cluster& cluster)
    : cluster_(&cluster), offset_(cluster.nodes.size()) {
  std::size_t devices = 0;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    offset_[i] = static_cast<std::uint32_t>(devices);
    devices += static_cast<std::size_t>(cluster.nodes[i].gpus);
  }
  rows_.resize(devices);
}

void DeviceTable::jobs(NodeId node, std::vector<JobId>& jobs) const {
  jobs.clear();
  for (std::int32_t device = 0; device < cluster_->nodes[node.value].gpus; ++device) {
    const auto here = this->jobs(node, device);
    jobs.insert(jobs.end(), here.begin(), here.end());
  }
  std::ranges::sort(jobs);
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
}

/// A device with a job that is no fraction, or with as many as it can be shared by, has nothing
/// left to give in thousandths.
std::int32_t DeviceTable::free_milli(NodeId node, std::int32_t device) const noexcept {
  const Row& row = at(node, device);
  if (row.count == 0) return 1000;
  const auto most =
      std::min<std::size_t>(kMaxSharers, static_cast<std::size_t>(pool_of(node).slots));
  return row.milli > 0 && row.count < most ? 1000 - row.milli : 0;
}

std::int32_t DeviceTable::free_slots(NodeId node, std::int32_t device) const noexcept {
  const std::int32_t slots = pool_of(node).slots;
  const auto jobs = static_cast<std::int32_t>(at(node, device).count);
  return std::clamp(slots - jobs, 0, free_milli(node, device) * slots / 1000);
}

std::int64_t DeviceTable::free_memory_mib(NodeId node, std::int32_t device) const noexcept {
  const std::int64_t described = pool_of(node).memory_mib;
  if (described <= 0) return HostResources::kUnlimited;  // not described: never a limit
  return described - at(node, device).memory_mib;
}

bool DeviceTable::has_room(const Slice& slice, const DeviceUse& use,
                           std::int32_t limit) const noexcept {
  for (const std::int32_t device : DeviceMask{slice.devices}) {
    const Row& row = at(slice.node, device);
    if (static_cast<std::int32_t>(row.count) >= limit) return false;
    if (use.milli < 1000 && free_milli(slice.node, device) < use.milli) return false;
    // A device of its own it gets whatever its memory is believed to be: there is none larger.
    if (row.count > 0 && use.memory_mib > free_memory_mib(slice.node, device)) return false;
  }
  return true;
}

DeviceTable::Change DeviceTable::join(const Slice& slice, JobId job, const DeviceUse& use) {
  Change change;
  for (const std::int32_t device : DeviceMask{slice.devices}) {
    const std::int32_t before = free_milli(slice.node, device);
    Row& row = at(slice.node, device);
    BERTH_CHECK(row.count < kMaxSharers, "no device is shared beyond its limit");
    row.jobs[row.count++] = job;
    row.memory_mib += use.memory_mib;
    if (use.milli < 1000) row.milli += use.milli;
    BERTH_CHECK(row.milli <= 1000, "no device is given beyond its thousandths");
    if (row.count == 1) change.flipped |= std::uint64_t{1} << static_cast<unsigned>(device);
    change.milli += free_milli(slice.node, device) - before;
  }
  return change;
}

DeviceTable::Change DeviceTable::leave(const Slice& slice, JobId job, const DeviceUse& use) {
  Change change;
  for (const std::int32_t device : DeviceMask{slice.devices}) {
    const std::int32_t before = free_milli(slice.node, device);
    Row& row = at(slice.node, device);
    auto* const end = row.jobs.data() + row.count;
    auto* const found = std::find(row.jobs.data(), end, job);
    BERTH_CHECK(found != end, "only a job that is on a device leaves it");
    std::copy(found + 1, end, found);  // the others keep their order of arrival
    --row.count;
    row.memory_mib -= use.memory_mib;
    if (use.milli < 1000) row.milli -= use.milli;
    if (row.count == 0) change.flipped |= std::uint64_t{1} << static_cast<unsigned>(device);
    change.milli += free_milli(slice.node, device) - before;
  }
  return change;
}

void DeviceTable::change_memory(const Slice& slice, std::int32_t change) noexcept {
  for (const std::int32_t device : DeviceMask{slice.devices})
    at(slice.node, device).memory_mib += change;
}

}  // namespace berth
