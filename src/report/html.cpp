#include "report/html.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"
#include "base/json_writer.h"
#include "report/run_json.h"

namespace berth {

namespace {

constexpr std::size_t kTimelinePoints = 2000;

double to_millis(double value) { return std::round(value * 1000) / 1000; }
double to_millis(Time time) { return to_millis(to_seconds(time)); }

template <class Rows, class Get>
void put_column(JsonWriter& json, std::string_view name, const Rows& rows, Get get) {
  json.key(name).begin_array();
  for (const auto& row : rows) json.value(get(row));
  json.end_array();
}

void put_cdf(JsonWriter& json, std::string_view name, const Cdf& cdf) {
  json.key(name).begin_object();
  put_column(json, "x", cdf.x, [](double x) { return std::round(x * 1e6) / 1e6; });
  put_column(json, "p", cdf.p, [](double p) { return std::round(p * 1e7) / 1e7; });
  json.end_object();
}

void put_timeline(JsonWriter& json, const RunData& run) {
  json.key("timeline");
  if (run.timeline.size() < 2) {
    json.null();
    return;
  }
  const auto points = thinned(run.timeline, kTimelinePoints);
  const auto level = [](double Levels::*field) {
    return [field](const TimelinePoint& point) { return to_millis(point.levels.*field); };
  };
  json.begin_object();
  put_column(json, "t", points, [](const TimelinePoint& point) { return to_millis(point.at); });
  put_column(json, "queue", points, level(&Levels::queue));
  put_column(json, "queued_gpus", points, level(&Levels::queued_gpus));
  put_column(json, "busy", points, level(&Levels::busy));
  put_column(json, "running", points, level(&Levels::running));
  put_column(json, "capacity", points, level(&Levels::capacity));
  json.end_object();
}

void put_gantt(JsonWriter& json, const RunData& run) {
  const Gantt& gantt = *run.gantt;
  json.begin_object().key("nodes").begin_array();
  for (const NodeFacts& node : run.cluster.nodes) {
    json.begin_object().field("name", node.name).field("gpus", node.gpus).field("type", node.type);
    json.field("rack", node.rack).end_object();
  }
  json.end_array().key("jobs").begin_array();
  for (const Gantt::Job& job : gantt.jobs) {
    json.begin_object()
        .field("id", job.id)
        .field("gpus", job.gpus)
        .field("user", job.user)
        .end_object();
  }
  json.end_array();
  put_column(json, "lane", gantt.bars, [](const GanttBar& bar) { return bar.lane; });
  put_column(json, "start", gantt.bars, [](const GanttBar& bar) { return to_millis(bar.start); });
  put_column(json, "end", gantt.bars, [](const GanttBar& bar) { return to_millis(bar.end); });
  put_column(json, "job", gantt.bars, [](const GanttBar& bar) { return bar.job; });
  put_column(json, "kind", gantt.bars,
             [](const GanttBar& bar) { return bar.kind == IntervalKind::Run ? 0 : 1; });
  json.field("shown", gantt.bars.size()).field("total", gantt.total).end_object();
}

/// A generous guess, so that the page stays below its limit without writing everything twice.
std::size_t gantt_bytes(const RunData& run) {
  std::size_t bytes = run.gantt->bars.size() * 48;
  for (const Gantt::Job& job : run.gantt->jobs) bytes += 32 + job.id.size() + job.user.size();
  for (const NodeFacts& node : run.cluster.nodes)
    bytes += 44 + node.name.size() + node.type.size() + node.rack.size();
  return bytes;
}

void put_groups(JsonWriter& json, std::string_view name, const std::vector<GroupRow>& groups) {
  json.key(name).begin_array();
  for (const GroupRow& group : groups) {
    json.begin_object()
        .field("label", group.label)
        .field("jobs", group.jobs)
        .field("avg_jct", group.avg_jct);
    json.field("median_jct", group.median_jct)
        .field("p95_jct", group.p95_jct)
        .field("avg_queue_time", group.avg_queue_time);
    json.field("gpu_hours", group.gpu_hours).field("preemptions", group.preemptions).end_object();
  }
  json.end_array();
}

enum class WithGantt : bool { No, Yes };

void put_run(JsonWriter& json, const RunData& run, WithGantt with_gantt) {
  const Summary& summary = run.summary;
  json.begin_object().field("policy", summary.policy).field("label", summary.label);
  json.field("placement", summary.placement).field("estimator", summary.estimator);
  json.field("seed", summary.seed).field("digest", summary.digest);
  json.key("summary").begin_object();
  put_metrics(json, summary);
  json.end_object();
  put_confidence(json, run);
  json.key("cdf").begin_object();
  put_cdf(json, "jct", run.jct);
  put_cdf(json, "queue", run.queue_time);
  put_cdf(json, "slowdown", run.slowdown);
  put_cdf(json, "ftf", run.ftf);
  json.end_object();
  put_timeline(json, run);
  json.key("gantt");
  if (with_gantt == WithGantt::Yes)
    put_gantt(json, run);
  else
    json.null();
  put_groups(json, "by_size", run.by_size);
  put_groups(json, "by_user", run.by_user);
  json.key("preemption_histogram").begin_array();
  for (const auto& [preemptions, jobs] : run.preemption_histogram) {
    json.begin_array().value(preemptions).value(jobs).end_array();
  }
  json.end_array().key("rejected").begin_array();
  for (const auto& [job, reason] : run.rejected)
    json.begin_object().field("job", job).field("reason", reason).end_object();
  json.end_array().end_object();
}

std::string title_of(std::span<const RunData> runs, const ReportLabels& labels) {
  if (!labels.title.empty()) return labels.title;
  if (runs.empty()) return "berth";
  const std::string what =
      runs.size() == 1 ? runs.front().summary.label : fmt::format("{} policies", runs.size());
  return fmt::format("{} on {}", what, runs.front().cluster.name);
}

}  // namespace

std::string report_json(std::span<const RunData> runs, const ReportLabels& labels) {
  JsonWriter json;
  json.begin_object().field("version", 1).field("title", title_of(runs, labels));
  json.field("generated_by", "berth " BERTH_VERSION);
  if (!runs.empty()) put_facts(json, runs.front());
  json.key("baseline");
  if (labels.baseline)
    json.value(*labels.baseline);
  else
    json.null();
  json.key("runs").begin_array();
  constexpr std::size_t kWithoutGantt = 200'000;  // what the rest of a run takes at most
  std::size_t planned = report_page().size() + runs.size() * kWithoutGantt;
  for (const RunData& run : runs) {
    WithGantt with_gantt = WithGantt::No;
    if (run.gantt && !run.gantt->bars.empty() && planned + gantt_bytes(run) <= kMaxReportBytes) {
      planned += gantt_bytes(run);
      with_gantt = WithGantt::Yes;
    }
    put_run(json, run, with_gantt);
  }
  json.end_array().end_object();
  return json.str();
}

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
