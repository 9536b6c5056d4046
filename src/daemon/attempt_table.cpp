#include "daemon/attempt_table.h"

#include <algorithm>
#include <bit>

namespace berth {

const Attempt* AttemptTable::find(JobNumber job) const {
  const auto found = attempts_.find(job);
  return found == attempts_.end() ? nullptr : &found->second;
}

Attempt* AttemptTable::find(JobNumber job) {
  const auto found = attempts_.find(job);
  return found == attempts_.end() ? nullptr : &found->second;
}

std::optional<JobNumber> AttemptTable::job_of(AttemptId attempt) const {
  const auto found = job_of_.find(attempt);
  if (found == job_of_.end()) return std::nullopt;
  return found->second;
}

void AttemptTable::occupy(JobNumber job, std::span<const Slice> slices) {
  visit_devices(slices, [&](const Device& device) { on_device_[device].insert(job); });
}

void AttemptTable::vacate(JobNumber job, std::span<const Slice> slices) {
  visit_devices(slices, [&](const Device& device) {
    const auto here = on_device_.find(device);
    if (here == on_device_.end()) return;
    here->second.erase(job);
    if (here->second.empty()) on_device_.erase(here);
  });
}

void AttemptTable::add(Attempt attempt) {
  occupy(attempt.job, attempt.slices);
  job_of_[attempt.id] = attempt.job;
  attempts_.emplace(attempt.job, std::move(attempt));
}

void AttemptTable::remove(JobNumber job) {
  const auto found = attempts_.find(job);
  vacate(job, found->second.slices);
  give_cores(found->second);
  job_of_.erase(found->second.id);
  attempts_.erase(found);
}

void AttemptTable::relocate(Attempt& attempt, const std::vector<Slice>& slices) {
  vacate(attempt.job, attempt.slices);
  occupy(attempt.job, slices);
  attempt.slices = slices;
}

std::set<JobNumber> AttemptTable::on_devices(std::span<const Slice> slices) const {
  std::set<JobNumber> jobs;
  visit_devices(slices, [&](const Device& device) {
    const auto found = on_device_.find(device);
    if (found != on_device_.end()) jobs.insert(found->second.begin(), found->second.end());
  });
  return jobs;
}

std::vector<HeldDevices> AttemptTable::take(std::span<const Slice> slices, std::int32_t cores_milli,
                                            const JobSpec* spec) {
  std::vector<HeldDevices> held;
  for (const Slice& slice : slices) {
    HeldDevices devices;
    devices.node = cluster_.nodes[slice.node.value].name;
    visit_devices({&slice, 1},
                  [&](const Device& device) { devices.devices.push_back(device.second); });
    std::int32_t cores = (cores_milli * slice.gpus + 999) / 1000;
    if (cores == 0 && spec != nullptr && spec->cpus > 0)
      cores = spec->gpus == 0 ? spec->cpus : std::max(1, spec->cpus * slice.gpus / spec->gpus);
    devices.cores = cores_.take(devices.node, cores);
    held.push_back(std::move(devices));
  }
  return held;
}

void AttemptTable::give_cores(const Attempt& attempt) {
  for (const HeldDevices& held : attempt.where) cores_.give(held.node, held.cores);
}

void AttemptTable::bind(Attempt& attempt, std::int32_t cores) {
  HeldDevices& held = attempt.where.front();
  cores_.give(held.node, held.cores);
  held.cores = cores_.take(held.node, cores);
}

void AttemptTable::retake_cores() {
  for (const auto& [job, attempt] : attempts_) {
    for (const HeldDevices& held : attempt.where) cores_.retake(held.node, held.cores);
  }
}

std::vector<Slice> AttemptTable::slices_of(const std::vector<HeldDevices>& where) const {
  std::vector<Slice> slices;
  for (const HeldDevices& held : where) {
    for (std::uint32_t i = 0; i < cluster_.nodes.size(); ++i) {
      if (cluster_.nodes[i].name != held.node) continue;
      Slice slice{.node = NodeId{i}};
      for (const std::int32_t device : held.devices) {
        if (device < 0 || device >= cluster_.nodes[i].gpus) continue;
        slice.devices |= std::uint64_t{1} << static_cast<unsigned>(device);
      }
      slice.gpus = std::popcount(slice.devices);
      if (slice.gpus > 0 || held.devices.empty()) slices.push_back(slice);
    }
  }
  return slices;
}

}  // namespace berth
