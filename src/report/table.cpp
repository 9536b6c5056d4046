// Tables for the terminal, and comparison.csv. A column of times has one unit, chosen by its
// median, so that digits can be compared from row to row.

#include "report/table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/text_table.h"
#include "report/csv.h"

namespace berth {

namespace {

struct TimeUnit {
  std::string_view name;
  double seconds;
};

/// One unit for all times of a table, so that digits compare: seconds up to ten minutes, then
/// minutes …
TimeUnit unit_for(double typical_seconds) {
  if (typical_seconds < 600) return {"s", 1};
  if (typical_seconds < 2 * 3600) return {"min", 60};
  if (typical_seconds < 4 * 86400) return {"h", 3600};
  return {"d", 86400};
}

// Three or four digits: more would pretend to be exact.
std::string plain(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value,
                     size >= 1000 || value == std::floor(value) ? 0
                     : size >= 100                              ? 1
                     : size >= 1                                ? 2
                                                                : 3);
}

const Metric& metric_named(std::string_view name) { return *find_metric(name); }

/// "12.3" or "12.3 ± 0.4"; "-" where the run has no such value.
std::string cell(const RunData& run, const Metric& metric, double scale) {
  const auto& value = run.summary.*metric.field;
  if (!value) return "-";
  std::string text = plain(*value / scale);
  if (const auto interval = confidence_of(run, metric))
    text += fmt::format(" ± {}", plain(interval->half_width / scale));
  return text;
}

const RunData* find_run(std::span<const RunData> runs, const std::optional<std::string>& name) {
  if (!name) return nullptr;
  // By label first: two runs may share a policy, never a label.
  auto found =
      std::ranges::find_if(runs, [&](const RunData& run) { return run.summary.label == *name; });
  if (found == runs.end())
    found =
        std::ranges::find_if(runs, [&](const RunData& run) { return run.summary.policy == *name; });
  return found == runs.end() ? nullptr : &*found;
}

std::string ratio_cell(const RunData& run, const RunData& baseline) {
  const auto value = run.summary.avg_jct;
  const auto reference = baseline.summary.avg_jct;
  if (!value || !reference || *reference <= 0) return "-";
  return fmt::format("{:.2f}x", *value / *reference);
}

struct ColumnSpec {
  std::string_view title;
  std::string_view metric;
  enum class Kind : unsigned char { Time, Share, Count } kind;
};
constexpr std::array kColumns{
    ColumnSpec{"avg JCT", "avg_jct", ColumnSpec::Kind::Time},
    ColumnSpec{"median", "median_jct", ColumnSpec::Kind::Time},
    ColumnSpec{"p95", "p95_jct", ColumnSpec::Kind::Time},
    ColumnSpec{"avg queue", "avg_queue_time", ColumnSpec::Kind::Time},
    ColumnSpec{"makespan", "makespan", ColumnSpec::Kind::Time},
    ColumnSpec{"util.", "gpu_utilization", ColumnSpec::Kind::Share},
    ColumnSpec{"preempt.", "preemptions", ColumnSpec::Kind::Count},
};

// The median: one run that went wrong must not turn all others into zeros.
TimeUnit unit_of_column(std::span<const RunData> runs, const Metric& metric) {
  std::vector<double> values;
  for (const RunData& run : runs) {
    if (const auto& value = run.summary.*metric.field) values.push_back(*value);
  }
  std::ranges::sort(values);
  return unit_for(quantile(values, 0.5).value_or(0));
}

}  // namespace

std::string comparison_table(std::span<const RunData> runs,
                             const std::optional<std::string>& baseline) {
  const RunData* reference = find_run(runs, baseline);
  std::vector<TextTable::Head> heads{{"policy", Align::Left}};
  std::vector<double> scales;
  for (const ColumnSpec& column : kColumns) {
    std::string title(column.title);
    double scale = 1;
    if (column.kind == ColumnSpec::Kind::Time) {
      const TimeUnit unit = unit_of_column(runs, metric_named(column.metric));
      title += fmt::format(" ({})", unit.name);
      scale = unit.seconds;
    } else if (column.kind == ColumnSpec::Kind::Share) {
      title += " (%)";
      scale = 0.01;
    }
    heads.push_back({std::move(title), Align::Right});
    scales.push_back(scale);
  }
  if (reference != nullptr)
    heads.push_back({fmt::format("vs {}", reference->summary.label), Align::Right});
  TextTable table{std::move(heads)};
  for (const RunData& run : runs) {
    std::vector<std::string> cells{run.summary.label};
    for (std::size_t i = 0; i < kColumns.size(); ++i)
      cells.push_back(cell(run, metric_named(kColumns[i].metric), scales[i]));
    if (reference != nullptr) cells.push_back(ratio_cell(run, *reference));
    table.add_row(std::move(cells));
  }
  return table.str();
}

std::string summary_table(const Summary& summary) {
  constexpr std::array<std::string_view, 17> kShown{
      "jobs",           "finished",    "rejected",        "avg_jct",
      "median_jct",     "p95_jct",     "p99_jct",         "avg_queue_time",
      "p95_queue_time", "makespan",    "gpu_utilization", "gpu_allocation",
      "fragmentation",  "preemptions", "migrations",      "avg_ftf",
      "deadline_misses"};
  TextTable table{{{"metric", Align::Left},
                   {"value", Align::Right},
                   {"", Align::Left},
                   {"meaning", Align::Left}}};
  for (const std::string_view name : kShown) {
    const Metric& metric = metric_named(name);
    const auto& value = summary.*metric.field;
    if (!value) continue;
    const bool is_share = metric.unit == "1" && metric.name != "avg_ftf";
    const std::string number = is_share ? plain(*value * 100) : plain(*value);
    const std::string unit = is_share ? "%"
                             : metric.unit == "s" && *value >= 600
                                 ? fmt::format("s  ({})", human_duration(*value))
                             : metric.unit == "s" ? "s"
                                                  : "";
    table.add_row({std::string(name), number, unit, std::string(metric.description)});
  }
  return table.str();
}

std::string comparison_csv(std::span<const RunData> runs) {
  const bool has_seeds =
      std::ranges::any_of(runs, [](const RunData& run) { return run.seeds.size() > 1; });
  std::string out = "policy,label,placement,estimator,seed,seeds,digest";
  for (const Metric& metric : metrics()) {
    out += fmt::format(",{}", metric.name);
    if (has_seeds) out += fmt::format(",{0}_low,{0}_high", metric.name);
  }
  out += '\n';
  for (const RunData& run : runs) {
    const Summary& summary = run.summary;
    for (const std::string& text :
         {summary.policy, summary.label, summary.placement, summary.estimator}) {
      put_csv(out, text);
      out += ',';
    }
    out += fmt::format("{},{},{}", summary.seed, std::max<std::size_t>(run.seeds.size(), 1),
                       summary.digest);
    for (const Metric& metric : metrics()) {
      const auto& value = summary.*metric.field;
      out += value ? fmt::format(",{}", *value) : ",";
      if (!has_seeds) continue;
      const auto interval = confidence_of(run, metric);
      out += interval ? fmt::format(",{},{}", interval->low(), interval->high()) : ",,";
    }
    out += '\n';
  }
  return out;
}

}  // namespace berth
