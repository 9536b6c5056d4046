#include "policies/lucid/profiler.h"

#include <algorithm>
#include <limits>

namespace berth::lucid {

namespace {

constexpr std::size_t kManyWait = 10;
constexpr std::size_t kFewWait = 5;
constexpr double kFewArrivals = 10;  // per hour

}  // namespace

void Profiler::begin(const Cluster& cluster) {
  nodes_.begin(cluster);
  const auto& candidates = nodes_.candidates();
  if (candidates.empty()) return;
  node_gpus_ = std::numeric_limits<std::int32_t>::max();
  for (const NodeId node : candidates)
    node_gpus_ = std::min(node_gpus_, cluster.nodes[node.value].gpus);
  const std::size_t by_size =
      cluster.nodes.size() >= 8 ? std::max<std::size_t>(1, cluster.nodes.size() / 20) : 0;
  const std::size_t wanted = options_.nodes ? static_cast<std::size_t>(*options_.nodes) : by_size;
  // At most half of the nodes: profiling serves the main part.
  initial_ = std::min(wanted, candidates.size() / 2);
  for (std::size_t i = 0; i < initial_; ++i) nodes_.reserve(candidates[i]);
}

bool Profiler::takes(const Shape& shape) const noexcept {
  return is_on() && shape.gpus <= std::min(options_.largest, node_gpus_) && !shape.is_fraction() &&
         std::ranges::find(shape.pools, nodes_.pool()) != shape.pools.end();
}

void Profiler::push(const View& view, JobId job) {
  const Waiting entry{view.gpus(job), job};
  waiting_.insert(std::ranges::upper_bound(waiting_, entry), entry);
}

void Profiler::forget(JobId job) {
  std::erase_if(waiting_, [&](const Waiting& entry) { return entry.job == job; });
  ends_.drop(job);
}

std::vector<JobId> Profiler::take_due(Time now) {
  std::vector<JobId> due = ends_.due(now);
  for (const JobId job : due) ends_.drop(job);
  return due;
}

std::vector<JobId> Profiler::start_waiting(Pass& pass) {
  std::vector<JobId> started;
  std::int32_t too_large = std::numeric_limits<std::int32_t>::max();
  std::erase_if(waiting_, [&](const Waiting& entry) {
    // Those behind ask for as much or more; only cores and memory could let one of them through.
    const bool hopeless =
        entry.gpus >= too_large && !pass.view.shape(entry.job).needs_side_resources();
    if (hopeless || !nodes_.try_start_inside(pass.plan, entry.job, Reason::Profiling)) {
      too_large = std::min(too_large, entry.gpus);
      return false;
    }
    started.push_back(entry.job);
    ends_.set(entry.job, pass.view.now + options_.longest);
    return true;
  });
  return started;
}

void Profiler::resize(double expected_arrivals) {
  const std::size_t size = nodes_.nodes().size();
  if (waiting_.size() > kManyWait && size < nodes_.candidates().size() / 2) {
    nodes_.reserve(nodes_.candidates()[size]);
  } else if (waiting_.size() < kFewWait && size > initial_ && expected_arrivals < kFewArrivals) {
    nodes_.release(nodes_.nodes().back());
  }
}

}  // namespace berth::lucid
