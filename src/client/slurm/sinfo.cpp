// sinfo: the nodes in the columns that scripts know. Queues are its partitions; all have all nodes.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/split.h"
#include "client/commands.h"
#include "client/moment.h"
#include "client/slurm/format.h"
#include "client/slurm_names.h"

namespace berth::client {

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"all", 'a', Nothing, "", "all partitions (the default)"},
    OptionSpec{"format", 'o', Value, "FORMAT", "columns, as in '%P %D %t %N'"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"json", 0, Nothing, "", "the scheduler's JSON"},
    OptionSpec{"list-reasons", 'R', Nothing, "", "why nodes are not up"},
    OptionSpec{"long", 'l', Nothing, "", "more columns"},
    OptionSpec{"Node", 'N', Nothing, "", "a line for each node"},
    OptionSpec{"nodes", 'n', Value, "NAMES", "only these nodes"},
    OptionSpec{"noheader", 'h', Nothing, "", "no line of titles"},
    OptionSpec{"partition", 'p', Value, "NAMES", "only these partitions"},
    OptionSpec{"states", 't', Value, "STATES",
               "only nodes in these states: idle, mix, alloc, down, drain"},
    OptionSpec{"summarize", 's', Nothing, "", "a line for each partition, nodes counted"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
};

constexpr auto kDefault = "%9P %.5a %.10l %.6D %.6t %N";
constexpr auto kLong = "%9P %.5a %.10l %.6D %.10T %.6c %.8m %20G %N";
constexpr auto kByNode = "%18N %.6D %.9P %6t";
constexpr auto kByNodeLong = "%18N %.6D %.9P %.10T %4c %8m %20G %20E";
constexpr auto kSummary = "%9P %.5a %.10l %.16F %N";
constexpr auto kReasons = "%20E %N";
constexpr std::string_view kLetters = "PRalDtTNncmGCEOedfgpsFAuUH";

/// Idle, in part or fully used; with devices by devices, otherwise by cores.
std::string state_of(const NodeView& node, bool is_short) {
  const std::int32_t used = node.gpus > 0 ? node.gpus_used : node.cpus_used;
  const std::int32_t all = node.gpus > 0 ? node.gpus : node.cpus;
  if (node.state == "down") return "down";
  if (node.state == "drained") {
    if (is_short) return used > 0 ? "drng" : "drain";
    return used > 0 ? "draining" : "drained";
  }
  if (node.state == "off") return "idle~";
  if (node.state == "booting") return "idle#";
  if (node.state == "suspending") return "idle%";
  if (used == 0 && node.cpus_used == 0) return "idle";
  if (used >= all) return is_short ? "alloc" : "allocated";
  return is_short ? "mix" : "mixed";
}

std::string title(char type) {
  switch (type) {
    case 'P':
    case 'R': return "PARTITION";
    case 'a': return "AVAIL";
    case 'l': return "TIMELIMIT";
    case 'D': return "NODES";
    case 't':
    case 'T': return "STATE";
    case 'N': return "NODELIST";
    case 'n': return "HOSTNAMES";
    case 'c': return "CPUS";
    case 'm': return "MEMORY";
    case 'G': return "GRES";
    case 'C': return "CPUS(A/I/O/T)";
    case 'F': return "NODES(A/I/O/T)";
    case 'E': return "REASON";
    default: return "N/A";
  }
}

std::string gres_of(const NodeView& node) {
  if (node.gpus == 0) return "(null)";
  return fmt::format("gpu{}{}:{}", node.type.empty() ? "" : ":", node.type, node.gpus);
}

struct Partition {
  QueueView queue;
  bool is_default = false;
};

/// Nodes that share a line.
using Group = std::vector<const NodeView*>;

std::string value_of(const Partition& partition, const Group& group, char type) {
  const NodeView& first = *group.front();
  switch (type) {
    case 'P': return partition.queue.name + (partition.is_default ? "*" : "");
    case 'R': return partition.queue.name;
    case 'a': return "up";
    case 'l':
      return partition.queue.max_time_limit > 0
                 ? clock_span(static_cast<double>(partition.queue.max_time_limit))
                 : "infinite";
    case 'D': return fmt::format("{}", group.size());
    case 't': return state_of(first, true);
    case 'T': return state_of(first, false);
    case 'n':
    case 'N': {
      std::vector<std::string> names;
      for (const NodeView* node : group) names.push_back(node->name);
      return folded_names(std::move(names));
    }
    case 'c': return fmt::format("{}", first.cpus);
    case 'm': return fmt::format("{}", first.memory_mib);
    case 'G': return gres_of(first);
    case 'C': {
      std::int32_t used = 0, idle = 0, out = 0;
      for (const NodeView* node : group) {
        const bool is_out = node->state == "down" || node->state == "drained";
        used += node->cpus_used;
        (is_out ? out : idle) += node->cpus - node->cpus_used;
      }
      return fmt::format("{}/{}/{}/{}", used, idle, out, used + idle + out);
    }
    case 'F': {
      std::size_t used = 0, idle = 0, out = 0;
      for (const NodeView* node : group) {
        const bool is_out = node->state == "down" || node->state == "drained";
        ++(is_out ? out : state_of(*node, true).starts_with("idle") ? idle : used);
      }
      return fmt::format("{}/{}/{}/{}", used, idle, out, group.size());
    }
    case 'E': return first.reason.empty() ? "none" : first.reason;
    default: return "N/A";
  }
}

