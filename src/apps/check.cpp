// Looks at files without running anything: what is it, is it sound, what does it hold. A file is a
// cluster by its name (.yaml) or short form, an outage list by its header, otherwise a trace.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "apps/commands.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "model/cluster.h"
#include "sim/sim_executor.h"
#include "trace/reader.h"

namespace berth {

namespace {

struct Finding {
  std::string kind;                                        // "trace", "cluster", "outages"
  std::vector<std::pair<std::string, std::string>> facts;  // label, value for people
  std::vector<std::pair<std::string, double>> numbers;     // the same for programs
  std::vector<std::string> notes;
};

Result<Finding> check_cluster(const std::string& argument) {
  BERTH_TRY(const Cluster cluster, load_cluster(argument));
  Finding finding{.kind = "cluster", .facts = {}, .numbers = {}, .notes = {}};
  finding.facts = {
      {"nodes", fmt::format("{} in {} racks", cluster.nodes.size(), cluster.racks.size())},
      {"GPUs", fmt::format("{}", cluster.total_gpus())}};
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i) {
    const DeviceType& type = cluster.pools[i];
    finding.facts.emplace_back(type.name, fmt::format("{} of {} GB", cluster.total_gpus(PoolId{i}),
                                                      static_cast<double>(type.memory_mib) / 1024));
  }
  finding.numbers = {{"nodes", static_cast<double>(cluster.nodes.size())},
                     {"gpus", static_cast<double>(cluster.total_gpus())}};
  return finding;
}

/// Without a cluster every name is a node: the times are checked all the same.
Cluster cluster_of_names(std::string_view text) {
  Cluster cluster;
  std::set<std::string_view> seen;
  for (std::size_t begin = std::min(text.find('\n'), text.size() - 1) + 1; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string_view name = line.substr(0, line.find(','));
    if (!name.empty() && seen.insert(name).second) {
      Node node;
      node.name = std::string(name);
      node.gpus = 1;
      cluster.nodes.push_back(std::move(node));
    }
  }
  if (cluster.nodes.empty()) cluster.nodes.emplace_back();
  return cluster;
}

Result<Finding> check_outages(const std::string& path, std::string_view text,
                              const CheckOptions& options) {
  Cluster cluster = cluster_of_names(text);
  Finding finding{.kind = "outages", .facts = {}, .numbers = {}, .notes = {}};
  if (options.cluster.empty()) {
    finding.notes.emplace_back("node names were not checked (give --cluster)");
  } else {
    BERTH_TRY(cluster, load_cluster(options.cluster));
  }
  BERTH_TRY(const auto outages, parse_outages(text, path, cluster));
  std::set<NodeId> nodes;
  double down = 0;
  for (const NodeOutage& outage : outages) {
    nodes.insert(outage.node);
    if (outage.up != kNever) down += to_seconds(outage.up - outage.down);
  }
  finding.facts = {{"outages", fmt::format("{} on {} nodes", outages.size(), nodes.size())},
                   {"down time", human_duration(down)}};
  finding.numbers = {{"outages", static_cast<double>(outages.size())},
                     {"nodes", static_cast<double>(nodes.size())}};
  return finding;
}

Result<Finding> check_trace(const std::string& path, std::string_view text,
                            const std::string& format) {
  ReadReport report;
  BERTH_TRY(const Trace trace, parse_trace(text, path, {.format = format}, &report));
  if (trace.jobs.empty())
    return fail(fmt::format("{}:1:1: the trace has no jobs (a header and at least one row)", path));
  std::set<NameId> users;
  double gpu_seconds = 0;
  std::int64_t gpus = 0;
  std::int32_t smallest = trace.jobs.front().gpus;
  std::int32_t largest = smallest;
  for (const TraceJob& job : trace.jobs) {
    if (job.user != NameId{}) users.insert(job.user);
    gpu_seconds += to_seconds(job.duration) * job.gpus;
    gpus += job.gpus;
    smallest = std::min(smallest, job.gpus);
    largest = std::max(largest, job.gpus);
  }
  const double jobs = static_cast<double>(trace.jobs.size());
  const double span = to_seconds(trace.jobs.back().submit - trace.jobs.front().submit);
  Finding finding{.kind = "trace", .facts = {}, .numbers = {}, .notes = trace.notes};
  finding.facts = {{"format", trace.format},
                   {"jobs", fmt::format("{}", trace.jobs.size())},
                   {"users", users.empty() ? "not named" : fmt::format("{}", users.size())},
                   {"GPUs per job", fmt::format("{} to {}, {:.2f} on average", smallest, largest,
                                                static_cast<double>(gpus) / jobs)},
                   {"submitted in", human_duration(span)},
                   {"work", fmt::format("{:.1f} GPU-hours", gpu_seconds / 3600)}};
  finding.numbers = {{"jobs", jobs},         {"users", static_cast<double>(users.size())},
                     {"min_gpus", smallest}, {"max_gpus", largest},
                     {"span_seconds", span}, {"gpu_hours", gpu_seconds / 3600}};
  return finding;
}

Result<Finding> check_one(const std::string& file, const CheckOptions& options) {
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(file, ignored);
  const bool is_short = !is_file && parse_cluster_short(file).has_value();
  if (is_short || file.ends_with(".yaml") || file.ends_with(".yml")) return check_cluster(file);
  BERTH_TRY(const std::string text, read_file(file));
  if (text.starts_with("node,down_time")) return check_outages(file, text, options);
  return check_trace(file, text, options.format);
}

std::string for_people(const std::string& file, const Finding& finding) {
  std::string text = fmt::format("{}: a sound {}\n", file,
                                 finding.kind == "outages" ? "list of outages" : finding.kind);
  for (const auto& [label, value] : finding.facts)
    text += fmt::format("  {:<13} {}\n", label, value);
  for (const std::string& note : finding.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

void for_programs(JsonWriter& json, const std::string& file, const Result<Finding>& finding) {
  json.begin_object().field("file", file).field("ok", finding.has_value());
  if (finding) {
    json.field("kind", finding->kind);
    for (const auto& [label, value] : finding->facts) {
      if (label == "format") json.field("format", value);
    }
    for (const auto& [name, number] : finding->numbers) json.field(name, number);
  }
  json.key(finding ? "notes" : "errors").begin_array();
  for (const std::string& line : finding ? finding->notes : finding.error().messages)
    json.value(line);
  json.end_array().end_object();
}

}  // namespace

Exit execute(const CheckOptions& options) {
  if (options.files.empty()) {
    return complain(Exit::Misuse,
                    "which files? Name traces, cluster files or outage lists, as in `berth check "
                    "trace.csv lab.yaml`");
  }
  JsonWriter json;
  json.begin_array();
  std::string text;
  Error errors;
  for (const std::string& file : options.files) {
    const auto finding = check_one(file, options);
    for_programs(json, file, finding);
    if (finding)
      text += for_people(file, *finding);
    else
      errors.messages.insert(errors.messages.end(), finding.error().messages.begin(),
                             finding.error().messages.end());
  }
  json.end_array();
  const Exit printed = write_stdout(options.json ? json.str() + "\n" : text);
  return errors.messages.empty() ? printed : complain(Exit::Misuse, errors);
}

}  // namespace berth
