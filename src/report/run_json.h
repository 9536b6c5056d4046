// Pieces of JSON that summary.json and the report page share.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "metrics/run_data.h"

namespace berth {

struct SummaryExtras {         // what read_run.h needs to find its way
  std::string directory = {};  // of the run below the comparison
  bool is_baseline = false;
  std::string title = {};
};

void put_value(JsonWriter& json, std::string_view name, const std::optional<double>& value);
void put_metrics(JsonWriter& json, const Summary& summary);
/// "confidence": {metric: [low, high]} or null for a single seed.
void put_confidence(JsonWriter& json, const RunData& run);
/// "trace" and "cluster".
void put_facts(JsonWriter& json, const RunData& run);
/// One line per entry in the outer `levels` levels; deeper ones stay on their line.
[[nodiscard]] std::string indented(std::string_view json, int levels);

[[nodiscard]] std::string summary_json(const RunData& run, const SummaryExtras& extras);
[[nodiscard]] std::string summaries_json(std::span<const RunData> runs,
                                         std::span<const SummaryExtras> extras);

}  // namespace berth