bool among(const std::string& list, const std::string& one) {
  const auto words = split(list, ',');
  return list.empty() || std::ranges::find(words, one) != words.end();
}

bool is_wanted(const NodeView& node, const Parsed& parsed) {
  std::string states = parsed.value("states");
  for (char& c : states) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (parsed.has("list-reasons") && node.reason.empty()) return false;
  return among(parsed.value("nodes"), node.name) &&
         (among(states, state_of(node, true)) || among(states, state_of(node, false)));
}

/// Nodes of which every column but names and counts is equal stand on one line.
std::vector<Group> groups_of(const std::vector<NodeView>& nodes,
                             const std::vector<FormatPart>& format, const Parsed& parsed) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> known;
  for (const NodeView& node : nodes) {
    if (!is_wanted(node, parsed)) continue;
    std::string key;
    for (const FormatPart& part : format) {
      if (part.type == 'n') key += node.name;
      if (part.type != 0 && part.type != 'N' && part.type != 'D' && part.type != 'C' &&
          part.type != 'F')
        key += value_of({}, {&node}, part.type) + '\n';
    }
    if (parsed.has("Node")) key = node.name;
    const auto [place, is_new] = known.emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&node);
  }
  return groups;
}

/// Those that were asked for, the default one first.
std::vector<Partition> partitions_of(const ClusterView& cluster, const Parsed& parsed) {
  std::vector<QueueView> queues = cluster.queues;
  if (queues.empty()) queues.push_back({.name = "all"});  // an older scheduler does not say
  std::vector<Partition> partitions;
  for (const QueueView& queue : queues) {
    if (among(parsed.value("partition"), queue.name))
      partitions.push_back({.queue = queue, .is_default = &queue == &queues.front()});
  }
  return partitions;
}

std::string lines_of(const std::vector<Partition>& partitions, const std::vector<Group>& groups,
                     const std::vector<FormatPart>& format, bool by_partition) {
  std::string out;
  for (const Partition& partition : partitions) {
    for (const Group& group : groups)
      out += format_line(format, [&](char type) { return value_of(partition, group, type); });
    if (!by_partition) break;  // no column would tell one line from the other
  }
  return out;
}

}  // namespace

int run_sinfo(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = complaint(parsed, console)) return *code;
  if (parsed.has("help"))
    return console.put(slurm_help("sinfo [OPTIONS]", kOptions)), console.done();
  if (parsed.has("version")) return console.put("berth " BERTH_VERSION "\n"), console.done();
  const bool by_node = parsed.has("Node");
  const std::string text = parsed.has("format")         ? parsed.value("format")
                           : parsed.has("list-reasons") ? kReasons
                           : parsed.has("summarize")    ? kSummary
                           : by_node            ? (parsed.has("long") ? kByNodeLong : kByNode)
                           : parsed.has("long") ? kLong
                                                : kDefault;
  const auto format = parse_format(text, kLetters);
  if (!format) return console.complain(kMisuse, format.error());
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  Scheduler& scheduler = *found;
  const auto body = scheduler.get("/nodes");
  if (!body) return console.complain(kFailure, body.error());
  if (parsed.has("json")) return console.put_json(*body), console.done();
  const auto nodes = nodes_from(*body);
  if (!nodes) return console.complain(kFailure, nodes.error());
  const auto cluster = scheduler.cluster();
  if (!cluster) return console.complain(kFailure, cluster.error());
  std::string out;
  if (parsed.has("long") && !parsed.has("noheader"))
    out += local_time(unix_now() * 1'000'000) + "\n";
  if (!parsed.has("noheader")) out += format_line(*format, title);
  const bool by_partition = std::ranges::any_of(
      *format, [](const FormatPart& part) { return part.type == 'P' || part.type == 'R'; });
  out += lines_of(partitions_of(*cluster, parsed), groups_of(*nodes, *format, parsed), *format,
                  by_partition);
  console.put(out);
  return console.done();
}

}  // namespace berth::client
