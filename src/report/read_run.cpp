// The reverse of output_directory.cpp, for `berth report`: everything that can be derived from the
// jobs is derived again, the rest comes from summary.json and the other files.

#include "report/read_run.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "metrics/derive.h"
#include "report/csv.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/run_fields.h"
#include "wire/reader.h"

namespace berth {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// What of a run summary.json says.
RunData run_of(SummaryFile file) {
  RunData run;
  run.summary = std::move(file.summary);
  if (run.summary.label.empty()) run.summary.label = run.summary.policy;
  run.trace = std::move(file.trace);
  run.cluster.name = std::move(file.cluster.name);
  run.cluster.gpus = file.cluster.gpus;
  for (TypeFacts& type : file.cluster.types)
    run.cluster.types.emplace_back(std::move(type.type), type.gpus);
  for (SeedSummary& seed : file.seeds) {
    Summary& one = run.seeds.emplace_back(std::move(seed.summary));
    one.policy = run.summary.policy;
    one.label = run.summary.label;
    one.placement = run.summary.placement;
    one.estimator = run.summary.estimator;
  }
  return run;
}

Duration duration_of(CsvFile& file, std::string_view column) {
  return seconds_to_duration(file.number_or_zero(column));
}

// Clamped: a cast of a huge number would be undefined.
std::uint32_t count_of(CsvFile& file, std::string_view column) {
  return static_cast<std::uint32_t>(std::clamp(file.number_or_zero(column), 0.0, 4e9));
}

JobOutcome read_job(CsvFile& file, Names& names) {
  JobOutcome job;
  job.id = names.intern(file.text("job_id"));
  job.user = names.intern(file.text("user"));
  job.group = names.intern(file.text("group"));
  job.queue = names.intern(file.text("queue"));
  job.model = names.intern(file.text("model"));
  job.reason = names.intern(file.text("reason"));
  const auto state = status_from(file.text("status"));
  if (!state) file.complain("status", fmt::format("unknown status '{}'", file.text("status")));
  job.state = state.value_or(JobState::Unknown);
  job.gpus = static_cast<std::int32_t>(std::clamp(file.number_or_zero("gpus"), 0.0, 2e9));
  job.submit = file.time("submit_time").value_or(kTimeZero);
  job.start = file.time("start_time");
  job.finish = file.time("finish_time");
  job.run_time = duration_of(file, "run_time");
  // Files of older versions lack some columns: what they meant then is put in their place.
  job.service = file.has("service") ? duration_of(file, "service") : job.run_time * job.gpus;
  job.soft_deadline = file.number_or_zero("soft_deadline") != 0;
  job.overhead = duration_of(file, "overhead");
  job.duration = duration_of(file, "duration");
  job.work = duration_of(file, "work");
  job.deadline = file.time("deadline");
  job.preemptions = count_of(file, "preemptions");
  job.migrations = count_of(file, "migrations");
  job.lost_attempts = count_of(file, "lost_attempts");
  job.retries = count_of(file, "retries");
  if (file.has("wasted")) job.wasted = duration_of(file, "wasted");
  return job;
}

Result<Outcomes> read_jobs(const std::string& path) {
  BERTH_TRY(auto file, CsvFile::open(path));
  for (const std::string_view column :
       {"job_id", "submit_time", "finish_time", "gpus", "status", "work"}) {
    if (!file.has(column))
      return fail(
          fmt::format("{}:1:1: no column '{}' (is this a jobs.csv of Berth?)", path, column));
  }
  Outcomes jobs;
  while (file.next()) jobs.rows.push_back(read_job(file, jobs.names));
  BERTH_TRY_VOID(file.check());
  count_neighbours(jobs.rows);
  return jobs;
}

Result<std::vector<TimelinePoint>> read_timeline(const std::string& path) {
  BERTH_TRY(auto file, CsvFile::open(path));
  std::vector<TimelinePoint> points;
  while (file.next()) {
    const Levels levels{.queue = file.number_or_zero("queue_length"),
                        .queued_gpus = file.number_or_zero("queued_gpus"),
                        .running = file.number_or_zero("running_jobs"),
                        .busy = file.number_or_zero("busy_gpus"),
                        .capacity = file.number_or_zero("capacity_gpus")};
    const Time at = file.time("time").value_or(kTimeZero);
    // The charts draw steps from point to point: a time that goes back would draw backwards.
    if (!points.empty() && at <= points.back().at)
      file.complain("time", "times must ascend");
    else
      points.push_back({at, levels});
  }
  BERTH_TRY_VOID(file.check());
  return points;
}

Result<std::vector<NodeFacts>> read_nodes(const std::string& path) {
  BERTH_TRY(auto file, CsvFile::open(path));
  std::vector<NodeFacts> nodes;
  while (file.next()) {
    const auto gpus = static_cast<std::int32_t>(std::clamp(file.number_or_zero("gpus"), 0.0, 64.0));
    nodes.push_back({std::string(file.text("node")), gpus, std::string(file.text("type")),
                     std::string(file.text("rack"))});
  }
  BERTH_TRY_VOID(file.check());
  return nodes;
}

// Lanes count devices over all nodes, in the order of nodes.csv.
Result<Gantt> read_intervals(const std::string& path, const std::vector<NodeFacts>& nodes) {
  BERTH_TRY(auto file, CsvFile::open(path));
  std::map<std::string, std::pair<std::uint32_t, std::int32_t>, std::less<>>
      lanes;  // of a node: first, number
  std::uint32_t next = 0;
  for (const NodeFacts& node : nodes) {
    lanes.emplace(node.name, std::pair(next, node.gpus));
    next += static_cast<std::uint32_t>(node.gpus);
  }
  Gantt gantt;
  std::map<std::string, std::uint32_t, std::less<>> jobs;
  while (file.next()) {
    const auto lane = lanes.find(file.text("node"));
    const double device = file.number_or_zero("device");
    if (lane == lanes.end() || device < 0 || device >= lane->second.second) {
      file.complain(
          "node", fmt::format("no device {} on node '{}' in nodes.csv", device, file.text("node")));
      continue;
    }
    const auto [job, is_new] =
        jobs.emplace(file.text("job_id"), static_cast<std::uint32_t>(gantt.jobs.size()));
    if (is_new) {
      gantt.jobs.push_back(
          {job->first, static_cast<std::int32_t>(std::clamp(file.number_or_zero("gpus"), 0.0, 2e9)),
           std::string(file.text("user"))});
    }
    gantt.bars.push_back({lane->second.first + static_cast<std::uint32_t>(device), job->second,
                          file.time("start_time").value_or(kTimeZero),
                          file.time("end_time").value_or(kTimeZero),
                          file.text("kind") == "run" ? IntervalKind::Run : IntervalKind::Overhead});
  }
  BERTH_TRY_VOID(file.check());
  gantt.total = gantt.bars.size();
  return gantt;
}

Result<void> read_files(const fs::path& dir, std::uint64_t intervals, RunData& run) {
  std::error_code code;
  BERTH_TRY(run.jobs, read_jobs((dir / "jobs.csv").string()));
  derive_from_jobs(run);
  if (fs::exists(dir / "timeline.csv", code)) {
    BERTH_TRY(run.timeline, read_timeline((dir / "timeline.csv").string()));
  }
  if (!fs::exists(dir / "nodes.csv", code)) return {};
  BERTH_TRY(run.cluster.nodes, read_nodes((dir / "nodes.csv").string()));
  if (!fs::exists(dir / "intervals.csv", code)) return {};
  BERTH_TRY(run.gantt, read_intervals((dir / "intervals.csv").string(), run.cluster.nodes));
  // The file may hold fewer bars than there were.
  run.gantt->total = std::max(run.gantt->total, intervals);
  return {};
}

Result<json> parse(const std::string& path) {
  BERTH_TRY(const std::string text, read_file(path));
  try {
    return json::parse(text);
  } catch (const json::exception& problem) {
    return fail(fmt::format("{}: {} (the file was cut or edited)", path, problem.what()));
  }
}

Result<RunSet> read_all(const fs::path& dir, const json& document) {
  const std::string path = (dir / "summary.json").string();
  const json list = document.is_array() ? document : json::array({document});
  RunSet set;
  for (const json& object : list) {
    SummaryFile file;
    wire::read(object, file);
    if (!object.is_object() || file.summary.policy.empty()) {
      return fail(
          fmt::format("{}: not a summary of Berth (an object with \"policy\" is expected)", path));
    }
    const fs::path sub = file.directory;
    // The file may come from anybody: it must not make us read elsewhere.
    if (file.directory.find('/') != std::string::npos || file.directory == "..")
      return fail(fmt::format("{}: bad \"directory\" '{}'", path, file.directory));
    const std::uint64_t intervals = file.intervals_total.value_or(0);
    const bool is_baseline = file.is_baseline;
    if (set.labels.title.empty()) set.labels.title = file.title;
    RunData run = run_of(std::move(file));
    BERTH_TRY_VOID(read_files(dir / sub, intervals, run));
    if (is_baseline) set.labels.baseline = run.summary.label;
    set.runs.push_back(std::move(run));
  }
  if (set.runs.empty()) return fail(fmt::format("{}: no runs", path));
  return set;
}

}  // namespace

Result<RunSet> read_runs(const std::string& dir) {
  std::error_code code;
  if (!fs::is_directory(dir, code)) return fail(fmt::format("{}: no such directory", dir));
  const fs::path summary = fs::path(dir) / "summary.json";
  if (!fs::exists(summary, code)) {
    return fail(fmt::format(
        "{}: holds no summary.json (name the --out directory of a simulate or compare)", dir));
  }
  BERTH_TRY(const json document, parse(summary.string()));
  try {
    return read_all(dir, document);
  } catch (const json::exception& problem) {
    return fail(fmt::format("{}: {}", summary.string(), problem.what()));
  }
}

Result<void> rebuild_report(const std::string& dir) {
  BERTH_TRY(const RunSet set, read_runs(dir));
  BERTH_TRY_VOID(
      write_file((fs::path(dir) / "report.html").string(), report_html(set.runs, set.labels)));
  return write_figures(dir, set.runs);
}

}  // namespace berth
