// The columns of squeue: of jobs, and of steps with -s.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/answers.h"
#include "client/slurm/facts.h"
#include "client/slurm/format.h"
#include "model/step.h"

namespace berth::client::slurm {

/// A line of squeue, and what is needed to tell of it; all borrowed.
struct QueueItem {
  const JobRow& job;
  const std::string& indices;  // of the jobs it stands for; empty: itself alone
  std::int64_t now = 0;
  const NodeTypes& types;
  const std::string& cluster;
};
[[nodiscard]] std::span<const ColumnName> queue_columns();
[[nodiscard]] std::string queue_value(const QueueItem& item, std::size_t column);

struct StepItem {
  const JobRow& job;
  const StepView& step;
  std::int64_t now = 0;
};
[[nodiscard]] std::span<const ColumnName> step_columns();
[[nodiscard]] std::string step_value(const StepItem& item, std::size_t column);

}  // namespace berth::client::slurm
