// Execution plans of large models: data, tensor and pipeline parallel, so many micro-batches a
// pipeline. What a scheduler needs of them is the best throughput for each number of GPUs: a curve
// with gaps, since a plan fits only the product of its degrees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/level.h"

namespace berth {

struct ParallelPlan {
  std::int32_t data = 1;
  std::int32_t tensor = 1;  // inside one server
  std::int32_t pipeline = 1;
  std::int32_t micro_batches = 1;  // per pipeline and iteration

  [[nodiscard]] constexpr std::int32_t gpus() const noexcept { return data * tensor * pipeline; }
  /// Share of an iteration in which a stage of the pipeline waits.
  [[nodiscard]] constexpr double bubbles() const noexcept {
    return static_cast<double>(pipeline - 1) / (micro_batches + pipeline - 1);
  }
};

/// Seconds of one micro-batch in a stage, of handing it on, and of synchronising the replicas;
/// `overlapped` of the latter is hidden behind computing.
struct PlanTimes {
  double stage = 0;
  double handover = 0;
  double synchronise = 0;
  double overlapped = 0.5;
};

/// (mb + pp - 1) (stage + handover) + (1 - overlapped) synchronise
[[nodiscard]] constexpr double iteration_seconds(const ParallelPlan& plan,
                                                 const PlanTimes& times) noexcept {
  return (plan.micro_batches + plan.pipeline - 1) * (times.stage + times.handover) +
         (1 - times.overlapped) * times.synchronise;
}

struct PlanRow {
  std::int32_t gpus = 1;
  Level level = Level::Device;
  double throughput = 0;
  std::int32_t memory_mib = 0;  // of one device
};

/// Plans of one model on one device type.
class PlanTable {
 public:
  void add(const PlanRow& row) { rows_.push_back(row); }
  /// The best plan for exactly so many GPUs that are at most so far apart and have so much memory;
  /// nothing if no plan is made for them.
  [[nodiscard]] std::optional<double> best(std::int32_t gpus, Level level,
                                           std::int32_t memory_mib) const {
    std::optional<double> found;
    for (const PlanRow& row : rows_) {
      if (row.gpus == gpus && row.level >= level && row.memory_mib <= memory_mib)
        found = std::max(found.value_or(0), row.throughput);
    }
    return found;
  }

 private:
  std::vector<PlanRow> rows_;
};

}  // namespace berth
