#include "placements/target_workload.h"

#include <algorithm>

namespace berth {

namespace {

template <class T>
void sort_unique(std::vector<T>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::size_t steps_reached(const std::vector<std::int64_t>& steps, std::int64_t value) noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(steps, value) - steps.begin());
}

}  // namespace

TargetWorkload::TargetWorkload(std::vector<TaskClass> classes, std::size_t pools)
    : classes_(std::move(classes)) {
  for (const TaskClass& each : classes_) {
    total_weight_ += each.weight;
    cpu_steps_.push_back(each.demand.cpus_milli);
    memory_steps_.push_back(each.demand.memory_mib);
    if (each.demand.gpus > 0) gpu_demands_.push_back({each.demand.gpu_milli, each.demand.gpus});
  }
  sort_unique(cpu_steps_);
  sort_unique(memory_steps_);
  sort_unique(gpu_demands_);
  for (const TaskClass& each : classes_) {
    const GpuDemand wanted{each.demand.gpu_milli, each.demand.gpus};
    const auto at = std::ranges::lower_bound(gpu_demands_, wanted);
    demand_of_.push_back(static_cast<std::uint32_t>(at - gpu_demands_.begin()));
  }
  row_of_.assign(pools * (cpu_steps_.size() + 1) * (memory_steps_.size() + 1), 0);
}

std::uint32_t TargetWorkload::make_row(PoolId pool, std::int64_t cpus, std::int64_t memory) const {
  const std::size_t begin = rows_.size();
  rows_.resize(begin + gpu_demands_.size());
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const NodeDemand& demand = classes_[i].demand;
    if (demand.gpus > 0 && demand.cpus_milli <= cpus && demand.memory_mib <= memory &&
        demand.accepts(pool)) {
      rows_[begin + demand_of_[i]] += classes_[i].weight;
    }
  }
  return static_cast<std::uint32_t>(begin / gpu_demands_.size()) + 1;
}

std::span<const std::int64_t> TargetWorkload::able(const NodeRooms::Room& room) const {
  const std::size_t cpus = steps_reached(cpu_steps_, room.cpus_milli);
  const std::size_t memory = steps_reached(memory_steps_, room.memory_mib);
  const std::size_t cell =
      (room.pool.value * (cpu_steps_.size() + 1) + cpus) * (memory_steps_.size() + 1) + memory;
  if (row_of_[cell] == 0) row_of_[cell] = make_row(room.pool, room.cpus_milli, room.memory_mib);
  return {rows_.data() + (row_of_[cell] - 1) * gpu_demands_.size(), gpu_demands_.size()};
}

std::int64_t TargetWorkload::fragment(const NodeRooms::Room& room,
                                      std::span<const std::uint16_t> free) const {
  const std::int64_t all = room.free_milli;
  if (gpu_demands_.empty()) return total_weight_ * all;
  const auto able_weight = able(room);
  std::int64_t saved = 0;  // weight times what the able ones can use
  std::int64_t too_small = 0;
  std::size_t device = 0;
  for (std::size_t i = 0; i < gpu_demands_.size(); ++i) {
    while (device < free.size() && free[device] < gpu_demands_[i].gpu_milli)
      too_small += free[device++];
    const auto large_enough = static_cast<std::int32_t>(free.size() - device);
    if (large_enough >= gpu_demands_[i].gpus) saved += able_weight[i] * (all - too_small);
  }
  return total_weight_ * all - saved;
}

std::vector<TargetWorkload::TaskClass> WorkloadHistory::typical(double coverage,
                                                                std::size_t most) const {
  std::vector<TargetWorkload::TaskClass> classes;
  std::int64_t total = 0;
  for (const auto& [demand, count] : counts_) {
    classes.push_back({demand, count});
    total += count;
  }
  std::ranges::stable_sort(  // of equals the smaller demand, as the map had them
      classes, std::ranges::greater{}, [](const auto& each) { return each.weight; });
  std::int64_t covered = 0;
  std::size_t kept = 0;
  while (kept < std::min(classes.size(), most) &&
         static_cast<double>(covered) < coverage * static_cast<double>(total)) {
    covered += classes[kept++].weight;
  }
  classes.resize(kept);
  return classes;
}

}  // namespace berth
