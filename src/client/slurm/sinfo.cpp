// sinfo: the nodes in the columns that scripts know.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "base/split.h"
#include "client/commands.h"
#include "client/slurm/facts.h"
#include "client/slurm/help.h"
#include "client/slurm/json.h"
#include "client/slurm/node_columns.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"all", 'a', Nothing, "", "all partitions (the default)"},
    OptionSpec{"clusters", 'M', Value, "NAMES", "of this cluster, which is named above the list"},
    OptionSpec{"dead", 'd', Nothing, "", "only nodes that do not answer"},
    OptionSpec{"exact", 'e', Nothing, "", "group only nodes that are equal in everything"},
    OptionSpec{"federation", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"format", 'o', Value, "FORMAT", "columns, as in '%P %D %t %N'"},
    OptionSpec{"Format", 'O', Value, "FIELDS", "columns by name, as in nodelist,gres:20,gresused"},
    OptionSpec{"future", 'F', Nothing, "", "nothing: no node is of the future"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"helpformat", 0, Nothing, "", "the letters of -o"},
    OptionSpec{"helpFormat", 0, Nothing, "", "the names of -O"},
    OptionSpec{"helpstate", 0, Nothing, "", "the states of -t"},
    OptionSpec{"hide", 0, Nothing, "", "nothing: no partition is hidden"},
    OptionSpec{"iterate", 'i', Value, "SECONDS", "again and again"},
    OptionSpec{"json", 0, Maybe, "VERSION", "Slurm's JSON (v0.0.42)"},
    OptionSpec{"list-reasons", 'R', Nothing, "", "why nodes are not up"},
    OptionSpec{"local", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"long", 'l', Nothing, "", "more columns"},
    OptionSpec{"noconvert", 0, Nothing, "", "nothing: memory is in MiB"},
    OptionSpec{"Node", 'N', Nothing, "", "a line for each node"},
    OptionSpec{"nodes", 'n', Value, "NAMES", "only these nodes"},
    OptionSpec{"noheader", 'h', Nothing, "", "no line of titles"},
    OptionSpec{"partition", 'p', Value, "NAMES", "only these partitions"},
    OptionSpec{"reservation", 'T', Nothing, "", "reservations: there are none"},
    OptionSpec{"responding", 'r', Nothing, "", "only nodes that answer"},
    OptionSpec{"sort", 'S', Value, "LETTERS", "by these columns; - turns round"},
    OptionSpec{"states", 't', Value, "STATES",
               "only nodes in these states: idle, mix, alloc, down, drain"},
    OptionSpec{"summarize", 's', Nothing, "", "a line for each partition, nodes counted"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"verbose", 'v', Nothing, "", "nothing more"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
    OptionSpec{"yaml", 0, Maybe, "VERSION", "refused: --json has the same"},
};

constexpr HelpPage kPage{
    .name = "sinfo",
    .operands = "",
    .summary = "nodes and partitions",
    .more =
        "The queues are the partitions; the default one has a *. Every partition has all nodes.",
    .examples =
        "sinfo\nsinfo -N -O nodelist,gres:20,gresused:30,statelong\nsinfo -h -o '%P %D %t'\n"
        "sinfo -R\nsinfo --json | jq '.sinfo[].nodes.nodes'"};

constexpr auto kDefault = "%9P %.5a %.10l %.6D %.6t %N";
constexpr auto kLong = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N";
constexpr auto kByNode = "%10N %.5D %.9P %6t";
constexpr auto kByNodeLong = "%10N %.5D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E";
constexpr auto kSummary = "%9P %.5a %.10l %.16F %N";
constexpr auto kReasons = "%20E %9u %19H %N";
constexpr auto kReasonsLong = "%20E %12U %19H %6t %N";

/// Slurm's words for states of nodes, of which nodes have only some here.
constexpr std::array<std::string_view, 35> kNodeStates{
    "all",        "alloc",        "allocated",     "blocked",     "cloud",    "comp",
    "completing", "down",         "drain",         "drained",     "draining", "drng",
    "fail",       "failing",      "future",        "idle",        "maint",    "mix",
    "mixed",      "no_respond",   "npc",           "perfctrs",    "planned",  "plnd",
    "power_down", "powered_down", "powering_down", "powering_up", "reboot",   "reboot^",
    "reserved",   "resv",         "unk",           "unknown",     "error"};

