// report.html: one file that opens offline. The page is web/report/dist/report.html, put into the
// program at build time; this fills in the data. The data alone is one JSON object
// (docs/formats/outputs.md).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "metrics/run_data.h"
#include "report/run_output.h"

namespace berth {

/// The page without data; contains kDataToken exactly once.
[[nodiscard]] std::string_view report_page() noexcept;
inline constexpr std::string_view kDataToken = "__BERTH_DATA__";
/// Gantt charts are left out where the data would become larger than this.
inline constexpr std::size_t kMaxReportBytes = 24'000'000;

/// The page with this data.
[[nodiscard]] std::string page_with(std::string_view json);

[[nodiscard]] std::string report_json(std::span<const RunData> runs, const ReportLabels& labels);
[[nodiscard]] std::string report_html(std::span<const RunData> runs, const ReportLabels& labels);

}  // namespace berth
