#include "policies/hpo/debug_pool.h"

#include <algorithm>
#include <map>

#include "placements/node_picker.h"

namespace berth::hpo {

namespace {
constexpr Duration kLook = std::chrono::minutes{1};
}

void DebugPool::begin(const Cluster& cluster) {
  reserved_.assign(cluster.nodes.size(), false);
  std::vector<std::size_t> count(cluster.pools.size());
  for (const Node& node : cluster.nodes) ++count[node.pool.value];
  const auto largest = std::ranges::max_element(count);
  if (largest == count.end()) return;
  pool_ = PoolId{static_cast<std::uint32_t>(largest - count.begin())};
  for (auto i = static_cast<std::uint32_t>(cluster.nodes.size()); i-- > 0;)
    if (cluster.nodes[i].pool == pool_) candidates_.push_back(NodeId{i});
  const std::size_t half = candidates_.size() / 2;
  size_ = debug_pool_size(cluster.nodes.size());
  size_.first = std::min(size_.first, half);
  size_.least = std::min(size_.least, half);
  size_.most = std::min(size_.most, half);
}

bool DebugPool::has_no_class(const View& view, JobId job) const {
  const JobRequest& request = view.request(job);
  const std::string_view queue = view.text(request.queue);
  return !options_.production.empty() && request.kind == JobKind::Training &&
         view.text(request.study).empty() && queue != options_.production &&
         queue != options_.best_effort;
}

bool DebugPool::takes(const View& view, JobId job) const {
  const Shape& shape = view.shape(job);
  const auto fits = [&](NodeId node) {
    return view.cluster.cluster().nodes[node.value].gpus >= shape.gpus;
  };
  return (view.request(job).kind == JobKind::Debug || has_no_class(view, job)) && size_.first > 0 &&
         shape.gpus <= options_.largest && !shape.is_fraction() &&
         std::ranges::find(shape.pools, pool_) != shape.pools.end() &&
         std::ranges::all_of(candidates_, fits);
}

void DebugPool::open(const View& view) {
  for (std::size_t i = 0; i < size_.first; ++i) {
    nodes_.push_back(candidates_[i]);
    reserved_[candidates_[i].value] = true;
  }
  next_look_ = view.now + kLook;
}

void DebugPool::push(const View& view, JobId job) {
  if (!is_open()) open(view);
  waiting_.insert(std::ranges::upper_bound(waiting_, job), job);
}

void DebugPool::forget(JobId job) {
  std::erase(waiting_, job);
  std::erase_if(ends_, [&](const auto& entry) { return entry.second == job; });
}

bool DebugPool::is_idle(const ClusterState& state, NodeId node) const {
  return state.is_up(node) && state.free_on(node) == state.cluster().nodes[node.value].gpus;
}

/// The node whose jobs are all best effort and lose the least GPU time since they last started.
std::optional<NodeId> DebugPool::cheapest_node(const View& view, const Plan& plan,
                                               const std::set<JobId>& running) const {
  std::map<NodeId, double> loss;
  std::set<NodeId> firm;
  for (const JobId job : running) {
    const bool makes_room = view.text(view.request(job).queue) == options_.best_effort;
    const double seconds = to_seconds(view.now - view.jobs.last_start[job]);
    for (const Slice& slice : plan.slices(job)) {
      if (makes_room)
        loss[slice.node] += seconds * plan.gpus_of(job);
      else
        firm.insert(slice.node);
    }
  }
  std::optional<NodeId> best;
  for (const auto& [node, lost] : loss) {
    const bool counts = !firm.contains(node) && !reserved_[node.value] &&
                        view.cluster.cluster().nodes[node.value].pool == pool_;
    if (counts && (!best || lost < loss.at(*best))) best = node;
  }
  return best;
}

void DebugPool::grow(const View& view, Plan& plan, const std::set<JobId>& running,
                     std::vector<JobId>& evicted) {
  const auto idle = std::ranges::find_if(candidates_, [&](NodeId node) {
    return !reserved_[node.value] && is_idle(plan.cluster(), node);
  });
  std::optional<NodeId> node;
  if (idle != candidates_.end()) node = *idle;
  if (!node) {
    node = cheapest_node(view, plan, running);
    if (!node) return;
    for (const JobId job : running) {
      const auto here = [&](const Slice& slice) { return slice.node == *node; };
      if (!std::ranges::any_of(plan.slices(job), here)) continue;
      plan.preempt(job, Reason::Priority);
      evicted.push_back(job);
    }
  }
  nodes_.push_back(*node);
  reserved_[node->value] = true;
}

void DebugPool::change_size(const View& view, Plan& plan, const std::set<JobId>& running,
                            std::vector<JobId>& evicted) {
  const auto idle =
      std::ranges::find_if(nodes_, [&](NodeId node) { return is_idle(plan.cluster(), node); });
  switch (debug_pool_change(size_, nodes_.size(), waiting_.size(), idle != nodes_.end())) {
    case PoolChange::Grow: grow(view, plan, running, evicted); break;
    case PoolChange::Shrink:
      reserved_[idle->value] = false;
      nodes_.erase(idle);
      break;
    case PoolChange::Stay: break;
  }
}

bool DebugPool::try_start(const View& view, Plan& plan, JobId job) const {
  const Shape& shape = view.shape(job);
  return std::ranges::any_of(nodes_, [&](NodeId node) {
    const ClusterState& state = plan.cluster();
    if (!state.is_up(node) || state.room_on(node, shape) < shape.gpus) return false;
    const Slice slice = slice_of(state, node, shape.gpus);
    return plan.try_start_on(job, pool_, {&slice, 1}, Reason::Order);
  });
}

DebugPool::Stopped DebugPool::run(const View& view, Plan& plan, const std::set<JobId>& running) {
  Stopped stopped;
  if (!is_open()) return stopped;
  while (!ends_.empty() && ends_.begin()->first <= view.now) {
    const JobId job = ends_.begin()->second;
    ends_.erase(ends_.begin());
    if (has_no_class(view, job)) {
      plan.preempt(job, Reason::Profiling);
      stopped.outlived.push_back(job);
    } else {
      plan.kill(job, Reason::TimeLimit);
      stopped.killed.push_back(job);
    }
  }
  if (view.now >= next_look_) {
    change_size(view, plan, running, stopped.evicted);
    next_look_ = view.now + kLook;
  }
  std::erase_if(waiting_, [&](JobId job) {
    if (!try_start(view, plan, job)) return false;
    ends_.emplace(view.now + (has_no_class(view, job) ? options_.screen : options_.limit), job);
    return true;
  });
  return stopped;
}

/// A pool that nobody is in needs no look.
Time DebugPool::next_wakeup() const noexcept {
  if (!is_open() || (waiting_.empty() && ends_.empty())) return kNever;
  return ends_.empty() ? next_look_ : std::min(next_look_, ends_.begin()->first);
}

}  // namespace berth::hpo
