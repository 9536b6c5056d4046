#include "policies/optimus/task_placement.h"

#include <algorithm>
#include <numeric>

namespace berth::optimus {

namespace {

std::int64_t total_of(const PlacedJob& job, std::uint32_t resource) noexcept {
  std::int64_t total = 0;
  for (const TaskKind kind : {TaskKind::ParameterServer, TaskKind::Worker}) {
    for (const auto& [of, amount] : job.demand.of(kind).amounts())
      total += of == resource ? amount * job.tasks.of(kind) : 0;
  }
  return total;
}

/// Round robin: the i-th of `machines` gets one of every `machines`-th task.
std::int32_t dealt(std::int32_t tasks, std::size_t machines, std::size_t i) noexcept {
  const auto n = static_cast<std::int32_t>(machines);
  return tasks / n + (static_cast<std::int32_t>(i) < tasks % n ? 1 : 0);
}

}  // namespace

TaskPlacer::TaskPlacer(std::vector<std::vector<std::int64_t>> free) : free_(std::move(free)) {
  if (free_.empty()) return;
  total_.assign(free_.front().size(), 0);
  most_free_first_.resize(total_.size());
  for (std::uint32_t machine = 0; machine < free_.size(); ++machine) {
    for (std::size_t r = 0; r < total_.size(); ++r) {
      total_[r] += free_[machine][r];
      most_free_first_[r].insert({-free_[machine][r], machine});
    }
  }
}

double TaskPlacer::share_of(const PlacedJob& job, std::uint32_t resource) const noexcept {
  return static_cast<double>(total_of(job, resource)) /
         static_cast<double>(std::max<std::int64_t>(total_[resource], 1));
}

std::uint32_t TaskPlacer::scarcest(const PlacedJob& job) const noexcept {
  std::uint32_t best = 0;
  for (std::uint32_t r = 1; r < total_.size(); ++r) {
    if (share_of(job, r) > share_of(job, best)) best = r;
  }
  return best;
}

std::vector<std::size_t> TaskPlacer::order(std::span<const PlacedJob> jobs) const {
  std::vector<std::pair<double, std::size_t>> keyed;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    keyed.emplace_back(total_.empty() ? 0 : share_of(jobs[i], scarcest(jobs[i])), i);
  std::ranges::sort(keyed);
  std::vector<std::size_t> order(jobs.size());
  std::ranges::transform(keyed, order.begin(), [](const auto& entry) { return entry.second; });
  return order;
}

std::vector<std::uint32_t> TaskPlacer::first_machines(std::uint32_t resource,
                                                      std::size_t most) const {
  std::vector<std::uint32_t> machines;
  for (const auto& [less_free, machine] : most_free_first_[resource]) {
    if (machines.size() == most || less_free == 0) break;
    machines.push_back(machine);
  }
  return machines;
}

/// No fewer of the first machines have enough of everything together.
std::size_t TaskPlacer::fewest_by_sums(const PlacedJob& job,
                                       std::span<const std::uint32_t> machines) const {
  std::size_t fewest = 1;
  for (std::uint32_t r = 0; r < total_.size(); ++r) {
    std::int64_t lacking = total_of(job, r);
    std::size_t k = 0;
    for (; k < machines.size() && lacking > 0; ++k) lacking -= free_[machines[k]][r];
    fewest = std::max(fewest, lacking > 0 ? machines.size() + 1 : k);
  }
  return fewest;
}

bool TaskPlacer::fits(const PlacedJob& job, const MachineShare& share) const {
  std::vector<std::int64_t> free = free_[share.machine];
  return try_take(free, job.demand, share.tasks);
}

void TaskPlacer::commit(const PlacedJob& job, const MachineShare& share) {
  std::vector<std::int64_t>& free = free_[share.machine];
  for (std::size_t r = 0; r < free.size(); ++r)
    most_free_first_[r].erase({-free[r], share.machine});
  take(free, job.demand, share.tasks);
  for (std::size_t r = 0; r < free.size(); ++r)
    most_free_first_[r].insert({-free[r], share.machine});
}

std::vector<MachineShare> TaskPlacer::place(const PlacedJob& job) {
  if (free_.empty()) return {};
  const std::uint32_t resource = scarcest(job);
  // More machines than tasks of a kind would stay empty.
  const auto most = static_cast<std::size_t>(std::max(job.tasks.ps, job.tasks.workers));
  const std::vector<std::uint32_t> machines = first_machines(resource, most);
  std::vector<MachineShare> shares;
  for (std::size_t k = fewest_by_sums(job, machines); k <= machines.size(); ++k) {
    shares.clear();
    for (std::size_t i = 0; i < k; ++i) {
      shares.push_back({machines[i], {dealt(job.tasks.ps, k, i), dealt(job.tasks.workers, k, i)}});
    }
    const auto fits_there = [&](const MachineShare& share) { return fits(job, share); };
    if (!std::ranges::all_of(shares, fits_there)) continue;
    for (const MachineShare& share : shares) commit(job, share);
    return shares;
  }
  return what_fits(job, resource);
}

/// One parameter server, one worker and so on, each on the first machine with room for it.
std::vector<MachineShare> TaskPlacer::what_fits(const PlacedJob& job, std::uint32_t resource) {
  std::vector<MachineShare> shares;
  for (const std::uint32_t machine : first_machines(resource, free_.size()))
    shares.push_back({machine, {}});
  TaskCounts placed;
  const auto put_one = [&](TaskKind kind) {
    if (placed.of(kind) == job.tasks.of(kind)) return false;
    for (MachineShare& share : shares) {
      ++share.tasks.of(kind);
      if (fits(job, share)) {
        ++placed.of(kind);
        return true;
      }
      --share.tasks.of(kind);
    }
    return false;
  };
  bool goes_on = true;
  while (goes_on) {
    goes_on = put_one(TaskKind::ParameterServer);
    goes_on = put_one(TaskKind::Worker) || goes_on;
  }
  const bool runs =
      placed.workers > 0 && (placed.ps > 0 || job.tasks.ps == 0);  // at least one of each
  if (!runs) return {};
  std::erase_if(shares, [](const MachineShare& share) { return share.tasks.total() == 0; });
  for (const MachineShare& share : shares) commit(job, share);
  return shares;
}

}  // namespace berth::optimus
