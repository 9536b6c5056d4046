#include "power/spare_nodes.h"

#include <algorithm>
#include <cmath>

namespace berth {

std::int32_t spares_of(std::int32_t nodes, double share) noexcept {
  const auto wanted = static_cast<std::int32_t>(std::ceil(share * nodes - 1e-9));
  return std::min(wanted, nodes - 1);
}

void SpareNodes::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  groups_.resize(cluster.pools.size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    groups_[cluster.nodes[i].pool.value].nodes.push_back(NodeId{i});
  for (Group& group : groups_)
    group.spares = std::max(0, spares_of(static_cast<std::int32_t>(group.nodes.size()), share_));
}

void SpareNodes::on_arrival(const View&, JobId job) { active_.push_back(job); }

void SpareNodes::on_departure(const View&, JobId job) { std::erase(active_, job); }

/// So many are off of those that work: the last ones first, since placements fill from the front.
void SpareNodes::settle(const Group& group, std::int32_t spares, Plan& plan) const {
  const ClusterState& state = plan.cluster();
  const auto is_off = [&](NodeId node) {
    return !state.has_failed(node) && state.power(node) == PowerState::Off;
  };
  auto off = static_cast<std::int32_t>(std::ranges::count_if(group.nodes, is_off));
  for (const NodeId node : group.nodes) {
    if (off <= spares) break;
    if (is_off(node) && plan.power_on(node)) --off;
  }
  for (auto node = group.nodes.rbegin(); node != group.nodes.rend() && off < spares; ++node) {
    if (state.is_idle(*node) && plan.power_off(*node)) ++off;
  }
}

void SpareNodes::manage(const View&, Plan& plan) {
  // Jobs wait and nobody runs: whatever keeps them, it shall not be a spare node.
  const bool stuck =
      !active_.empty() && std::ranges::none_of(active_, [&](JobId job) { return plan.holds(job); });
  for (const Group& group : groups_) {
    const auto failed = static_cast<std::int32_t>(std::ranges::count_if(
        group.nodes, [&](NodeId node) { return plan.cluster().has_failed(node); }));
    settle(group, stuck ? 0 : std::max(0, group.spares - failed), plan);
  }
}

}  // namespace berth
