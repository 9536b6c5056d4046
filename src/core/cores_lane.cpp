#include "core/cores_lane.h"

#include <algorithm>
#include <optional>

namespace berth {

CoresLane::Key CoresLane::key_of(const View& view, JobId job) {
  return {-std::int64_t{view.request(job).priority}, view.jobs.submitted[job], job};
}

void CoresLane::add(const View& view, JobId job) { waiting_.insert(key_of(view, job)); }

void CoresLane::remove(const View& view, JobId job) { waiting_.erase(key_of(view, job)); }

bool CoresLane::try_start(const View& view, EnginePlan& plan, JobId job) {
  // Where it still runs, from before this engine, it stays.
  for (const Slice& slice : plan.found_on(job))
    if (plan.try_start_without_device(job, slice.node)) return true;
  const Shape& shape = view.shape(job);
  const auto& nodes = view.cluster.cluster().nodes;
  std::optional<std::pair<std::int64_t, NodeId>> best;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeId node{i};
    const bool is_acceptable = std::ranges::find(shape.pools, nodes[i].pool) != shape.pools.end();
    if (!is_acceptable || !view.cluster.has_room_without_device(node, shape)) continue;
    const std::pair candidate{view.cluster.free_cpus_milli(node), node};
    if (!best || candidate < *best) best = candidate;
  }
  return best && plan.try_start_without_device(job, best->second);
}

void CoresLane::decide(const View& view, EnginePlan& plan) {
  for (auto each = waiting_.begin(); each != waiting_.end();)
    each = try_start(view, plan, std::get<JobId>(*each)) ? waiting_.erase(each) : std::next(each);
}

}  // namespace berth
