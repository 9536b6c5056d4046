// A consolidated gang that is granted by count but finds no nodes: with `evict_for_consolidation`
// it takes the place of runners of lower queues, those of the least priority first. Whoever of them
// is not in the way after all keeps its devices; the others wait at the head of their queue, and
// the pass that follows at once looks for another place for them.
#include <algorithm>

#include "policies/tiresias/tiresias.h"

namespace berth {

/// Runners of the pool in queues below `q`, the last to be granted first; not those the pass itself
/// has granted.
void Tiresias::find_lower_runners(const View& view, std::size_t q, PoolId pool) {
  lower_.clear();
  for (std::size_t below = queues_.size(); below-- > q + 1;) {
    const auto first = static_cast<std::ptrdiff_t>(lower_.size());
    runners_.for_each(below, [&](JobId job) {
      const bool fresh = !view.jobs.is_running(job) || std::ranges::count(holders_, job) > 0;
      if (!fresh && rows_[job.value].pool == pool) lower_.push_back({job, {}});
    });
    std::reverse(lower_.begin() + first, lower_.end());
  }
}

bool Tiresias::try_start_evicting(const View& view, Plan& plan, JobId job) {
  const JobRow& row = rows_[job.value];
  if (!options_.evict_for_consolidation || view.shape(job).locality != Locality::Consolidated)
    return false;
  find_lower_runners(view, row.queue, row.pool);
  const Plan::Mark mark = plan.mark();
  std::size_t taken = 0;
  bool placed = false;
  while (!placed && taken < lower_.size()) {
    Displaced& victim = lower_[taken++];
    const auto slices = plan.slices(victim.job);
    victim.slices.assign(slices.begin(), slices.end());
    plan.preempt(victim.job, Reason::Locality);
    placed = plan.try_start_in(row.pool, job);
  }
  if (!placed) {
    plan.rollback(mark);
    return false;
  }
  for (std::size_t i = taken; i-- > 0;) {
    const Displaced& victim = lower_[i];
    if (!plan.try_start_on(victim.job, row.pool, victim.slices)) displace(view, victim.job);
  }
  return true;
}

/// It waits ahead of everybody in its queue, like a runner evicted by a higher queue.
void Tiresias::displace(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  Queue& queue = queues_[row.queue];
  runners_.remove(row.queue, job);
  row.runs = false;
  queue.used[row.pool.value] -= view.gpus(job);
  row.entry = --queue.front;
  enqueue(view, job);
  steps_.push_back({.job = job, .granted = false, .held = false});
  displaced_ = true;
}

}  // namespace berth
