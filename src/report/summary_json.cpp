#include "report/run_json.h"

#include "base/json_writer.h"
#include "report/run_fields.h"
#include "report/run_output.h"
#include "wire/writer.h"

namespace berth {

std::optional<Intervals> intervals_of(const RunData& run) {
  if (run.seeds.size() < 2) return std::nullopt;
  Intervals all;
  for (const Metric& metric : metrics()) {
    if (const auto interval = confidence_of(run, metric))
      all.push_back({std::string(metric.name), {interval->low(), interval->high()}});
  }
  return all;
}

ClusterHead head_of(const ClusterFacts& cluster) {
  ClusterHead head{cluster.name, cluster.nodes.size(), cluster.gpus, {}};
  for (const auto& [type, gpus] : cluster.types) head.types.push_back({type, gpus});
  return head;
}

// The writer makes one line; people get the outer levels on lines of their own, and arrays of
// numbers stay on one.
std::string indented(std::string_view json, int levels) {
  std::string out;
  int depth = 0;
  bool quoted = false;
  const auto new_line = [&] {
    out += '\n';
    out.append(static_cast<std::size_t>(depth) * 2, ' ');
  };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      out += c;
      if (c == '\\')
        out += json[++i];
      else
        quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    if ((c == '}' || c == ']') && --depth < levels) new_line();
    out += c;
    if ((c == '{' || c == '[') && ++depth <= levels) new_line();
    if (c == ',' && depth <= levels)
      new_line();
    else if ((c == ',' || c == ':') && depth > 0)
      out += ' ';
  }
  return out;
}

namespace {

SummaryFile file_of(const RunData& run, const SummaryExtras& extras) {
  SummaryFile file{.summary = run.summary, .trace = run.trace, .cluster = head_of(run.cluster)};
  if (run.seeds.size() > 1) {
    file.confidence = intervals_of(run);
    for (const Summary& one : run.seeds) file.seeds.push_back({one});
  }
  if (run.gantt) file.intervals_total = run.gantt->total;
  if (run.actions) file.actions_total = run.actions->total;
  file.directory = extras.directory;
  file.is_baseline = extras.is_baseline;
  file.title = extras.title;
  return file;
}

}  // namespace

std::string summary_json(const RunData& run, const SummaryExtras& extras) {
  return indented(wire::to_json(file_of(run, extras)), 1);
}

std::string summary_json(const RunData& run) { return summary_json(run, SummaryExtras{}); }

std::string summaries_json(std::span<const RunData> runs, std::span<const SummaryExtras> extras) {
  JsonWriter json;
  wire::Writer<JsonWriter> writer(json);
  json.begin_array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    writer.write(file_of(runs[i], i < extras.size() ? extras[i] : SummaryExtras{}));
  json.end_array();
  return indented(json.str(), 2);
}

std::string summaries_json(std::span<const RunData> runs) { return summaries_json(runs, {}); }

}  // namespace berth
