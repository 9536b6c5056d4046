// Which figures a set of runs has, and the data of each. Units are chosen once per figure, so that
// lines and bars of one picture can be compared.

#include "report/figures.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/file.h"
#include "report/chart.h"

namespace berth {

namespace {

constexpr std::size_t kTimelinePoints = 800;

LineChart cdf_chart(std::span<const RunData> runs, std::string title, std::string x_title,
                    Cdf RunData::*cdf) {
  LineChart chart{.title = std::move(title),
                  .x = {.title = std::move(x_title), .scale = Scale::Log},
                  .y = {.title = "Share of jobs", .low = 0, .high = 1},
                  .lines = {}};
  for (const RunData& run : runs) {
    const Cdf& values = run.*cdf;
    Line line{run.summary.label, {}};
    // The curve rises from zero at the smallest value instead of starting in the air.
    if (!values.x.empty()) line.points.emplace_back(values.x.front(), 0);
    for (std::size_t i = 0; i < values.x.size(); ++i)
      line.points.emplace_back(values.x[i], values.p[i]);
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

struct TimeUnit {
  std::string_view name;
  double seconds;
};
// So that axes run to tens or hundreds, not to millions.
TimeUnit unit_for(double span) {
  if (span < 600) return {"s", 1};
  if (span < 3 * 3600) return {"min", 60};
  if (span < 4 * 86400) return {"h", 3600};
  return {"days", 86400};
}

double end_of(const RunData& run) {
  return run.timeline.empty() ? 0 : to_seconds(run.timeline.back().at);
}

// Thinned to what a picture can show; means over time stay exact.
LineChart timeline_chart(std::span<const RunData> runs, std::string title, std::string y_title,
                         double Levels::*level) {
  double span = 0;
  for (const RunData& run : runs) span = std::max(span, end_of(run));
  const TimeUnit unit = unit_for(span);
  LineChart chart{
      .title = std::move(title),
      .x = {.title = fmt::format("Time ({})", unit.name), .low = 0, .high = span / unit.seconds},
      .y = {.title = std::move(y_title)},
      .lines = {}};
  for (const RunData& run : runs) {
    Line line{run.summary.label, {}};
    for (const TimelinePoint& point : thinned(run.timeline, kTimelinePoints)) {
      line.points.emplace_back(to_seconds(point.at) / unit.seconds, point.levels.*level);
    }
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

// The largest of the averages: no bar is then below the unit by orders of magnitude.
double typical_jct(std::span<const RunData> runs) {
  double largest = 0;
  for (const RunData& run : runs) largest = std::max(largest, run.summary.avg_jct.value_or(0));
  return largest;
}

BarChart average_chart(std::span<const RunData> runs) {
  const TimeUnit unit = unit_for(typical_jct(runs));
  const bool has_seeds =
      std::ranges::any_of(runs, [](const RunData& run) { return run.seeds.size() > 1; });
  BarChart chart{.title = has_seeds ? "Average JCT by policy with 95 % confidence intervals"
                                    : "Average JCT by policy",
                 .y_title = fmt::format("Average JCT ({})", unit.name),
                 .x_title = "Policy",
                 .categories = {},
                 .series = {{"average JCT", {}}}};
  for (const RunData& run : runs) {
    Bar bar;
    if (run.summary.avg_jct) bar.value = *run.summary.avg_jct / unit.seconds;
    if (const auto interval = confidence_of(run, *find_metric("avg_jct"))) {
      bar.whisker = std::pair(interval->low() / unit.seconds, interval->high() / unit.seconds);
    }
    chart.categories.push_back(run.summary.label);
    chart.series.front().bars.push_back(bar);
  }
  return chart;
}

BarChart size_chart(std::span<const RunData> runs) {
  double largest = 0;
  // Only classes that some run has: a trace of one-GPU jobs gets one group of bars.
  std::vector<std::string> sizes;  // in the order of the classes
  for (const std::string_view label : {"1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", ">64"}) {
    for (const RunData& run : runs) {
      const auto found = std::ranges::find(run.by_size, label, &GroupRow::label);
      if (found == run.by_size.end()) continue;
      largest = std::max(largest, found->avg_jct);
      if (sizes.empty() || sizes.back() != label) sizes.emplace_back(label);
    }
  }
  const TimeUnit unit = unit_for(largest);
  BarChart chart{.title = "Average JCT by job size",
                 .y_title = fmt::format("Average JCT ({})", unit.name),
                 .x_title = "GPUs of the job",
                 .categories = sizes,
                 .series = {}};
  for (const RunData& run : runs) {
    BarSeries series{run.summary.label, {}};
    for (const std::string& size : sizes) {
      const auto found = std::ranges::find(run.by_size, size, &GroupRow::label);
      Bar bar;
      if (found != run.by_size.end()) bar.value = found->avg_jct / unit.seconds;
      series.bars.push_back(bar);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

std::vector<Figure> figures(std::span<const RunData> runs) {
  std::vector<Figure> all;
  const auto any = [&](auto has) { return std::ranges::any_of(runs, has); };
  if (any([](const RunData& run) { return !run.jct.x.empty(); })) {
    all.push_back({"jct_cdf", to_svg(cdf_chart(runs, "Distribution of job completion times",
                                               "Job completion time (s)", &RunData::jct))});
    all.push_back({"queue_cdf", to_svg(cdf_chart(runs, "Distribution of queueing times",
                                                 "Queueing time (s)", &RunData::queue_time))});
    all.push_back({"avg_jct", to_svg(average_chart(runs))});
    all.push_back({"jct_by_size", to_svg(size_chart(runs))});
  }
  if (any([](const RunData& run) { return run.timeline.size() > 1; })) {
    all.push_back({"queue_length", to_svg(timeline_chart(runs, "Waiting jobs over time",
                                                         "Waiting jobs", &Levels::queue))});
    all.push_back({"busy_gpus", to_svg(timeline_chart(runs, "Busy GPUs over time", "Busy GPUs",
                                                      &Levels::busy))});
  }
  return all;
}

Result<void> write_figures(const std::string& dir, std::span<const RunData> runs) {
  const std::filesystem::path folder = std::filesystem::path(dir) / "figures";
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return fail(fmt::format("{}: cannot create: {}", folder.string(), code.message()));
  for (const Figure& figure : figures(runs)) {
    BERTH_TRY_VOID(write_file((folder / (figure.name + ".svg")).string(), figure.svg));
  }
  return {};
}

}  // namespace berth
