#include "slurm/scontrol_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "slurm/numbers.h"
#include "slurm/times.h"

namespace berth::slurm {

namespace {

using Record = std::map<std::string_view, std::string_view>;

std::string_view value(const Record& record, std::string_view key) {
  const auto found = record.find(key);
  return found == record.end() ? std::string_view{} : found->second;
}

template <class T>
T number(const Record& record, std::string_view key, T otherwise) {
  return number_or<T>(value(record, key), otherwise);
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  if (is_nothing(text)) return all;
  for (const std::string_view word : split(text, ','))
    if (!word.empty()) all.emplace_back(word);
  return all;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool is_key(std::string_view text) {
  if (text.empty() || text.front() < 'A' || text.front() > 'z') return false;
  return std::ranges::all_of(text, [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= 'a' && letter <= 'z') || letter == '_' || letter == '/' || letter == ':';
  });
}

/// Lines that begin a record of this kind; others are the rest of what somebody wrote.
template <class Visit>
Result<void> for_each_record(std::string_view text, std::string_view first_key, Visit visit) {
  if (!text.empty() && text.back() != '\n')
    return fail(fmt::format("the output of scontrol is cut off within '{}'",
                            shortened(text.substr(text.rfind('\n') + 1))));
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(first_key)) continue;
    BERTH_TRY_VOID(visit(parse_record(line)));
  }
  return {};
}

/// "cpu=8,mem=8000M": of a node that Slurm does not count otherwise.
void set_held(Node& node, const Record& record) {
  node.cpus_held = number<std::int32_t>(record, "CPUAlloc", 0);
  node.memory_held_mib = number<std::int64_t>(record, "AllocMem", 0);
  node.gres_held = parse_gres(value(record, "GresUsed"));
  // 22.05 miscounts shards in GresUsed; AllocTRES is right where there is accounting.
  const auto shards = tres_count(value(record, "AllocTRES"), "gres/shard");
  if (!shards) return;
  for (GresCount& gres : node.gres_held)
    if (gres.name == "shard") gres.count = *shards;
}

Node make_node(const Record& record) {
  Node node;
  node.name = value(record, "NodeName");
  node.state = value(record, "State");
  node.reason = or_empty(value(record, "Reason"));
  node.partitions = words(value(record, "Partitions"));
  node.features = words(value(record, "ActiveFeatures"));
  // Cores that Slurm keeps for the system are not for jobs.
  node.cpus = number<std::int32_t>(record, "CPUEfctv", number<std::int32_t>(record, "CPUTot", 0));
  node.sockets = number<std::int32_t>(record, "Sockets", 1);
  node.memory_mib = number<std::int64_t>(record, "RealMemory", 0) -
                    number<std::int64_t>(record, "MemSpecLimit", 0);
  node.gres = parse_gres(value(record, "Gres"));
  set_held(node, record);
  return node;
}

Result<Partition> make_partition(const Record& record) {
  Partition partition;
  partition.name = value(record, "PartitionName");
  partition.is_up = value(record, "State") == "UP";
  partition.is_default = value(record, "Default") == "YES";
  BERTH_TRY(partition.nodes, expand_hostlist(or_empty(value(record, "Nodes"))));
  partition.max_time = parse_span(value(record, "MaxTime"));
  partition.default_time = parse_span(value(record, "DefaultTime"));
  partition.priority_tier = number<std::int32_t>(record, "PriorityTier", 1);
  const std::string_view sharing = value(record, "OverSubscribe");
  partition.shares_nodes = sharing.starts_with("FORCE") || sharing.starts_with("YES");
  for (const auto& entry : record)
    partition.all.emplace(std::string(entry.first), std::string(entry.second));
  return partition;
}

Result<Switch> make_switch(const Record& record, std::string_view name_key) {
  Switch made;
  made.name = value(record, name_key);
  made.level = number<std::int32_t>(record, "Level", 0);
  BERTH_TRY(made.nodes, expand_hostlist(or_empty(value(record, "Nodes"))));
  BERTH_TRY(made.switches, expand_hostlist(or_empty(value(record, "Switches"))));
  return made;
}

Result<Reservation> make_reservation(const Record& record) {
  Reservation reservation;
  reservation.name = value(record, "ReservationName");
  reservation.begins = parse_time(value(record, "StartTime"));
  reservation.ends = parse_time(value(record, "EndTime"));
  BERTH_TRY(reservation.nodes, expand_hostlist(or_empty(value(record, "Nodes"))));
  reservation.users = words(value(record, "Users"));
  reservation.accounts = words(value(record, "Accounts"));
  reservation.is_active = value(record, "State") == "ACTIVE";
  reservation.flags = or_empty(value(record, "Flags"));
  return reservation;
}

