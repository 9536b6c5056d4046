#include "policies/antman/lite.h"

#include <algorithm>

namespace berth::antman {

void Lite::begin(const View& view) {
  const auto& nodes = view.cluster.cluster().nodes;
  devices_.resize(view.jobs.size());
  for (std::uint32_t pool = 0; pool < view.cluster.pools(); ++pool)
    spare_.emplace_back(nodes.size(), view.cluster.largest_node(PoolId{pool}));
  for (std::uint32_t node = 0; node < nodes.size(); ++node) offer_devices(view, NodeId{node});
}

void Lite::offer_devices(const View& view, NodeId node) {
  const Node& described = view.cluster.cluster().nodes[node.value];
  SpareDevices& spare = spare_[described.pool.value];
  for (std::int32_t device = 0; device < described.gpus; ++device) {
    if (!view.cluster.is_up(node)) {
      spare.withdraw(node, device);
      continue;
    }
    double busy = 0;
    for (const JobId job : view.cluster.jobs_on(node, device))
      busy += view.believed().profile(view.jobs.profile[job]).gpu_utilisation;
    const bool full = view.cluster.jobs_on(node, device).size() >= kMaxSharers || busy >= 1;
    if (full) {
      spare.withdraw(node, device);
    } else {
      spare.offer(node, device, busy);
    }
  }
}

void Lite::give_back(const View& view, JobId job) {
  for (const Slice& slice : devices_[job.value]) offer_devices(view, slice.node);
  devices_[job.value].clear();
}

void Lite::on_departure(const View& view, JobId job) { give_back(view, job); }

void Lite::on_requeue(const View& view, JobId job) {
  give_back(view, job);
  queue_.push(job);
}

void Lite::on_capacity_change(const View& view, NodeId node) { offer_devices(view, node); }

void Lite::decide(const View& view, Plan& plan, Rng&) {
  for (queue_.drop_over(view.jobs); !queue_.empty(); static_cast<void>(queue_.pop(view.jobs))) {
    if (!try_start(view, plan, queue_.top())) return;
  }
}

/// Memory is looked at on the devices chosen; where it is short, idle ones will do.
bool Lite::try_start(const View& view, Plan& plan, JobId job) {
  const double busy = view.believed().profile(view.jobs.profile[job]).gpu_utilisation;
  for (const std::int32_t highest : {level_within(std::max(0.0, 1 - busy)), 0}) {
    for (const PoolId pool : view.shape(job).pools) {
      const auto chosen = spare_[pool.value].choose(view.gpus(job), highest);
      if (!chosen || !plan.try_share_on(job, pool, *chosen, kMaxSharers, Reason::Order)) continue;
      devices_[job.value] = *chosen;
      for (const Slice& slice : *chosen) offer_devices(view, slice.node);
      return true;
    }
  }
  return false;
}

}  // namespace berth::antman
