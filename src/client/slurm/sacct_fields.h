// The fields of sacct: what each row, of a job, of an earlier run of it or of a step, has in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/answers.h"
#include "client/slurm/facts.h"
#include "client/slurm/sheet.h"
#include "model/step.h"

namespace berth::client::slurm {

/// A row of sacct; borrowed.
struct AccountRow {
  const JobRow& job;
  const StepView* step = nullptr;        // null: the job
  const AttemptView* attempt = nullptr;  // an earlier run
  std::string indices = {};              // of jobs of an array that wait alike
  double cpu_seconds = 0;                // of the job's steps
};

struct AccountFacts {
  const NodeTypes& types;
  std::string cluster;
  std::int64_t now = 0;
  Units units;
};

[[nodiscard]] const std::vector<SheetField>& account_fields();
[[nodiscard]] std::string account_value(const AccountRow& row, std::size_t field,
                                        const AccountFacts& facts);
/// Seconds that a step ran.
[[nodiscard]] double step_seconds(const StepView& step, std::int64_t now);

}  // namespace berth::client::slurm
