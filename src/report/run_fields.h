// Every field of what a run is told as: summary.json, which is read back, and the data of the
// report page, whose TypeScript types (web/report/src/types.ts) are made from this.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/run_data.h"
#include "report/live_report.h"
#include "wire/describe.h"

namespace berth {

/// 95 % intervals by metric.
using Intervals = std::vector<std::pair<std::string, std::array<double, 2>>>;
/// Nothing for a single seed.
[[nodiscard]] std::optional<Intervals> intervals_of(const RunData& run);

struct TypeFacts {
  std::string type;
  std::int64_t gpus = 0;
};
struct ClusterHead {
  std::string name;
  std::size_t nodes = 0;
  std::int64_t gpus = 0;
  std::vector<TypeFacts> types;
};
[[nodiscard]] ClusterHead head_of(const ClusterFacts& cluster);

struct SeedSummary {
  Summary summary;
};
/// summary.json: one of these, or a list of them.
struct SummaryFile {
  Summary summary;
  TraceFacts trace;
  ClusterHead cluster;
  std::optional<Intervals> confidence = {};
  std::vector<SeedSummary> seeds = {};
  std::optional<std::uint64_t> intervals_total = {}, actions_total = {};
  std::string directory = {};  // of the run below the comparison
  bool is_baseline = false;
  std::string title = {};
  std::string generated_by = "berth " BERTH_VERSION;
};

// The data of the page.
struct ReportTimeline {
  std::vector<TimelinePoint> points;
};
struct ReportGantt {
  const std::vector<NodeFacts>& nodes;
  const Gantt& gantt;
};
struct ReportCdfs {
  const RunData& run;
};
struct Rejection {
  std::string job, reason;
};
struct ReportRun {
  const RunData& run;
  bool has_gantt = false;
};
struct ReportData {
  std::string title;
  std::optional<TraceFacts> trace{};
  std::optional<ClusterHead> cluster{};
  std::optional<std::string> baseline{};
  std::vector<ReportRun> runs{};
  std::optional<LiveEnergy> live{};
};

namespace wire {

/// An empty run, to describe what refers to one.
inline const RunData& nothing() {
  static const RunData kNothing;
  return kNothing;
}

inline double to_millis(double value) { return std::round(value * 1000) / 1000; }
inline double to_millis(Time time) { return to_millis(to_seconds(time)); }

template <>
struct Fields<TraceFacts> {
  static constexpr std::string_view kName = "Trace";
  template <class Facts, class Visit>
  static void visit(Facts& f, Visit& v) {
    v("name", f.name);
    v("jobs", f.jobs);
    v("span", f.span_seconds, "seconds from the first submit to the last");
    v("gpu_seconds", f.gpu_seconds);
  }
};
template <>
struct Fields<TypeFacts> {
  static constexpr std::string_view kName = "GpuType";
  template <class Facts, class Visit>
  static void visit(Facts& f, Visit& v) {
    v("type", f.type);
    v("gpus", f.gpus);
  }
};
template <>
struct Fields<ClusterHead> {
  static constexpr std::string_view kName = "Cluster";
  template <class Head, class Visit>
  static void visit(Head& h, Visit& v) {
    v("name", h.name);
    v("nodes", h.nodes);
    v("gpus", h.gpus);
    v("types", h.types);
  }
};
template <>
struct Fields<SeedSummary> {
  static constexpr std::string_view kName = "SeedSummary";
  template <class Seed, class Visit>
  static void visit(Seed& s, Visit& v) {
    v("seed", s.summary.seed);
    v("digest", s.summary.digest);
    v("", by_table(s.summary, metrics()));
  }
};
template <>
struct Fields<SummaryFile> {
  static constexpr std::string_view kName = "SummaryFile";
  template <class File, class Visit>
  static void visit(File& f, Visit& v) {
    v("policy", f.summary.policy);
    v("", by_table(f.summary, metrics()));
    v("digest", f.summary.digest);
    v("label", f.summary.label);
    v("placement", f.summary.placement);
    v("estimator", f.summary.estimator);
    v("seed", f.summary.seed);
    v("recorded", if_any(f.summary.is_recorded));
    v("trace", f.trace);
    v("cluster", f.cluster);
    v("confidence", if_any(f.confidence), "95 % intervals of several seeds");
    v("seeds", if_any(f.seeds));
    v("intervals_total", if_any(f.intervals_total));
    v("actions_total", if_any(f.actions_total));
    v("directory", if_any(f.directory));
    v("baseline", if_any(f.is_baseline));
    v("title", if_any(f.title));
    v("generated_by", f.generated_by);
  }
};

template <>
struct Fields<Cdf> {
  static constexpr std::string_view kName = "Cdf";
  template <class Curve, class Visit>
  static void visit(Curve& c, Visit& v) {
    v("x", needed(column(c.x, [](double x) { return std::round(x * 1e6) / 1e6; })), "ascending");
    v("p", needed(column(c.p, [](double p) { return std::round(p * 1e7) / 1e7; })), "from 0 to 1");
  }
};
template <>
struct Fields<ReportCdfs> {
  static constexpr std::string_view kName = "Cdfs";
  static ReportCdfs example() { return {nothing()}; }
  template <class Cdfs, class Visit>
  static void visit(Cdfs& c, Visit& v) {
    v("jct", c.run.jct);
    v("queue", c.run.queue_time);
    v("slowdown", c.run.slowdown);
    v("ftf", c.run.ftf);
  }
};
template <>
struct Fields<ReportTimeline> {
  static constexpr std::string_view kName = "Timeline";
  static constexpr std::string_view kMeaning = "Step functions over t.";
  template <class Timeline, class Visit>
  static void visit(Timeline& t, Visit& v) {
    const auto level = [&](double Levels::*field) {
      return column(t.points,
                    [field](const TimelinePoint& point) { return to_millis(point.levels.*field); });
    };
    v("t", needed(column(t.points, [](const TimelinePoint& point) { return to_millis(point.at); })),
      "seconds");
    v("queue", level(&Levels::queue), "jobs submitted and not running");
    v("queued_gpus", level(&Levels::queued_gpus), "what they ask for");
    v("busy", level(&Levels::busy), "GPUs granted");
    v("running", level(&Levels::running), "jobs");
    v("capacity", level(&Levels::capacity), "GPUs of nodes that are up");
  }
};
template <>
struct Fields<NodeFacts> {
  static constexpr std::string_view kName = "GanttNode";
  template <class Node, class Visit>
  static void visit(Node& n, Visit& v) {
    v("name", n.name);
    v("gpus", n.gpus);
    v("type", n.type);
    v("rack", n.rack);
  }
};
template <>
struct Fields<Gantt::Job> {
  static constexpr std::string_view kName = "GanttJob";
  template <class Job, class Visit>
  static void visit(Job& j, Visit& v) {
    v("id", j.id);
    v("gpus", j.gpus);
    v("user", j.user);
  }
};
template <>
struct Fields<ReportGantt> {
  static constexpr std::string_view kName = "Gantt";
  static ReportGantt example() {
    static const Gantt kGantt;
    return {nothing().cluster.nodes, kGantt};
  }
  static constexpr std::string_view kMeaning = "One bar in each row of the columns.";
  template <class Chart, class Visit>
  static void visit(Chart& c, Visit& v) {
    const auto& bars = c.gantt.bars;
    const std::size_t shown = bars.size();
    v("nodes", c.nodes);
    v("jobs", c.gantt.jobs);
    v("lane", needed(column(bars, [](const GanttBar& bar) { return bar.lane; })),
      "running number of the device over all nodes");
    v("start", needed(column(bars, [](const GanttBar& bar) { return to_millis(bar.start); })),
      "seconds");
    v("end", needed(column(bars, [](const GanttBar& bar) { return to_millis(bar.end); })),
      "seconds");
    v("job", needed(column(bars, [](const GanttBar& bar) { return bar.job; })), "row of jobs");
    v("kind",
      column(bars, [](const GanttBar& bar) { return bar.kind == IntervalKind::Run ? 0 : 1; }),
      "0: run, 1: overhead");
    v("shown", shown, "bars here");
    v("total", c.gantt.total, "bars there would be without the limit");
  }
};
template <>
struct Fields<GroupRow> {
  static constexpr std::string_view kName = "Group";
  template <class Group, class Visit>
  static void visit(Group& g, Visit& v) {
    v("label", needed(g.label));
    v("jobs", g.jobs);
    v("avg_jct", g.avg_jct);
    v("median_jct", g.median_jct);
    v("p95_jct", g.p95_jct);
    v("avg_queue_time", g.avg_queue_time);
    v("gpu_hours", g.gpu_hours);
    v("preemptions", g.preemptions);
  }
};
template <>
struct Fields<Rejection> {
  static constexpr std::string_view kName = "Rejection";
  template <class Row, class Visit>
  static void visit(Row& r, Visit& v) {
    v("job", needed(r.job));
    v("reason", r.reason);
  }
};

template <>
struct Fields<ReportRun> {
  static constexpr std::string_view kName = "Run";
  static ReportRun example() { return {nothing()}; }
  template <class Told, class Visit>
  static void visit(Told& t, Visit& v) {
    const RunData& r = t.run;
    v("policy", r.summary.policy);
    v("label", needed(r.summary.label));
    v("placement", r.summary.placement);
    v("estimator", r.summary.estimator);
    v("seed", r.summary.seed);
    v("digest", r.summary.digest);
    v("summary", needed(by_table(r.summary, metrics())), "metrics by name (docs/metrics.md)");
    const std::optional<Intervals> confidence = intervals_of(r);
    v("confidence", confidence, "95 % intervals by metric; null: a single seed");
    const ReportCdfs cdfs{r};
    v("cdf", cdfs);
    std::optional<ReportTimeline> timeline;
    if (r.timeline.size() >= 2) timeline.emplace(ReportTimeline{thinned(r.timeline, 2'000)});
    v("timeline", std::as_const(timeline), "null: nothing was recorded");
    std::optional<ReportGantt> gantt;
    if (t.has_gantt) gantt.emplace(ReportGantt{r.cluster.nodes, *r.gantt});
    v("gantt", std::as_const(gantt), "null: not recorded, or the page would be too large");
    v("by_size", r.by_size);
    v("by_user", r.by_user);
    v("preemption_histogram",
      column(r.preemption_histogram,
             [](const std::pair<const std::uint32_t, std::size_t>& row) {
               return std::array<std::uint64_t, 2>{row.first, row.second};
             }),
      "preemptions, and how many jobs had so many");
    v("rejected", column(r.rejected, [](const std::pair<std::string, std::string>& row) {
        return Rejection{row.first, row.second};
      }));
  }
};

template <>
struct Fields<LiveEnergy::User> {
  static constexpr std::string_view kName = "UserEnergy";
  template <class User, class Visit>
  static void visit(User& u, Visit& v) {
    v("name", needed(u.name));
    v("kwh", needed(u.kwh));
  }
};
template <>
struct Fields<LiveEnergy::Node> {
  static constexpr std::string_view kName = "NodeEnergy";
  template <class Node, class Visit>
  static void visit(Node& n, Visit& v) {
    v("name", needed(n.name));
    v("kwh", n.kwh, "by what it was doing");
  }
};
template <>
struct Fields<LiveEnergy::Job> {
  static constexpr std::string_view kName = "JobEnergy";
  template <class Job, class Visit>
  static void visit(Job& j, Visit& v) {
    v("id", needed(j.id));
    v("name", needed(j.name));
    v("user", needed(j.user));
    v("state", needed(j.state));
    v("kwh", needed(j.kwh));
  }
};
template <>
struct Fields<LiveEnergy> {
  static constexpr std::string_view kName = "LiveEnergy";
  static constexpr std::string_view kMeaning = "What a live scheduler has used, in kWh.";
  template <class Energy, class Visit>
  static void visit(Energy& e, Visit& v) {
    v("nobody", e.nobody);
    v("users", column(e.users, [](const std::pair<const std::string, double>& row) {
        return LiveEnergy::User{row.first, row.second};
      }));
    v("nodes", e.nodes);
    v("jobs", e.jobs);
  }
};

template <>
struct Fields<ReportData> {
  static constexpr std::string_view kName = "Report";
  static constexpr std::string_view kMeaning =
      "What stands in the page. An older page or older data may lack any field.";
  template <class Data, class Visit>
  static void visit(Data& d, Visit& v) {
    const int version = 1;
    const std::string generated_by = "berth " BERTH_VERSION;
    v("version", version);
    v("title", d.title);
    v("generated_by", generated_by);
    v("trace", if_any(d.trace));
    v("cluster", if_any(d.cluster));
    v("baseline", d.baseline, "policy or label that ratios refer to");
    v("live", if_any(d.live));
    v("runs", needed(d.runs));
  }
};

}  // namespace wire

}  // namespace berth
