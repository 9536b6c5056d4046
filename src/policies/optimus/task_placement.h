// Where the tasks of jobs go: on the fewest machines, with the same number of parameter servers and
// of workers on each, which is what exchanges data fastest on equal machines. Small jobs come
// first.
//
// A job costs O(k log machines) where k machines suffice.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "policies/optimus/tasks.h"

namespace berth::optimus {

struct PlacedJob {
  TaskCounts tasks;
  JobDemand demand;
};

/// Some tasks of a job on one machine.
struct MachineShare {
  std::uint32_t machine = 0;
  TaskCounts tasks;
  friend bool operator==(const MachineShare&, const MachineShare&) = default;
};

class TaskPlacer {
 public:
  /// What is free on each machine, by resource; all name the same resources.
  explicit TaskPlacer(std::vector<std::vector<std::int64_t>> free);

  /// Positions of the jobs by the share of the cluster they take in all, smallest first.
  [[nodiscard]] std::vector<std::size_t> order(std::span<const PlacedJob> jobs) const;
  /// Fewer tasks than asked for: that was all that fits. None: not one of each kind does.
  [[nodiscard]] std::vector<MachineShare> place(const PlacedJob& job);
  [[nodiscard]] std::span<const std::int64_t> free_on(std::size_t machine) const noexcept {
    return free_[machine];
  }

 private:
  using Ranked = std::pair<std::int64_t, std::uint32_t>;  // less what is free, machine
  [[nodiscard]] std::uint32_t scarcest(const PlacedJob& job) const noexcept;
  [[nodiscard]] double share_of(const PlacedJob& job, std::uint32_t resource) const noexcept;
  [[nodiscard]] std::vector<std::uint32_t> first_machines(std::uint32_t resource,
                                                          std::size_t most) const;
  [[nodiscard]] std::size_t fewest_by_sums(const PlacedJob& job,
                                           std::span<const std::uint32_t> machines) const;
  [[nodiscard]] bool fits(const PlacedJob& job, const MachineShare& share) const;
  [[nodiscard]] std::vector<MachineShare> what_fits(const PlacedJob& job, std::uint32_t resource);
  void commit(const PlacedJob& job, const MachineShare& share);

  std::vector<std::vector<std::int64_t>> free_;
  std::vector<std::int64_t> total_;                // by resource, free at first
  std::vector<std::set<Ranked>> most_free_first_;  // by resource
};

}  // namespace berth::optimus
