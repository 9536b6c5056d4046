#include "cpu/server_cores.h"

#include <algorithm>
#include <limits>

namespace berth {

const CoreGrants& ServerCores::share_out(const Plan& plan, std::span<const NodeId> nodes) {
  nodes_.assign(nodes.begin(), nodes.end());
  with_gang_mates(plan, nodes_, on_node_);
  const auto says_nothing = [&](NodeId node) { return cores_milli_of(plan, node) == 0; };
  std::erase_if(nodes_, says_nothing);
  grants_.clear();
  for (const NodeId node : nodes_) {
    gather(plan, node);
    allocate_gathered(plan, node);
  }
  // Now it is known what the poorest worker of each gang has: more would be of no use elsewhere.
  for (const auto& [job, cores_milli] : grants_) {
    if (plan.slices(job).size() > 1) caps_[job] = std::max(cores_milli / 1000, 1);
  }
  // What a gang leaves on its richer servers goes to the others there.
  for (const NodeId node : nodes_) {
    if (caps_.empty()) break;
    gather(plan, node);
    const auto is_gang = [&](const ServerJob& each) { return caps_.contains(each.job); };
    if (std::ranges::any_of(jobs_, is_gang)) allocate_gathered(plan, node);
  }
  caps_.clear();
  return grants_;
}

void ServerCores::gather(const Plan& plan, NodeId node) {
  jobs_.clear();
  gangs_.clear();
  jobs_of_server(plan, node, on_node_, jobs_);
  for (const ServerJob& each : jobs_) {
    gangs_.push_back({.speeds = speeds_of(plan, each.job, node),
                      .workers = each.workers,
                      .most = most_of(plan, each.job)});
  }
}

/// A gang that reaches onto servers which are not looked at now keeps what it has at most: what it
/// would gain here its workers there cannot use.
std::int32_t ServerCores::most_of(const Plan& plan, JobId job) const {
  constexpr auto kNoLimit = std::numeric_limits<std::int32_t>::max();
  const auto slices = plan.slices(job);
  if (slices.size() < 2) return kNoLimit;
  if (const auto cap = caps_.find(job); cap != caps_.end()) return cap->second;
  const auto looked_at = [&](const Slice& slice) {
    return std::ranges::binary_search(nodes_, slice.node);
  };
  const std::int32_t held = plan.terms(job).cores_milli / 1000;
  return held == 0 || std::ranges::all_of(slices, looked_at) ? kNoLimit : held;
}

/// Gangs over several servers have what the poorest worker has; others what this server gives. With
/// fewer cores than workers everybody has the same fraction of one.
void ServerCores::allocate_gathered(const Plan& plan, NodeId node) {
  cores_.resize(gangs_.size());
  const bool enough = allocator_.allocate(server_of(plan, node), gangs_, cores_);
  std::int32_t workers = 0;
  for (const ServerJob& each : jobs_) workers += each.workers;
  const auto even = static_cast<std::int32_t>(cores_milli_of(plan, node) / std::max(workers, 1));
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const std::int32_t cores = enough ? cores_[i] * 1000 : std::max(even, 1);
    const auto [entry, is_new] = grants_.try_emplace(jobs_[i].job, cores);
    const bool gang = plan.slices(jobs_[i].job).size() > 1;
    if (!is_new) entry->second = gang ? std::min(entry->second, cores) : cores;
  }
}

/// Live, a job of which nothing is known seems to need no cores at all. One that says what it does
/// shows soon what it needs; whoever is silent must not run on a single core for ever, so it seems
/// to need its share by GPUs.
std::span<const double> ServerCores::speeds_of(const Plan& plan, JobId job, NodeId node) {
  const std::span<const double> known = beliefs_.speeds(plan, job);
  const bool says_nothing = known.size() < 2 || known[1] >= 1;
  if (!goes_by_measurement_ || !says_nothing || beliefs_.is_measured(plan, job)) return known;
  const std::int32_t share = bind_share(server_of(plan, node), 1);
  const auto [entry, is_new] = even_shares_.try_emplace(share);
  if (is_new) {
    for (std::int32_t cores = 0; cores <= share; ++cores)
      entry->second.push_back(static_cast<double>(cores) / share);
  }
  return entry->second;
}

std::int64_t ServerCores::free_milli(const Plan& plan, NodeId node) {
  std::int64_t free = cores_milli_of(plan, node);
  jobs_.clear();
  jobs_of_server(plan, node, on_node_, jobs_);
  for (const ServerJob& each : jobs_)
    free -= std::int64_t{plan.terms(each.job).cores_milli} * each.workers;
  return free;
}

CpuGang ServerCores::take_out(JobId job) {
  const auto at = std::ranges::find(jobs_, job, &ServerJob::job) - jobs_.begin();
  const CpuGang gang = gangs_[static_cast<std::size_t>(at)];
  gangs_.erase(gangs_.begin() + at);
  return gang;
}

double ServerCores::objective(const Plan& plan, NodeId node) {
  cores_.resize(gangs_.size());
  const bool enough = allocator_.allocate(server_of(plan, node), gangs_, cores_);
  return enough ? cpu_objective(gangs_, cores_) : 0;
}

}  // namespace berth
