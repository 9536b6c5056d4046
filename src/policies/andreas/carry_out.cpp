// Carrying out what was decided: jobs start once their nodes are up, nodes are switched.
#include <algorithm>

#include "policies/andreas/andreas.h"

namespace berth {

void Andreas::start_seated(Plan& plan) {
  std::erase_if(pending_, [&](JobId job) { return try_start(plan, job); });
}

bool Andreas::try_start(Plan& plan, JobId job) {
  const Seat& own = seat(job);
  slices_.clear();
  for (const andreas::Share& share : own.shares) {
    if (!plan.cluster().is_up(NodeId{share.node})) return false;
    const Slice slice = choose_devices(plan, job, share);
    if (slice.gpus < share.gpus) return false;
    slices_.push_back(slice);
  }
  const PoolId pool = plan.cluster().cluster().nodes[own.shares.front().node].pool;
  return plan.try_start_on(job, pool, slices_, Reason::Power);
}

/// Those it held on this node before, as far as they are free, then the lowest.
Slice Andreas::choose_devices(const Plan& plan, JobId job, const andreas::Share& share) const {
  const NodeId node{share.node};
  std::uint64_t free = plan.cluster().free_mask(node);
  std::uint64_t own = 0;
  if (const auto found = left_.find(job); found != left_.end()) {
    for (const Slice& slice : found->second) {
      if (slice.node == node) own = slice.devices & free;
    }
  }
  Slice slice{node, 0, 0};
  free &= ~own;
  while (slice.gpus < share.gpus && (own | free) != 0) {
    std::uint64_t& from = own != 0 ? own : free;
    slice.devices |= from & (~from + 1);
    from &= from - 1;
    ++slice.gpus;
  }
  return slice;
}

/// They go wherever the placement likes among nodes that are up; with none a node is switched on.
void Andreas::start_without_gpus(Plan& plan) {
  for (const JobId job : without_gpus_) {
    if (plan.holds(job) || plan.try_start(job)) continue;
    const ClusterState& state = plan.cluster();
    const auto boots = [&](NodeId node) { return state.power(node) == PowerState::Booting; };
    if (std::ranges::any_of(fleet_.nodes(), boots)) return;
    const auto is_off = [&](NodeId node) {
      return state.power(node) == PowerState::Off && !state.has_failed(node);
    };
    const auto node = std::ranges::find_if(fleet_.nodes(), is_off);
    if (node != fleet_.nodes().end()) static_cast<void>(plan.power_on(*node, Reason::Power));
    return;
  }
}

/// Nodes with a seat on, those without one off when they have been idle for long enough.
void Andreas::switch_nodes(const View& view, Plan& plan) {
  const ClusterState& state = plan.cluster();
  next_switch_ = kNever;
  const bool needs_any =
      std::ranges::any_of(without_gpus_, [&](JobId job) { return !plan.holds(job); });
  for (const NodeId node : fleet_.nodes()) {
    const PowerState power = state.power(node);
    Time& idle_since = idle_since_[node.value];
    if (users_[node.value] > 0) {
      if (power == PowerState::Off && !state.has_failed(node)) switch_on(view, plan, node);
      continue;
    }
    if (power == PowerState::Off || needs_any) continue;
    if (idle_since == kNever) idle_since = view.now;
    const Time off = idle_since + options_.idle_off;
    if (view.now < off) {
      next_switch_ = std::min(next_switch_, off);
    } else {
      static_cast<void>(plan.power_off(node));
    }
  }
}

void Andreas::switch_on(const View& view, Plan& plan, NodeId node) {
  if (plan.power_on(node)) booted_[node.value] = view.now + options_.boot;
}

}  // namespace berth
