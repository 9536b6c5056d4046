// Philly's guideline on fragments: single GPUs move together so that a gang finds a whole server.
#include <algorithm>
#include <tuple>

#include "policies/philly/philly.h"

namespace berth {

/// The server of the pool that the gang could have after the fewest moves of single GPUs.
std::optional<NodeId> Philly::easiest_server(const Plan& plan, PoolId pool,
                                             const Shape& shape) const {
  std::optional<std::tuple<std::int32_t, NodeId>> best;
  const Cluster& cluster = plan.cluster().cluster();
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const NodeId node{i};
    if (cluster.nodes[i].pool != pool || !plan.cluster().is_up(node)) continue;
    const auto singles = static_cast<std::int32_t>(use_.singles_on(node).size());
    const std::int32_t moves = shape.gpus - plan.cluster().room_on(node, shape);
    if (moves < 1 || moves > singles) continue;
    // Where would they go?
    if (plan.cluster().free_gpus(pool) - plan.cluster().room_on(node, shape) < moves) continue;
    if (const std::tuple found{moves, node}; !best || found < *best) best = found;
  }
  if (!best) return std::nullopt;
  return std::get<NodeId>(*best);
}

/// Moves single GPUs off the server, the latest start first, until the gang fits; all or nothing.
bool Philly::clear_server(const View& view, Plan& plan, std::size_t index, const Waiting& waiting,
                          PoolId pool, NodeId node) {
  const Plan::Mark mark = plan.mark();
  const auto singles = use_.singles_on(node);
  std::vector<JobId> latest_first{singles.rbegin(), singles.rend()};
  std::vector<std::pair<JobId, std::vector<Slice>>> moved;
  std::vector<NodeId> avoided{node};
  if (options_.isolate) use_.list_with_gangs(avoided);
  const Shape& gang = view.shape(waiting.job);
  for (const JobId job : latest_first) {
    if (plan.cluster().room_on(node, gang) >= gang.gpus) break;
    plan.preempt(job, Reason::Defragment);
    std::vector<Slice> slices;
    if (!place_at_level(plan.cluster(), view.shape(job), pool, 0, slices, avoided) ||
        !plan.try_start_on(job, pool, slices, Reason::Defragment)) {
      plan.rollback(mark);
      return false;
    }
    moved.emplace_back(job, std::move(slices));
  }
  if (!start(view, plan, vcs_[index], waiting, 0)) {
    plan.rollback(mark);
    return false;
  }
  for (const auto& [job, slices] : moved) {
    use_.stop(job);
    use_.start(job, slices);
  }
  return true;
}

/// For the first gang of each virtual cluster that fits on one server and finds none.
void Philly::defragment(const View& view, Plan& plan) {
  for (const std::size_t index : by_use()) {
    auto& queue = vcs_[index].queue;
    const auto gang =
        std::ranges::find_if(queue, [&](const Waiting& other) { return view.gpus(other.job) > 1; });
    if (gang == queue.end()) continue;
    const Waiting waiting = *gang;
    for (const PoolId pool : view.shape(waiting.job).pools) {
      const auto node = easiest_server(plan, pool, view.shape(waiting.job));
      if (!node || !clear_server(view, plan, index, waiting, pool, *node)) continue;
      std::erase_if(queue, [&](const Waiting& other) { return other.job == waiting.job; });
      break;
    }
  }
}

}  // namespace berth
