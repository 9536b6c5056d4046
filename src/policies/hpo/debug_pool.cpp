#include "policies/hpo/debug_pool.h"

#include <algorithm>
#include <map>

namespace berth::hpo {

namespace {

constexpr Duration kLook = std::chrono::minutes{1};

/// None on a device: jobs that take cores only are in nobody's way.
bool has_no_job(const ClusterState& state, NodeId node) {
  return state.is_up(node) && state.free_on(node) == state.cluster().nodes[node.value].gpus;
}

}  // namespace

void DebugPool::begin(const Cluster& cluster) {
  nodes_.begin(cluster);
  const std::size_t half = nodes_.candidates().size() / 2;
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
         std::ranges::find(shape.pools, nodes_.pool()) != shape.pools.end() &&
         std::ranges::all_of(nodes_.candidates(), fits);
}

void DebugPool::open(const View& view) {
  for (std::size_t i = 0; i < size_.first; ++i) nodes_.reserve(nodes_.candidates()[i]);
  next_look_ = view.now + kLook;
}

void DebugPool::push(const View& view, JobId job) {
  if (!is_open()) open(view);
  waiting_.insert(std::ranges::upper_bound(waiting_, job), job);
}

void DebugPool::forget(JobId job) {
  std::erase(waiting_, job);
  ends_.drop(job);
}

/// The node whose jobs are all best effort and lose the least GPU time since they last started.
std::optional<NodeId> DebugPool::cheapest_node(const Pass& pass,
                                               const std::set<JobId>& running) const {
  const View& view = pass.view;
  std::map<NodeId, double> loss;
  std::set<NodeId> firm;
  for (const JobId job : running) {
    const bool makes_room = view.text(view.request(job).queue) == options_.best_effort;
    const double seconds = to_seconds(view.now - view.jobs.last_start[job]);
    for (const Slice& slice : pass.plan.slices(job)) {
      if (makes_room) {
        loss[slice.node] += seconds * pass.plan.gpus_of(job);
      } else {
        firm.insert(slice.node);
      }
    }
  }
  std::optional<NodeId> best;
  for (const auto& [node, lost] : loss) {
    const bool counts = !firm.contains(node) && !nodes_.contains(node) &&
                        view.cluster.cluster().nodes[node.value].pool == nodes_.pool();
    if (counts && (!best || lost < loss.at(*best))) best = node;
  }
  return best;
}

void DebugPool::grow(Pass& pass, const std::set<JobId>& running, std::vector<JobId>& evicted) {
  const auto idle = std::ranges::find_if(nodes_.candidates(), [&](NodeId node) {
    return !nodes_.contains(node) && has_no_job(pass.plan.cluster(), node);
  });
  std::optional<NodeId> node;
  if (idle != nodes_.candidates().end()) node = *idle;
  if (!node) {
    node = cheapest_node(pass, running);
    if (!node) return;
    for (const JobId job : running) {
      const auto here = [&](const Slice& slice) { return slice.node == *node; };
      if (!std::ranges::any_of(pass.plan.slices(job), here)) continue;
      pass.plan.preempt(job, Reason::Priority);
      evicted.push_back(job);
    }
  }
  nodes_.reserve(*node);
}

void DebugPool::change_size(Pass& pass, const std::set<JobId>& running,
                            std::vector<JobId>& evicted) {
  const auto& nodes = nodes_.nodes();
  const auto idle = std::ranges::find_if(
      nodes, [&](NodeId node) { return has_no_job(pass.plan.cluster(), node); });
  switch (debug_pool_change(size_, nodes.size(), waiting_.size(), idle != nodes.end())) {
    case PoolChange::Grow: grow(pass, running, evicted); break;
    case PoolChange::Shrink: nodes_.release(*idle); break;
    case PoolChange::Stay: break;
  }
}

DebugPool::Stopped DebugPool::run(Pass& pass, const std::set<JobId>& running) {
  Stopped stopped;
  if (!is_open()) return stopped;
  const View& view = pass.view;
  for (const JobId job : ends_.due(view.now)) {
    ends_.drop(job);
    if (has_no_class(view, job)) {
      pass.plan.preempt(job, Reason::Profiling);
      stopped.outlived.push_back(job);
    } else {
      pass.plan.kill(job, Reason::TimeLimit);
      stopped.killed.push_back(job);
    }
  }
  if (view.now >= next_look_) {
    change_size(pass, running, stopped.evicted);
    next_look_ = view.now + kLook;
  }
  std::erase_if(waiting_, [&](JobId job) {
    if (!nodes_.try_start_inside(pass.plan, job, Reason::Order)) return false;
    ends_.set(job, view.now + (has_no_class(view, job) ? options_.screen : options_.limit));
    return true;
  });
  return stopped;
}

/// A pool that nobody is in needs no look.
Time DebugPool::next_wakeup() const noexcept {
  if (!is_open() || (waiting_.empty() && ends_.empty())) return kNever;
  return std::min(next_look_, ends_.next());
}

}  // namespace berth::hpo
