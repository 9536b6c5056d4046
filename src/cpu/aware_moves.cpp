// Coarse-grained rescheduling: starved one-GPU jobs move to servers with idle cores.
#include <algorithm>
#include <tuple>

#include "cpu/aware_tuner.h"

namespace berth {
namespace {

constexpr double kWorthIt = 2;  // gain over cost
constexpr std::size_t kTriesPerMove = 4;

}  // namespace

std::int64_t AwareTuner::free_milli(const Plan& plan, NodeId node) {
  std::int64_t free = cores_milli_of(plan, node);
  jobs_.clear();
  jobs_of_server(plan, node, on_node_, jobs_);
  for (const ServerJob& each : jobs_)
    free -= std::int64_t{plan.terms(each.job).cores_milli} * each.workers;
  return free;
}

/// Starved jobs that could move, the worst off first; servers with a free GPU and idle cores, the
/// richest first.
void AwareTuner::find_candidates(const Plan& plan) {
  candidates_.clear();
  targets_.clear();
  const auto& nodes = plan.cluster().cluster().nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeId node{i};
    if (nodes[i].cpus_milli == 0 || !plan.cluster().is_up(node)) continue;
    const std::int64_t free = free_milli(plan, node);
    if (plan.cluster().free_on(node) > 0 && free >= 2000) targets_.push_back({free, node});
    for (const ServerJob& each : jobs_) {
      if (plan.gpus_of(each.job) != 1 || !plan.jobs().is_running(each.job)) continue;
      if (has_device_company(plan, each.job)) continue;
      const std::int32_t cores = plan.terms(each.job).cores_milli;
      const double speed = beliefs_.speed(plan, each.job, cores);
      if (speed < kStarved) candidates_.push_back({1 - speed, each.job, node});
    }
  }
  std::ranges::sort(candidates_, {}, [](const Candidate& c) { return std::tuple(-c.loss, c.job); });
  std::ranges::sort(targets_, {},
                    [](const Target& t) { return std::tuple(-t.free_milli, t.node); });
}

double AwareTuner::objective(const CpuServer& server) {
  cores_.resize(gangs_.size());
  return allocator_.allocate(server, gangs_, cores_) ? cpu_objective(gangs_, cores_) : 0;
}

/// Sum of normalised speeds of both servers after the move less that before it.
double AwareTuner::gain_of_move(const Plan& plan, const Candidate& candidate, NodeId to) {
  gather(plan, candidate.node);
  double before = objective(server_of(plan, candidate.node));
  const auto mover = std::ranges::find(jobs_, candidate.job, &ServerJob::job) - jobs_.begin();
  const CpuGang moved = gangs_[static_cast<std::size_t>(mover)];
  gangs_.erase(gangs_.begin() + mover);
  double after = objective(server_of(plan, candidate.node));
  gather(plan, to);
  before += objective(server_of(plan, to));
  gangs_.push_back(moved);
  after += objective(server_of(plan, to));
  return after - before;
}

double AwareTuner::seconds_left(const View& view, JobId job) const {
  const bool estimated = includes(view.needs(), Need::RunTime);
  return to_seconds(estimated ? view.estimated_left(job) : view.jobs.work_done(job, view.now));
}

bool AwareTuner::try_move(const View& view, Plan& plan, const Candidate& candidate,
                          Target& target) {
  const double gain = gain_of_move(plan, candidate, target.node);
  const double cost = to_seconds(options_.move_cost);
  if (gain * seconds_left(view, candidate.job) <= kWorthIt * cost) return false;
  const std::uint64_t free = plan.cluster().free_mask(target.node);
  const Slice there{.node = target.node, .gpus = 1, .devices = free & (~free + 1)};
  const PoolId pool = plan.pool_of(candidate.job);
  const Plan::Mark mark = plan.mark();
  plan.preempt(candidate.job, Reason::Balance);
  if (!plan.try_start_on(candidate.job, pool, {&there, 1}, Reason::Balance)) {
    plan.rollback(mark);
    return false;
  }
  plan.set_pause(candidate.job, options_.move_cost);
  nodes_ = {std::min(candidate.node, target.node), std::max(candidate.node, target.node)};
  allocate_nodes(plan);
  target.free_milli = plan.cluster().free_on(target.node) > 0 ? free_milli(plan, target.node) : 0;
  return true;
}

void AwareTuner::reschedule(const View& view, Plan& plan) {
  nodes_.clear();
  find_candidates(plan);
  std::size_t running = 0;
  for (std::uint32_t i = 0; i < plan.cluster().cluster().nodes.size(); ++i) {
    plan.cluster().jobs_on({i}, on_node_);
    running += on_node_.size();
  }
  const auto share = static_cast<std::size_t>(options_.moved_share * static_cast<double>(running));
  const std::size_t limit = std::max<std::size_t>(share, 1);
  std::size_t moves = limit;
  std::size_t tries = moves * kTriesPerMove;
  for (const Candidate& candidate : candidates_) {
    if (moves == 0 || tries-- == 0) break;
    const PoolId pool = plan.pool_of(candidate.job);
    const auto richest = std::ranges::find_if(targets_, [&](const Target& target) {
      return plan.cluster().cluster().nodes[target.node.value].pool == pool &&
             target.node != candidate.node && target.free_milli >= 2000;
    });
    if (richest == targets_.end() || !try_move(view, plan, candidate, *richest)) continue;
    --moves;
    std::ranges::sort(targets_, {},
                      [](const Target& t) { return std::tuple(-t.free_milli, t.node); });
  }
  // A round that moved somebody changed something; after one that did not, only others can.
  may_move_ = moves < limit;
}

}  // namespace berth
