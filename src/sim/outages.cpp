#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/split.h"
#include "sim/sim_executor.h"

namespace berth {

namespace {

bool read_seconds(std::string_view text, Time& time) {
  double seconds = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (code != std::errc{} || end != text.data() + text.size()) return false;
  if (!(seconds >= 0 && seconds <= kMaxInputSeconds)) return false;
  time = seconds_to_time(seconds);
  return true;
}

}  // namespace

Result<std::vector<NodeOutage>> parse_outages(std::string_view text, const std::string& name,
                                              const Cluster& cluster) {
  std::map<std::string_view, NodeId> nodes;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    nodes.emplace(cluster.nodes[i].name, NodeId{i});
  Error error;
  std::vector<NodeOutage> outages;
  std::size_t line_number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (line_number == 1) {
      if (line == "node,down_time,up_time") continue;
      return fail(fmt::format("{}:1:1: the header must be node,down_time,up_time", name));
    }
    const auto fields = split(line, ',');
    NodeOutage outage;
    const auto wrong = [&](std::size_t column, std::string_view what) {
      error.messages.push_back(fmt::format("{}:{}:{}: {}", name, line_number, column, what));
    };
    if (fields.size() != 3) {
      wrong(1, "a row has three fields: node,down_time,up_time");
    } else if (const auto node = nodes.find(fields[0]); node == nodes.end()) {
      wrong(1, fmt::format("the cluster has no node '{}' (names run from {} to {})", fields[0],
                           cluster.nodes.front().name, cluster.nodes.back().name));
    } else if (!read_seconds(fields[1], outage.down)) {
      wrong(2, fmt::format("down_time must be seconds, got '{}'", fields[1]));
    } else if (!fields[2].empty() &&
               (!read_seconds(fields[2], outage.up) || outage.up <= outage.down)) {
      wrong(3, fmt::format("up_time must be seconds after down_time, got '{}'", fields[2]));
    } else {
      outage.node = node->second;
      outages.push_back(outage);
    }
  }
  // Sorted by node and time, an overlap can only be with the neighbour.
  std::ranges::sort(outages, {}, [](const NodeOutage& o) { return std::tuple(o.node, o.down); });
  for (std::size_t i = 1; i < outages.size(); ++i) {
    if (outages[i].node == outages[i - 1].node && outages[i].down < outages[i - 1].up) {
      error.messages.push_back(
          fmt::format("{}: two outages of node '{}' overlap (give each its own span)", name,
                      cluster.nodes[outages[i].node.value].name));
    }
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(error);
  return outages;
}

}  // namespace berth
