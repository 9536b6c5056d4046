#include "client/slurm/node_columns.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "client/moment.h"
#include "client/slurm/words.h"

namespace berth::client::slurm {

namespace {

struct Column {
  ColumnName name;
  std::string (*value)(const NodeItem&) = nullptr;
  std::string_view unset = {};
};

bool is_out(const NodeView& node) {
  return node.state == "down" || node.state == "drained" || node.state == "draining";
}

std::string names(const NodeItem& i) {
  std::vector<std::string> all;
  for (const NodeView* node : i.group) all.push_back(node->name);
  return folded_names(std::move(all));
}

std::string feature(const NodeItem& i) {
  return i.group.front()->type.empty() ? "(null)" : i.group.front()->type;
}

std::string cpus_by_state(const NodeItem& i) {
  std::int32_t used = 0, idle = 0, out = 0;
  for (const NodeView* node : i.group) {
    used += node->cpus_used;
    (is_out(*node) ? out : idle) += node->cpus - node->cpus_used;
  }
  return fmt::format("{}/{}/{}/{}", used, idle, out, used + idle + out);
}

enum class Counts : bool { AllocatedIdle, All };

std::string nodes_by_state(const NodeItem& i, Counts counts) {
  std::size_t used = 0, idle = 0, out = 0;
  for (const NodeView* node : i.group)
    ++(is_out(*node) ? out : node_state(*node, StateWord::Short).starts_with("idle") ? idle : used);
  return counts == Counts::All ? fmt::format("{}/{}/{}/{}", used, idle, out, i.group.size())
                               : fmt::format("{}/{}", used, idle);
}

std::string time_limit(const Partition& partition) {
  const std::int64_t most = partition.queue.max_time_limit;
  return most > 0 ? clock_span(static_cast<double>(most)) : "infinite";
}

std::string default_time(const Partition& partition) {
  const std::int64_t usual = partition.queue.default_time_limit;
  return usual > 0 ? clock_span(static_cast<double>(usual)) : "n/a";
}

// clang-format off
constexpr std::array kColumns{
    Column{{"allocmem", 0, "ALLOCMEM"}, [](const NodeItem& i) -> std::string { return fmt::to_string(i.memory_used(*i.group.front())); }},
    Column{{"allocnodes", 'S', "ALLOCNODES"}, nullptr, "all"},
    Column{{"available", 'a', "AVAIL"}, nullptr, "up"},
    Column{{"cluster", 'V', "CLUSTER"}, [](const NodeItem& i) -> std::string { return i.cluster; }},
    Column{{"comment", 0, "COMMENT"}, nullptr, "(null)"},
    Column{{"cores", 'Y', "CORES"}, [](const NodeItem& i) -> std::string { return fmt::to_string(i.group.front()->cpus); }},
    Column{{"cpus", 'c', "CPUS"}, [](const NodeItem& i) -> std::string { return fmt::to_string(i.group.front()->cpus); }},
    Column{{"cpusload", 'O', "CPU_LOAD"}, nullptr, "N/A"},
    Column{{"cpusstate", 'C', "CPUS(A/I/O/T)"}, [](const NodeItem& i) -> std::string { return cpus_by_state(i); }},
    Column{{"defaulttime", 'L', "DEFAULTTIME"}, [](const NodeItem& i) -> std::string { return default_time(i.partition); }},
    Column{{"disk", 'd', "TMP_DISK"}, nullptr, "0"},
    Column{{"extra", 0, "EXTRA"}, nullptr, "(null)"},
    Column{{"features", 'f', "AVAIL_FEATURES"}, [](const NodeItem& i) -> std::string { return feature(i); }},
    Column{{"features_act", 'b', "ACTIVE_FEATURES"}, [](const NodeItem& i) -> std::string { return feature(i); }},
    Column{{"freemem", 'e', "FREE_MEM"}, nullptr, "N/A"},
    Column{{"gres", 'G', "GRES"}, [](const NodeItem& i) -> std::string { return gres_of(*i.group.front()); }},
    Column{{"gresused", 0, "GRES_USED"}, [](const NodeItem& i) -> std::string { return gres_used(*i.group.front()); }},
    Column{{"groups", 'g', "GROUPS"}, nullptr, "all"},
    Column{{"maxcpuspernode", 'B', "MAX_CPUS_PER_NODE"}, nullptr, "UNLIMITED"},
    Column{{"memory", 'm', "MEMORY"}, [](const NodeItem& i) -> std::string { return fmt::to_string(i.group.front()->memory_mib); }},
    Column{{"nodeaddr", 'o', "NODE_ADDR"}, [](const NodeItem& i) -> std::string { return names(i); }},
    Column{{"nodeai", 'A', "NODES(A/I)"}, [](const NodeItem& i) -> std::string { return nodes_by_state(i, Counts::AllocatedIdle); }},
    Column{{"nodeaiot", 'F', "NODES(A/I/O/T)"}, [](const NodeItem& i) -> std::string { return nodes_by_state(i, Counts::All); }},
    Column{{"nodehost", 'n', "HOSTNAMES"}, [](const NodeItem& i) -> std::string { return names(i); }},
    Column{{"nodelist", 'N', "NODELIST"}, [](const NodeItem& i) -> std::string { return names(i); }},
    Column{{"nodes", 'D', "NODES"}, [](const NodeItem& i) -> std::string { return fmt::to_string(i.group.size()); }},
    Column{{"oversubscribe", 'h', "OVERSUBSCRIBE"}, nullptr, "NO"},
    Column{{"partition", 'P', "PARTITION"}, [](const NodeItem& i) -> std::string { return i.partition.queue.name + (i.partition.is_default ? "*" : ""); }},
    Column{{"partitionname", 'R', "PARTITION"}, [](const NodeItem& i) -> std::string { return i.partition.queue.name; }},
    Column{{"port", 0, "PORT"}, nullptr, "N/A"},
    Column{{"preemptmode", 'M', "PREEMPT_MODE"}, nullptr, "OFF"},
    Column{{"priorityjobfactor", 'I', "PRIO_JOB_FACTOR"}, nullptr, "1"},
    Column{{"prioritytier", 'p', "PRIO_TIER"}, nullptr, "1"},
    Column{{"reason", 'E', "REASON"}, [](const NodeItem& i) -> std::string { return i.group.front()->reason.empty() ? "none" : i.group.front()->reason; }},
    Column{{"reservation", 'i', "RESERVATION"}, nullptr, ""},
    Column{{"root", 'r', "ROOT"}, nullptr, "no"},
    Column{{"size", 's', "JOB_SIZE"}, nullptr, "1"},
    Column{{"sockets", 'X', "SOCKETS"}, nullptr, "1"},
    Column{{"socketcorethread", 'z', "S:C:T"}, [](const NodeItem& i) -> std::string { return fmt::format("1:{}:1", i.group.front()->cpus); }},
    Column{{"statecompact", 't', "STATE"}, [](const NodeItem& i) -> std::string { return node_state(*i.group.front(), StateWord::Short); }},
    Column{{"statecomplete", 0, "STATECOMPLETE"}, [](const NodeItem& i) -> std::string { return node_state(*i.group.front(), StateWord::Long); }},
    Column{{"statelong", 'T', "STATE"}, [](const NodeItem& i) -> std::string { return node_state(*i.group.front(), StateWord::Long); }},
    Column{{"threads", 'Z', "THREADS"}, nullptr, "1"},
    Column{{"time", 'l', "TIMELIMIT", true}, [](const NodeItem& i) -> std::string { return time_limit(i.partition); }},
    Column{{"timestamp", 'H', "TIMESTAMP"}, nullptr, "Unknown"},
    Column{{"user", 'u', "USER"}, nullptr, "Unknown"},
    Column{{"userlong", 'U', "USER"}, nullptr, "Unknown"},
    Column{{"version", 'v', "VERSION"}, [](const NodeItem& i) -> std::string { return i.version; }},
    Column{{"weight", 'w', "WEIGHT"}, nullptr, "1"},
};
// clang-format on

constexpr auto names_of(const decltype(kColumns)& columns) {
  std::array<ColumnName, kColumns.size()> all{};
  for (std::size_t i = 0; i < columns.size(); ++i) all[i] = columns[i].name;
  return all;
}
constexpr auto kNames = names_of(kColumns);

}  // namespace

std::string node_state(const NodeView& node, StateWord word) {
  const bool is_short = word == StateWord::Short;
  if (node.state == "down") return "down";
  // An older scheduler says drained of both.
  const bool is_in_use = node.gpus_used > 0 || node.cpus_used > 0;
  if (node.state == "draining" || (node.state == "drained" && is_in_use))
    return is_short ? "drng" : "draining";
  if (node.state == "drained") return is_short ? "drain" : "drained";
  if (node.state == "off") return "idle~";
  if (node.state == "booting") return "idle#";
  if (node.state == "suspending") return "idle%";
  if (!is_in_use) return "idle";
  if (is_full(node)) return is_short ? "alloc" : "allocated";
  return is_short ? "mix" : "mixed";
}

bool is_full(const NodeView& node) {
  return (node.gpus > 0 && node.gpus_used >= node.gpus) ||
         (node.cpus > 0 && node.cpus_used >= node.cpus);
}

std::vector<std::string> state_words(const NodeView& node) {
  const std::string state = node_state(node, StateWord::Long);
  if (state == "drained") return {"IDLE", "DRAIN"};
  if (state == "draining") return {is_full(node) ? "ALLOCATED" : "MIXED", "DRAIN"};
  if (state == "idle~") return {"IDLE", "POWERED_DOWN"};
  if (state == "idle#") return {"IDLE", "POWERING_UP"};
  if (state == "idle%") return {"IDLE", "POWERING_DOWN"};
  return {upper(state)};
}

std::string gres_of(const NodeView& node) {
  if (node.gpus == 0) return "(null)";
  return fmt::format("gpu{}{}:{}", node.type.empty() ? "" : ":", node.type, node.gpus);
}

std::string gres_used(const NodeView& node) {
  if (node.gpus == 0) return "gpu:0";
  std::vector<std::int32_t> taken;
  for (std::size_t i = 0; i < node.devices.size(); ++i)
    if (!node.devices[i].empty()) taken.push_back(static_cast<std::int32_t>(i));
  return fmt::format(
      "gpu{}{}:{}(IDX:{})", node.type.empty() ? "" : ":", node.type,
      node.devices.empty() ? node.gpus_used : static_cast<std::int32_t>(taken.size()),
      taken.empty() ? "N/A" : index_ranges(taken));
}

std::int64_t NodeItem::memory_used(const NodeView& node) const {
  const auto found = memory.find(node.name);
  return found != memory.end() ? found->second : 0;
}

std::span<const ColumnName> node_columns() { return kNames; }

std::string node_value(const NodeItem& item, std::size_t column) {
  if (item.group.empty()) {  // a partition of which no node is left
    const ColumnName& name = kColumns[column].name;
    if (name.name == "nodes") return "0";
    if (name.name == "nodelist" || name.name == "nodehost") return "";
    if (kColumns[column].value != nullptr && name.letter != 'P' && name.letter != 'R' &&
        name.letter != 'l' && name.letter != 'L')
      return "n/a";
  }
  return kColumns[column].value != nullptr ? kColumns[column].value(item)
                                           : std::string(kColumns[column].unset);
}

}  // namespace berth::client::slurm
