#include "slurm_host/node_watch.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth {

namespace {

/// What is ours begins so; anything else a person has set.
constexpr std::string_view kOurs = "drained: by Slurm: ";

/// Empty: it takes jobs.
std::string why_out(const std::string& node, const std::vector<slurm::Node>& nodes,
                    const ForeignJobs& foreign) {
  const auto found = std::ranges::find(nodes, node, &slurm::Node::name);
  if (found == nodes.end()) return "it is no node of Slurm any more";
  if (!found->is_usable())
    return found->reason.empty() ? found->state
                                 : fmt::format("{} ({})", found->state, found->reason);
  const auto others = foreign.find(node);
  if (others == foreign.end()) return {};
  return fmt::format("GPUs are held by jobs that Berth did not place: {}",
                     fmt::join(others->second, ", "));
}

}  // namespace

std::vector<SettingRecord> node_settings(
    const Cluster& cluster, const std::vector<slurm::Node>& nodes, const ForeignJobs& foreign,
    const std::function<std::optional<std::string>(const std::string&)>& setting) {
  std::vector<SettingRecord> records;
  for (const Node& node : cluster.nodes) {
    const std::string key = "node/" + node.name;
    const std::string set = setting(key).value_or("");
    const bool is_ours = set.starts_with(kOurs);
    if (!set.empty() && !is_ours) continue;
    const std::string why = why_out(node.name, nodes, foreign);
    std::string value = why.empty() ? std::string{} : fmt::format("{}{}", kOurs, why);
    if (value != set)
      records.push_back({.key = key, .value = std::move(value), .by = kSchedulerName});
  }
  return records;
}

}  // namespace berth
