// Results as people read them in a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "metrics/run_data.h"

namespace berth {

/// One row per run: JCT, queueing, makespan, utilisation, preemptions and the ratio of average JCT
/// to the baseline (a policy or label; nothing: no ratio). With several seeds each mean carries its
/// ± (95 %).
[[nodiscard]] std::string comparison_table(std::span<const RunData> runs,
                                           const std::optional<std::string>& baseline);
/// The main numbers of one run, one per line.
[[nodiscard]] std::string summary_table(const Summary& summary);
/// The same rows for spreadsheets: every metric of metrics(), with _low and _high columns for
/// seeds.
[[nodiscard]] std::string comparison_csv(std::span<const RunData> runs);

}  // namespace berth
