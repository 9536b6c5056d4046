#include "policies/lucid/profiler.h"

#include <algorithm>
#include <limits>

#include "placements/node_picker.h"
#include "policies/common/place_outside.h"

namespace berth {

namespace {
constexpr std::size_t kManyWait = 10;
constexpr std::size_t kFewWait = 5;
constexpr double kFewArrivals = 10;  // per hour
}  // namespace

void Profiler::begin(const Cluster& cluster) {
  is_profiling_.assign(cluster.nodes.size(), false);
  std::vector<std::size_t> nodes_of(cluster.pools.size());
  for (const Node& node : cluster.nodes) ++nodes_of[node.pool.value];
  const auto largest = std::ranges::max_element(nodes_of);
  if (largest == nodes_of.end()) return;
  pool_ = PoolId{static_cast<std::uint32_t>(largest - nodes_of.begin())};
  for (std::uint32_t i = static_cast<std::uint32_t>(cluster.nodes.size()); i-- > 0;) {
    if (cluster.nodes[i].pool != pool_) continue;
    node_gpus_ =
        candidates_.empty() ? cluster.nodes[i].gpus : std::min(node_gpus_, cluster.nodes[i].gpus);
    candidates_.push_back(NodeId{i});
  }
  const std::size_t by_size =
      cluster.nodes.size() >= 8 ? std::max<std::size_t>(1, cluster.nodes.size() / 20) : 0;
  const std::size_t wanted = options_.nodes ? static_cast<std::size_t>(*options_.nodes) : by_size;
  // At most half of the nodes: profiling serves the main part.
  size_ = std::min(wanted, candidates_.size() / 2);
  initial_ = size_;
  for (std::size_t i = 0; i < size_; ++i) is_profiling_[candidates_[i].value] = true;
}

bool Profiler::takes(const Shape& shape) const noexcept {
  return is_on() && shape.gpus <= std::min(options_.largest, node_gpus_) && !shape.is_fraction() &&
         std::ranges::find(shape.pools, pool_) != shape.pools.end();
}

bool Profiler::place_outside(const ClusterState& state, const Shape& shape, PoolId pool,
                             std::vector<Slice>& slices) const {
  return berth::place_outside(state, shape, pool, is_profiling_, slices);
}

bool Profiler::is_outside_large_enough(const Cluster& cluster, const Shape& shape) const {
  return berth::is_outside_large_enough(cluster, shape, is_profiling_);
}

void Profiler::push(const View& view, JobId job) {
  const Waiting entry{view.gpus(job), job};
  waiting_.insert(std::ranges::upper_bound(waiting_, entry), entry);
}

void Profiler::forget(JobId job) {
  std::erase_if(waiting_, [&](const Waiting& entry) { return entry.job == job; });
  std::erase_if(runs_, [&](const Run& run) { return run.job == job; });
}

void Profiler::take_due(Time now, std::vector<JobId>& due) {
  while (!runs_.empty() && runs_.front().end <= now) {
    due.push_back(runs_.front().job);
    runs_.pop_front();
  }
}

bool Profiler::try_start(const View& view, Plan& plan, JobId job) {
  const Shape& shape = view.shape(job);
  for (std::size_t i = 0; i < size_; ++i) {
    const NodeId node = candidates_[i];
    const ClusterState& state = plan.cluster();
    if (!state.is_up(node) || state.room_on(node, shape) < shape.gpus) continue;
    const Slice slice = slice_of(state, node, shape.gpus);
    if (plan.try_start_on(job, pool_, {&slice, 1}, Reason::Profiling)) return true;
  }
  return false;
}

void Profiler::start_waiting(const View& view, Plan& plan, std::vector<JobId>& started) {
  std::size_t kept = 0;
  std::int32_t too_large = std::numeric_limits<std::int32_t>::max();
  for (const Waiting entry : waiting_) {
    // Those behind ask for as much or more; only cores and memory could let one of them through.
    const bool hopeless = entry.gpus >= too_large && !view.shape(entry.job).needs_side_resources();
    if (!hopeless && try_start(view, plan, entry.job)) {
      started.push_back(entry.job);
      runs_.push_back({view.now + options_.longest, entry.job});
      continue;
    }
    too_large = std::min(too_large, entry.gpus);
    waiting_[kept++] = entry;
  }
  waiting_.resize(kept);
}

void Profiler::resize(double expected_arrivals) {
  if (waiting_.size() > kManyWait && size_ < candidates_.size() / 2) {
    is_profiling_[candidates_[size_++].value] = true;
  } else if (waiting_.size() < kFewWait && size_ > initial_ && expected_arrivals < kFewArrivals) {
    is_profiling_[candidates_[--size_].value] = false;
  }
}

}  // namespace berth
