#include "policies/andreas/node_power.h"

#include <algorithm>

namespace berth::andreas {

Duration NodePower::until_ready(const View& view, NodeId node) const {
  switch (view.cluster.power(node)) {
    case PowerState::On: return Duration::zero();
    case PowerState::Off: return boot_;
    case PowerState::Booting: break;
  }
  return std::max(Duration::zero(), booted_[node] - view.now);
}

void NodePower::switch_nodes(Pass& pass, std::span<const NodeId> nodes, Seats& seats, Spare spare) {
  const ClusterState& state = pass.plan.cluster();
  const Time now = pass.view.now;
  next_switch_ = kNever;
  for (const NodeId node : nodes) {
    const bool is_off = state.power(node) == PowerState::Off;
    if (seats.is_needed(node)) {
      if (is_off && !state.has_failed(node) && pass.plan.power_on(node))
        booted_[node] = now + boot_;
      continue;
    }
    if (is_off || spare == Spare::Keep) continue;
    const Time off = seats.idle_since(node, now) + idle_off_;
    if (now < off) {
      next_switch_ = std::min(next_switch_, off);
    } else {
      static_cast<void>(pass.plan.power_off(node));
    }
  }
}

void NodePower::boot_any(Plan& plan, std::span<const NodeId> nodes) {
  const ClusterState& state = plan.cluster();
  const auto boots = [&](NodeId node) { return state.power(node) == PowerState::Booting; };
  if (std::ranges::any_of(nodes, boots)) return;
  const auto is_off = [&](NodeId node) {
    return state.power(node) == PowerState::Off && !state.has_failed(node);
  };
  const auto node = std::ranges::find_if(nodes, is_off);
  if (node != nodes.end()) static_cast<void>(plan.power_on(*node, Reason::Power));
}

}  // namespace berth::andreas
