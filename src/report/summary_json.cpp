#include "report/run_json.h"

#include "base/json_writer.h"
#include "report/run_output.h"

namespace berth {

void put_value(JsonWriter& json, std::string_view name, const std::optional<double>& value) {
  json.key(name);
  if (value)
    json.value(*value);
  else
    json.null();
}

void put_metrics(JsonWriter& json, const Summary& summary) {
  for (const Metric& metric : metrics()) put_value(json, metric.name, summary.*metric.field);
}

void put_confidence(JsonWriter& json, const RunData& run) {
  json.key("confidence");
  if (run.seeds.size() < 2) {
    json.null();
    return;
  }
  json.begin_object();
  for (const Metric& metric : metrics()) {
    if (const auto interval = confidence_of(run, metric)) {
      json.key(metric.name)
          .begin_array()
          .value(interval->low())
          .value(interval->high())
          .end_array();
    }
  }
  json.end_object();
}

void put_facts(JsonWriter& json, const RunData& run) {
  json.key("trace").begin_object().field("name", run.trace.name).field("jobs", run.trace.jobs);
  json.field("span", run.trace.span_seconds)
      .field("gpu_seconds", run.trace.gpu_seconds)
      .end_object();
  json.key("cluster")
      .begin_object()
      .field("name", run.cluster.name)
      .field("nodes", run.cluster.nodes.size());
  json.field("gpus", run.cluster.gpus).key("types").begin_array();
  for (const auto& [type, gpus] : run.cluster.types) {
    json.begin_object().field("type", type).field("gpus", gpus).end_object();
  }
  json.end_array().end_object();
}

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

void put_summary(JsonWriter& json, const RunData& run, const SummaryExtras& extras) {
  const Summary& summary = run.summary;
  json.begin_object().field("policy", summary.policy);
  put_metrics(json, summary);
  json.field("digest", summary.digest)
      .field("label", summary.label)
      .field("placement", summary.placement);
  json.field("estimator", summary.estimator).field("seed", summary.seed);
  put_facts(json, run);
  if (run.seeds.size() > 1) {
    put_confidence(json, run);
    json.key("seeds").begin_array();
    for (const Summary& one : run.seeds) {
      json.begin_object().field("seed", one.seed).field("digest", one.digest);
      put_metrics(json, one);
      json.end_object();
    }
    json.end_array();
  }
  if (run.gantt) json.field("intervals_total", run.gantt->total);
  if (run.actions) json.field("actions_total", run.actions->total);
  if (!extras.directory.empty()) json.field("directory", extras.directory);
  if (extras.is_baseline) json.field("baseline", true);
  if (!extras.title.empty()) json.field("title", extras.title);
  json.field("generated_by", "berth " BERTH_VERSION).end_object();
}

}  // namespace

std::string summary_json(const RunData& run, const SummaryExtras& extras) {
  JsonWriter json;
  put_summary(json, run, extras);
  return indented(json.str(), 1);
}

std::string summary_json(const RunData& run) { return summary_json(run, SummaryExtras{}); }

std::string summaries_json(std::span<const RunData> runs, std::span<const SummaryExtras> extras) {
  JsonWriter json;
  json.begin_array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    put_summary(json, runs[i], i < extras.size() ? extras[i] : SummaryExtras{});
  json.end_array();
  return indented(json.str(), 2);
}

std::string summaries_json(std::span<const RunData> runs) { return summaries_json(runs, {}); }

}  // namespace berth