Result<void> check_states(const std::string& list) {
  const std::string words = lower(list);
  for (const std::string_view word : split(words, ',')) {
    if (word.empty() || std::ranges::find(kNodeStates, word) != kNodeStates.end()) continue;
    Error error;
    error.messages.push_back(fmt::format("error: Bad state string: \"{}\"", word));
    error.messages.push_back(fmt::format("error: valid states: {}", fmt::join(kNodeStates, ",")));
    return tl::unexpected<Error>(std::move(error));
  }
  return {};
}

bool is_dead(const NodeView& node) { return node.state == "down"; }

bool is_wanted(const NodeView& node, const Parsed& parsed,
               const std::vector<std::string>& wanted_nodes) {
  const std::string states = lower(parsed.value("states"));
  if (parsed.has("list-reasons") && node.reason.empty()) return false;
  if (parsed.has("dead") && !is_dead(node)) return false;
  if (parsed.has("responding") && is_dead(node)) return false;
  if (!wanted_nodes.empty() && std::ranges::find(wanted_nodes, node.name) == wanted_nodes.end())
    return false;
  const std::string state = node_state(node, StateWord::Long);
  // Slurm's "drain" is both, those that still run something and those that do not.
  const bool drains = state == "draining" && is_listed(states, "drain");
  return states == "all" || drains || is_listed(states, node_state(node, StateWord::Short)) ||
         is_listed(states, state);
}

struct Answer {
  ClusterView cluster;
  std::vector<NodeView> nodes;
  NodeMemory memory;  // that jobs hold
};

Result<Answer> ask(Scheduler& scheduler) {
  Answer answer;
  BERTH_TRY(answer.cluster, scheduler.cluster());
  BERTH_TRY(answer.nodes, scheduler.nodes());
  JobQuery running;
  running.states = {LiveState::Starting, LiveState::Running, LiveState::Suspended,
                    LiveState::Stopping};
  BERTH_TRY(const JobRows jobs, scheduler.jobs(running));
  for (const JobRow& job : jobs.jobs)
    for (const HeldDevices& held : job.where)
      answer.memory[held.node] +=
          job.spec->memory_mib / static_cast<std::int64_t>(job.where.size());
  return answer;
}

