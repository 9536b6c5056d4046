// The attempts that may be alive, by job and by device, and the cores they are bound to. Devices
// may be shared: several jobs can stand on one. Owns all of this; what becomes of an attempt is
// decided elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/device_mask.h"
#include "daemon/attempt.h"
#include "daemon/core_allocator.h"
#include "model/cluster.h"

namespace berth {

class AttemptTable {
 public:
  using Device = std::pair<std::uint32_t, std::int32_t>;  // node, index there

  AttemptTable(const Cluster& cluster, const std::vector<std::int32_t>& machine_cores)
      : cluster_(cluster), cores_(cluster, machine_cores) {}

  [[nodiscard]] bool contains(JobNumber job) const { return attempts_.contains(job); }
  [[nodiscard]] const Attempt* find(JobNumber job) const;
  [[nodiscard]] Attempt* find(JobNumber job);
  /// It is there.
  [[nodiscard]] const Attempt& at(JobNumber job) const { return attempts_.at(job); }
  [[nodiscard]] Attempt& at(JobNumber job) { return attempts_.at(job); }
  [[nodiscard]] std::optional<JobNumber> job_of(AttemptId attempt) const;
  [[nodiscard]] const std::map<JobNumber, Attempt>& all() const noexcept { return attempts_; }
  [[nodiscard]] std::map<JobNumber, Attempt>& all() noexcept { return attempts_; }

  void add(Attempt attempt);
  /// Gives back its devices and cores.
  void remove(JobNumber job);
  /// From now on it holds these devices; its cores are for the caller to give and take.
  void relocate(Attempt& attempt, const std::vector<Slice>& slices);

  [[nodiscard]] std::set<JobNumber> on_devices(std::span<const Slice> slices) const;
  template <class Test>  // bool(JobNumber, Device)
  [[nodiscard]] bool all_on(std::span<const Slice> slices, Test test) const;

  // --- names of nodes instead of numbers, and cores

  /// These devices with cores that are taken for them: `cores_milli` a device, or if that is 0 the
  /// job's own share. `spec` may be absent.
  [[nodiscard]] std::vector<HeldDevices> take(std::span<const Slice> slices,
                                              std::int32_t cores_milli, const JobSpec* spec);
  void give_cores(const Attempt& attempt);
  /// Other cores on the one node it is on.
  void bind(Attempt& attempt, std::int32_t cores);
  /// Cores that attempts of an earlier life are bound to are theirs.
  void retake_cores();
  /// Devices of nodes that the cluster has no longer are left out.
  [[nodiscard]] std::vector<Slice> slices_of(const std::vector<HeldDevices>& where) const;

 private:
  template <class Visit>
  static void visit_devices(std::span<const Slice> slices, Visit visit);
  void occupy(JobNumber job, std::span<const Slice> slices);
  void vacate(JobNumber job, std::span<const Slice> slices);

  const Cluster& cluster_;
  CoreAllocator cores_;
  std::map<JobNumber, Attempt> attempts_;
  std::map<AttemptId, JobNumber> job_of_;
  std::map<Device, std::set<JobNumber>> on_device_;
};

template <class Visit>
void AttemptTable::visit_devices(std::span<const Slice> slices, Visit visit) {
  for (const Slice& slice : slices) {
    for (const std::int32_t device : DeviceMask{slice.devices})
      visit(Device{slice.node.value, device});
  }
}

template <class Test>
bool AttemptTable::all_on(std::span<const Slice> slices, Test test) const {
  bool all = true;
  visit_devices(slices, [&](const Device& device) {
    const auto found = on_device_.find(device);
    if (found == on_device_.end()) return;
    for (const JobNumber job : found->second) all = all && test(job, device);
  });
  return all;
}

}  // namespace berth
