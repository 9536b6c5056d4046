#include "cpu/core_moves.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/device_mask.h"
#include "base/rounds.h"

namespace berth {
namespace {

constexpr double kWorthIt = 2;  // gain over cost
constexpr std::size_t kTriesPerMove = 4;
constexpr std::int64_t kIdleMilli = 2000;  // fewer idle cores are no reason to move

double seconds_left(const View& view, JobId job) {
  const bool estimated = includes(view.needs(), Need::RunTime);
  return to_seconds(estimated ? view.estimated_left(job) : view.jobs.work_done(job, view.now));
}

}  // namespace

Time CoreMoves::wakeup(Time now) {
  const bool moves = may_move_ && interval_ > Duration::zero();
  next_ = moves ? Grid{interval_}.after(now) : kNever;
  return next_;
}

void CoreMoves::run(const View& view, Plan& plan, const ShareOut& share_out) {
  cores_.forget_shared_out();
  list_candidates(plan);
  const std::size_t limit = most_moves(plan);
  std::size_t moves = 0;
  std::size_t tries = limit * kTriesPerMove;
  for (const Candidate& candidate : candidates_) {
    if (moves == limit || tries-- == 0) break;
    const PoolId pool = plan.pool_of(candidate.job);
    const auto richest = std::ranges::find_if(targets_, [&](const Target& target) {
      return plan.cluster().cluster().nodes[target.node.value].pool == pool &&
             target.node != candidate.node && target.free_milli >= kIdleMilli;
    });
    if (richest == targets_.end() || !try_move(view, plan, candidate, richest->node)) continue;
    ++moves;
    const auto [first, second] = std::minmax(candidate.node, richest->node);
    share_out(std::array{first, second});
    const bool has_room = plan.cluster().free_on(richest->node) > 0;
    richest->free_milli = has_room ? cores_.free_milli(plan, richest->node) : 0;
    sort_targets();
  }
  // A round that moved somebody changed something; after one that did not, only others can.
  may_move_ = moves > 0;
}

/// Starved jobs that could move, the worst off first; servers with a free GPU and idle cores, the
/// richest first.
void CoreMoves::list_candidates(const Plan& plan) {
  candidates_.clear();
  targets_.clear();
  const auto& nodes = plan.cluster().cluster().nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeId node{i};
    if (nodes[i].cpus_milli == 0 || !plan.cluster().is_up(node)) continue;
    const std::int64_t free = cores_.free_milli(plan, node);
    if (plan.cluster().free_on(node) > 0 && free >= kIdleMilli) targets_.push_back({free, node});
    for (const ServerJob& each : cores_.gathered()) {
      if (plan.gpus_of(each.job) != 1 || !plan.jobs().is_running(each.job)) continue;
      if (has_device_company(plan, each.job)) continue;
      const std::int32_t cores = plan.terms(each.job).cores_milli;
      const double speed = beliefs_.speed(plan, each.job, cores);
      if (speed < kStarved) candidates_.push_back({1 - speed, each.job, node});
    }
  }
  std::ranges::sort(candidates_, {}, [](const Candidate& c) { return std::tuple(-c.loss, c.job); });
  sort_targets();
}

void CoreMoves::sort_targets() {
  std::ranges::sort(targets_, {},
                    [](const Target& t) { return std::tuple(-t.free_milli, t.node); });
}

/// A job counts once on each of its servers.
std::size_t CoreMoves::most_moves(const Plan& plan) const {
  std::vector<JobId> jobs;
  std::size_t running = 0;
  for (std::uint32_t i = 0; i < plan.cluster().cluster().nodes.size(); ++i) {
    plan.cluster().jobs_on(NodeId{i}, jobs);
    running += jobs.size();
  }
  const auto share = static_cast<std::size_t>(moved_share_ * static_cast<double>(running));
  return std::max<std::size_t>(share, 1);
}

/// Sum of normalised speeds of both servers after the move less that before it.
double CoreMoves::gain_of(const Plan& plan, const Candidate& candidate, NodeId to) {
  cores_.gather(plan, candidate.node);
  double before = cores_.objective(plan, candidate.node);
  const CpuGang moved = cores_.take_out(candidate.job);
  double after = cores_.objective(plan, candidate.node);
  cores_.gather(plan, to);
  before += cores_.objective(plan, to);
  cores_.add(moved);
  after += cores_.objective(plan, to);
  return after - before;
}

bool CoreMoves::try_move(const View& view, Plan& plan, const Candidate& candidate, NodeId to) {
  const double gain = gain_of(plan, candidate, to) * seconds_left(view, candidate.job);
  if (gain <= kWorthIt * to_seconds(cost_)) return false;
  const std::uint64_t device = DeviceMask{plan.cluster().free_mask(to)}.lowest(1);
  const Slice there{.node = to, .gpus = 1, .devices = device};
  const PoolId pool = plan.pool_of(candidate.job);
  const Plan::Mark mark = plan.mark();
  plan.preempt(candidate.job, Reason::Balance);
  if (!plan.try_start_on(candidate.job, pool, {&there, 1}, Reason::Balance)) {
    plan.rollback(mark);
    return false;
  }
  plan.set_pause(candidate.job, cost_);
  return true;
}

}  // namespace berth
