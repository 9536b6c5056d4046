// The tasks of a training job: parameter servers and workers, and what one of them takes of the
// cluster's (or a machine's) resources. A job that trains by all-reduce has workers only.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/check.h"

namespace berth::optimus {

enum class TaskKind : std::uint8_t { ParameterServer, Worker };

struct TaskCounts {
  std::int32_t ps = 0;
  std::int32_t workers = 0;

  [[nodiscard]] std::int32_t total() const noexcept { return ps + workers; }
  [[nodiscard]] std::int32_t& of(TaskKind kind) noexcept {
    return kind == TaskKind::ParameterServer ? ps : workers;
  }
  [[nodiscard]] std::int32_t of(TaskKind kind) const noexcept {
    return kind == TaskKind::ParameterServer ? ps : workers;
  }
  friend auto operator<=>(const TaskCounts&, const TaskCounts&) = default;
};

struct ResourceAmount {
  std::uint32_t resource = 0;
  std::int64_t amount = 0;
};

/// Of one task; a resource is named once.
class TaskDemand {
 public:
  static constexpr std::size_t kMaxResources = 4;  // GPU, CPU, memory, bandwidth
  TaskDemand() = default;
  TaskDemand(std::initializer_list<ResourceAmount> amounts) {
    for (const ResourceAmount& amount : amounts) {
      BERTH_CHECK(size_ < kMaxResources, "a task takes a few kinds of resources");
      amounts_[size_++] = amount;
    }
  }
  [[nodiscard]] std::span<const ResourceAmount> amounts() const noexcept {
    return std::span{amounts_}.first(size_);
  }

 private:
  std::array<ResourceAmount, kMaxResources> amounts_{};
  std::size_t size_ = 0;
};

struct JobDemand {
  TaskDemand ps;
  TaskDemand worker;
  [[nodiscard]] const TaskDemand& of(TaskKind kind) const noexcept {
    return kind == TaskKind::ParameterServer ? ps : worker;
  }
};

/// Takes `count` tasks off what is free, or gives them back with a negative count.
inline void take(std::span<std::int64_t> free, const TaskDemand& demand, std::int64_t count) {
  for (const auto& [resource, amount] : demand.amounts()) free[resource] -= count * amount;
}
inline void take(std::span<std::int64_t> free, const JobDemand& demand, TaskCounts tasks) {
  take(free, demand.ps, tasks.ps);
  take(free, demand.worker, tasks.workers);
}
/// Is nothing overdrawn of what these tasks use?
[[nodiscard]] inline bool is_covered(std::span<const std::int64_t> free,
                                     const JobDemand& demand) noexcept {
  for (const TaskDemand* task : {&demand.ps, &demand.worker}) {
    for (const auto& [resource, amount] : task->amounts()) {
      if (free[resource] < 0) return false;
    }
  }
  return true;
}
/// Takes the tasks if there is room for all of them.
[[nodiscard]] inline bool try_take(std::span<std::int64_t> free, const JobDemand& demand,
                                   TaskCounts tasks) {
  take(free, demand, tasks);
  if (is_covered(free, demand)) return true;
  take(free, demand, {-tasks.ps, -tasks.workers});
  return false;
}

}  // namespace berth::optimus