/// Nodes of which every column but names and counts is equal stand on one line.
std::vector<NodeGroup> groups_of(const Answer& answer, const Format& format, const Parsed& parsed,
                                 const std::vector<std::string>& wanted_nodes) {
  constexpr std::string_view kNotCompared = "NDCFAnoVv";
  std::vector<NodeGroup> groups;
  std::map<std::string, std::size_t> known;
  const Partition none;
  for (const NodeView& node : answer.nodes) {
    if (!is_wanted(node, parsed, wanted_nodes)) continue;
    const NodeGroup alone{&node};
    const NodeItem item{none, alone, answer.memory, answer.cluster.name, answer.cluster.version};
    std::string key = parsed.has("json")
                          ? node_state(node, StateWord::Long) + gres_used(node) + node.type
                          : std::string();
    for (std::size_t column = 0; column < node_columns().size(); ++column) {
      const ColumnName& name = node_columns()[column];
      const bool is_asked =
          parsed.has("exact") || std::ranges::any_of(format, [&](const FormatPart& part) {
            return part.column == column;
          });
      if (is_asked && name.letter == 'n') key += node.name;
      if (!is_asked || (name.letter != 0 && kNotCompared.find(name.letter) != kNotCompared.npos))
        continue;
      key += node_value(item, column) + '\n';
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
    if (is_listed(parsed.value("partition"), queue.name))
      partitions.push_back({.queue = queue, .is_default = &queue == &queues.front()});
  }
  return partitions;
}

/// Lines with what they are sorted by.
struct Line {
  std::vector<std::string> keys;
  std::string text;
};

void sort_lines(std::vector<Line>& lines, const std::vector<bool>& is_turned) {
  std::ranges::stable_sort(lines, [&](const Line& a, const Line& b) {
    for (std::size_t i = 0; i < is_turned.size(); ++i) {
      if (a.keys[i] == b.keys[i]) continue;
      return is_turned[i] ? b.keys[i] < a.keys[i] : a.keys[i] < b.keys[i];
    }
    return false;
  });
}

std::string table_of(const Answer& answer, const Format& format, const Parsed& parsed,
                     const std::vector<std::string>& wanted_nodes) {
  std::vector<std::size_t> sort_columns;
  std::vector<bool> is_turned;
  for (std::string_view word : split(parsed.value("sort"), ',')) {
    const bool turned = word.starts_with('-');
    if (turned || word.starts_with('+')) word.remove_prefix(1);
    if (word.starts_with('#')) word.remove_prefix(1);
    if (word.empty()) continue;
    const auto column = std::ranges::find(node_columns(), word.front(), &ColumnName::letter);
    if (column == node_columns().end()) continue;
    sort_columns.push_back(static_cast<std::size_t>(column - node_columns().begin()));
    is_turned.push_back(turned);
  }
  auto groups = groups_of(answer, format, parsed, wanted_nodes);
  const bool by_partition = has_column(format, node_columns(), 'P') ||
                            has_column(format, node_columns(), 'R') ||
                            has_column(format, node_columns(), 'l');
  if (groups.empty() && by_partition && !parsed.has("list-reasons") && !parsed.has("Node"))
    groups.emplace_back();  // a partition of which no node is left has its line all the same
  std::vector<Line> lines;
  for (const Partition& partition : partitions_of(answer.cluster, parsed)) {
    for (const NodeGroup& group : groups) {
      const NodeItem item{partition, group, answer.memory, answer.cluster.name,
                          answer.cluster.version};
      Line line;
      for (const std::size_t column : sort_columns) line.keys.push_back(node_value(item, column));
      line.text = format_line(format, [&](std::size_t column) { return node_value(item, column); });
      lines.push_back(std::move(line));
    }
    if (!by_partition) break;  // no column would tell one line from the other
  }
  // With -N the same node of all partitions stands together.
  if (parsed.has("Node") && sort_columns.empty()) {
    std::vector<Line> by_node;
    for (std::size_t node = 0; node < groups.size(); ++node)
      for (std::size_t at = node; at < lines.size(); at += groups.size())
        by_node.push_back(std::move(lines[at]));
    lines = std::move(by_node);
  }
  sort_lines(lines, is_turned);
  std::string text;
  for (const Line& line : lines) text += line.text;
  return text;
}

Json partition_json(const Partition& partition, const Answer& answer) {
  std::vector<std::string> names;
  Resources all;
  for (const NodeView& node : answer.nodes) {
    names.push_back(node.name);
    all.cpus += node.cpus;
    all.memory_mib += node.memory_mib;
    all.gpus += node.gpus;
    ++all.nodes;
  }
  const std::int64_t most = partition.queue.max_time_limit;
  const std::int64_t usual = partition.queue.default_time_limit;
  return {{"nodes",
           {{"allowed_allocation", ""},
            {"configured", folded_names(std::move(names))},
            {"total", answer.nodes.size()}}},
          {"tres", {{"billing_weights", ""}, {"configured", tres(all, TresOrder::Table)}}},
          {"cpus", {{"task_binding", 0}, {"total", all.cpus}}},
          {"defaults", {{"time", usual > 0 ? set_number((usual + 59) / 60) : no_number()}}},
          {"maximums",
           {{"time", most > 0 ? set_number((most + 59) / 60) : infinite_number()},
            {"nodes", infinite_number()},
            {"cpus_per_node", infinite_number()}}},
          {"minimums", {{"nodes", 0}}},
          {"name", partition.queue.name},
          {"priority", {{"job_factor", 1}, {"tier", 1}}},
          {"partition", {{"state", Json::array({"UP"})}}}};
}

Json range(std::int64_t value) { return {{"minimum", value}, {"maximum", value}}; }

Json group_json(const Partition& partition, const NodeGroup& group, const Answer& answer) {
  const NodeView& first = *group.front();
  Json names = Json::array();
  std::int64_t used = 0, all = 0, memory = 0, allocated_nodes = 0, idle_nodes = 0, out_nodes = 0;
  for (const NodeView* node : group) {
    names.push_back(node->name);
    used += node->cpus_used;
    all += node->cpus;
    const auto held = answer.memory.find(node->name);
    memory += held != answer.memory.end() ? held->second : 0;
    const std::string state = node_state(*node, StateWord::Short);
    ++(state == "alloc" || state == "mix" ? allocated_nodes
       : state.starts_with("idle")        ? idle_nodes
                                          : out_nodes);
  }
  const bool is_out = out_nodes > 0;
  Json free = {{"minimum", no_number()}, {"maximum", no_number()}};
  return {{"port", 0},
          {"node", {{"state", state_words(first)}}},
          {"nodes",
           {{"allocated", allocated_nodes},
            {"idle", idle_nodes},
            {"other", out_nodes},
            {"total", group.size()},
            {"hostnames", Json::array()},
            {"addresses", Json::array()},
            {"nodes", names}}},
          {"cpus",
           {{"allocated", used},
            {"idle", is_out ? 0 : all - used},
            {"other", is_out ? all - used : 0},
            {"total", all},
            {"minimum", first.cpus},
            {"maximum", first.cpus},
            {"load", range(0)},
            {"per_node", {{"max", infinite_number()}}}}},
          {"sockets", range(1)},
          {"cores", range(first.cpus)},
          {"threads", range(1)},
          {"disk", range(0)},
          {"memory",
           {{"minimum", first.memory_mib},
            {"maximum", first.memory_mib},
            {"free", free},
            {"allocated", memory}}},
          {"weight", range(1)},
          {"features", {{"total", first.type}, {"active", first.type}}},
          {"gres", {{"total", first.gpus > 0 ? gres_of(first) : ""}, {"used", gres_used(first)}}},
          {"cluster", answer.cluster.name},
          {"comment", ""},
          {"extra", ""},
          {"reason", {{"description", first.reason}, {"time", 0}, {"user", ""}}},
          {"reservation", ""},
          {"partition", partition_json(partition, answer)}};
}

std::string json_of(const Answer& answer, const Parsed& parsed,
                    const std::vector<std::string>& wanted_nodes) {
  Json rows = Json::array();
  const auto groups = groups_of(answer, {}, parsed, wanted_nodes);
  for (const Partition& partition : partitions_of(answer.cluster, parsed))
    for (const NodeGroup& group : groups) rows.push_back(group_json(partition, group, answer));
  return json_answer("sinfo", std::move(rows), "sinfo", answer.cluster);
}

Result<Format> format_of(const Parsed& parsed) {
  if (parsed.has("yaml")) return fail("--yaml: there is --json");
  BERTH_TRY_VOID(check_parser(parsed.value("json")));
  if (parsed.has("Format")) return parse_long_format(parsed.value("Format"), node_columns());
  const bool is_long = parsed.has("long");
  const char* variable = ::getenv("SINFO_FORMAT");
  const std::string text = parsed.has("format")         ? parsed.value("format")
                           : parsed.has("list-reasons") ? (is_long ? kReasonsLong : kReasons)
                           : parsed.has("summarize")    ? kSummary
                           : parsed.has("Node")         ? (is_long ? kByNodeLong : kByNode)
                           : is_long                    ? kLong
                           : variable != nullptr        ? variable
                                                        : kDefault;
  return parse_format(text, node_columns());
}

Result<std::string> page_of(Scheduler& scheduler, const Format& format, const Parsed& parsed) {
  std::vector<std::string> wanted;
  BERTH_TRY(wanted, expanded_hosts(parsed.value("nodes")));
  BERTH_TRY(const Answer answer, ask(scheduler));
  const std::string cluster = parsed.value("clusters");
  if (!is_listed(cluster, answer.cluster.name) && cluster != "all")
    return fail(
        fmt::format("No cluster '{}' known: this one is '{}'", cluster, answer.cluster.name));
  if (parsed.has("json")) return json_of(answer, parsed, wanted);
  if (parsed.has("reservation")) return std::string("No reservations in the system\n");
  std::string text;
  if (!cluster.empty()) text += fmt::format("CLUSTER: {}\n", answer.cluster.name);
  if (parsed.has("long") && !parsed.has("noheader")) text += asctime_text(unix_now());
  if (!parsed.has("noheader")) text += format_titles(format, node_columns());
  return text + table_of(answer, format, parsed, wanted);
}

std::optional<int> lists(const Parsed& parsed, Console& console) {
  if (parsed.has("helpformat")) return console.put(column_letters(node_columns())), console.done();
  if (parsed.has("helpFormat")) return console.put(column_names(node_columns())), console.done();
  if (parsed.has("helpstate"))
    return console.put("ALLOCATED DOWN DRAINED DRAINING IDLE MIXED\n"), console.done();
  return std::nullopt;
}

}  // namespace

int run_sinfo(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPage, kOptions, console)) return *code;
  if (const auto code = lists(parsed, console)) return *code;
  const auto format = format_of(parsed);
  if (!format) return console.complain(kMisuse, format.error());
  if (const auto states = check_states(parsed.value("states")); !states)
    return console.complain(kMisuse, states.error());
  double every = 0;
  if (const std::string text = parsed.value("iterate"); !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), every);
    if (error != std::errc{} || end != text.data() + text.size() || !(every > 0))
      return console.complain(kMisuse, fmt::format("--iterate={} is no number of seconds", text));
  }
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  while (true) {
    const auto text = page_of(*found, *format, parsed);
    if (!text) return console.complain(kFailure, text.error());
    if (!console.put(*text) || every <= 0) return console.done();
    std::this_thread::sleep_for(std::chrono::duration<double>(every));
  }
}

}  // namespace berth::client
