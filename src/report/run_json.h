// summary.json as text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "metrics/run_data.h"

namespace berth {

struct SummaryExtras {         // what read_run.h needs to find its way
  std::string directory = {};  // of the run below the comparison
  bool is_baseline = false;
  std::string title = {};
};

/// One line per entry in the outer `levels` levels; deeper ones stay on their line.
[[nodiscard]] std::string indented(std::string_view json, int levels);

[[nodiscard]] std::string summary_json(const RunData& run, const SummaryExtras& extras);
[[nodiscard]] std::string summaries_json(std::span<const RunData> runs,
                                         std::span<const SummaryExtras> extras);

}  // namespace berth