std::int32_t count_indices(std::string_view ids) {
  return static_cast<std::int32_t>(parse_indices(ids).size());
}

/// "Nodes=n[3-4] CPU_IDs=0-3 Mem=8000 GRES=gpu:a100:8(IDX:0-7)", one such group after the other.
void add_group(std::string_view group, std::vector<HeldNode>& held) {
  const Record record = parse_record(group);
  const auto names = expand_hostlist(value(record, "Nodes"));
  if (!names) return;
  for (const std::string& name : *names)
    held.push_back({.node = name,
                    .gres = parse_gres(value(record, "GRES")),
                    .cpus = count_indices(value(record, "CPU_IDs")),
                    .memory_mib = number<std::int64_t>(record, "Mem", 0)});
}

std::vector<HeldNode> parse_groups(std::string_view line) {
  // Before them stands the job's name and behind them its comment, where users may write anything:
  // what users write about their own devices is believed of no other job.
  static constexpr std::string_view kGroup = " Nodes=";
  static constexpr std::string_view kAfter = " MinCPUsNode=";
  std::vector<HeldNode> held;
  const std::string_view front = line.substr(0, line.find(kAfter));
  for (std::size_t at = front.find(kGroup); at != std::string_view::npos;) {
    const std::size_t next = front.find(kGroup, at + kGroup.size());
    const std::string_view group = front.substr(at + 1, next - at - 1);
    if (group.find(" CPU_IDs=") != std::string_view::npos) add_group(group, held);
    at = next;
  }
  return held;
}

}  // namespace

std::map<std::string_view, std::string_view> parse_record(std::string_view line) {
  Record record;
  std::string_view key;
  std::size_t value_begin = 0;
  std::size_t value_end = 0;
  const auto keep = [&] {
    if (!key.empty())
      record.try_emplace(key, trimmed(line.substr(value_begin, value_end - value_begin)));
  };
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && is_key(word.substr(0, equals))) {
      keep();
      key = word.substr(0, equals);
      value_begin = begin + equals + 1;
    }
    value_end = end;
    begin = end + 1;
  }
  keep();
  return record;
}

Result<std::vector<Node>> parse_nodes(std::string_view text) {
  std::vector<Node> nodes;
  BERTH_TRY_VOID(for_each_record(text, "NodeName=", [&](const Record& record) -> Result<void> {
    nodes.push_back(make_node(record));
    return {};
  }));
  return nodes;
}

Result<std::vector<Partition>> parse_partitions(std::string_view text) {
  std::vector<Partition> partitions;
  BERTH_TRY_VOID(for_each_record(text, "PartitionName=", [&](const Record& record) -> Result<void> {
    BERTH_TRY(auto partition, make_partition(record));
    partitions.push_back(std::move(partition));
    return {};
  }));
  return partitions;
}

Result<std::vector<Switch>> parse_topology(std::string_view text) {
  std::vector<Switch> switches;
  for (const std::string_view key : {"SwitchName", "BlockName"}) {
    const std::string first = fmt::format("{}=", key);
    BERTH_TRY_VOID(for_each_record(text, first, [&](const Record& record) -> Result<void> {
      BERTH_TRY(auto made, make_switch(record, key));
      switches.push_back(std::move(made));
      return {};
    }));
  }
  return switches;
}

Result<std::vector<Reservation>> parse_reservations(std::string_view text) {
  std::vector<Reservation> reservations;
  BERTH_TRY_VOID(
      for_each_record(text, "ReservationName=", [&](const Record& record) -> Result<void> {
        BERTH_TRY(auto reservation, make_reservation(record));
        reservations.push_back(std::move(reservation));
        return {};
      }));
  return reservations;
}

Config parse_config(std::string_view text) {
  Config config;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, equals));
    if (is_key(key))
      config.all.try_emplace(std::string(key), or_empty(trimmed(line.substr(equals + 1))));
  }
  return config;
}

JobDetails parse_job_details(std::string_view text) {
  static constexpr std::string_view kFirst = "JobId=";
  JobDetails details;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(kFirst)) continue;
    const auto job =
        number_or<std::uint32_t>(line.substr(kFirst.size(), line.find(' ') - kFirst.size()), 0);
    if (job == 0 || details.doubtful.contains(job)) continue;
    const auto added = details.held.try_emplace(job, parse_groups(line));
    if (added.second) continue;
    details.held.erase(job);
    details.doubtful.insert(job);
  }
  return details;
}

std::vector<HeldNode> parse_one_job_detail(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return parse_groups(line);
}

}  // namespace berth::slurm
