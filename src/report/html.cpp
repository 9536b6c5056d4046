#include "report/html.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "report/run_fields.h"
#include "wire/writer.h"

namespace berth {

namespace {

/// A generous guess, so that the page stays below its limit without writing everything twice.
std::size_t gantt_bytes(const RunData& run) {
  std::size_t bytes = run.gantt->bars.size() * 48;
  for (const Gantt::Job& job : run.gantt->jobs) bytes += 32 + job.id.size() + job.user.size();
  for (const NodeFacts& node : run.cluster.nodes)
    bytes += 44 + node.name.size() + node.type.size() + node.rack.size();
  return bytes;
}

std::string title_of(std::span<const RunData> runs, const ReportLabels& labels) {
  if (!labels.title.empty()) return labels.title;
  if (runs.empty()) return "berth";
  const auto recorded = static_cast<std::size_t>(
      std::ranges::count_if(runs, [](const RunData& run) { return run.summary.is_recorded; }));
  const std::string what = runs.size() == 1
                               ? runs.front().summary.label
                               : fmt::format("{} {}{}", runs.size() - recorded,
                                             runs.size() - recorded == 1 ? "policy" : "policies",
                                             recorded > 0 ? " beside what was recorded" : "");
  return fmt::format("{} on {}", what, runs.front().cluster.name);
}

}  // namespace

std::string report_json(std::span<const RunData> runs, const ReportLabels& labels) {
  ReportData data{.title = title_of(runs, labels), .baseline = labels.baseline};
  if (!runs.empty()) {
    data.trace = runs.front().trace;
    data.cluster = head_of(runs.front().cluster);
  }
  constexpr std::size_t kWithoutGantt = 200'000;  // what the rest of a run takes at most
  std::size_t planned = report_page().size() + runs.size() * kWithoutGantt;
  // In order until the page is full: the first runs keep their Gantt chart, later ones lose it.
  for (const RunData& run : runs) {
    const bool has_gantt =
        run.gantt && !run.gantt->bars.empty() && planned + gantt_bytes(run) <= kMaxReportBytes;
    if (has_gantt) planned += gantt_bytes(run);
    data.runs.push_back({run, has_gantt});
  }
  return wire::to_json(data);
}

// The page is one file: its data stand where the token was.
std::string page_with(std::string_view json) {
  const std::string_view page = report_page();
  const std::size_t token = page.find(kDataToken);
  BERTH_CHECK(token != std::string_view::npos,
              "the report page holds its data token (embed.cmake saw to it)");
  std::string html(page.substr(0, token));
  html += json;
  html += page.substr(token + kDataToken.size());
  return html;
}

std::string report_html(std::span<const RunData> runs, const ReportLabels& labels) {
  return page_with(report_json(runs, labels));
}

}  // namespace berth
