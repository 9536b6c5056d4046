// A gang that is granted by count but finds no devices: it takes those of runners it outranks,
// least work lost first. Whoever of them is not in the way after all keeps its devices; the others
// look for another place when it is their turn, and wait at the head of their queue if there is
// none.
#include <algorithm>

#include "policies/tiresias/tiresias.h"

namespace berth {

/// A runner makes way for jobs of higher queues, and where the index ranks a queue for those before
/// it there.
bool Tiresias::outranks(const View& view, JobId job, JobId runner) const {
  const std::size_t own = rows_[job.value].queue;
  const std::size_t other = rows_[runner.value].queue;
  if (own != other) return own < other;
  return is_ranked(own) && index_key(view, job, own) < index_key(view, runner, own);
}

bool Tiresias::try_make_way(const View& view, Plan& plan, JobId job) {
  if (!options_.evict_for_consolidation || view.cluster.mode() == ClusterState::Mode::Count)
    return false;
  const JobRow& row = rows_[job.value];
  way_.clear();
  for (std::size_t q = is_ranked(row.queue) ? row.queue : row.queue + 1U; q < queues_.size(); ++q) {
    runners_.for_each(q, [&](JobId other) {
      if (rows_[other.value].pool == row.pool && plan.holds(other) && outranks(view, job, other))
        way_.add(view, other);
    });
  }
  if (!way_.try_start(plan, row.pool, job, Reason::Locality)) return false;
  const auto others = way_.displaced();
  displaced_.insert(displaced_.end(), others.rbegin(), others.rend());
  std::ranges::stable_sort(displaced_, [&](JobId a, JobId b) { return outranks(view, a, b); });
  return true;
}

/// Those who made way and come before the job, or all of them, have their turn.
void Tiresias::replace_displaced(const View& view, Plan& plan, std::optional<JobId> before) {
  const auto has_turn = [&](JobId job) {
    if (!before) return true;
    const std::size_t queue = rows_[job.value].queue;
    const bool is_runner_here = queue == rows_[before->value].queue && !is_ranked(queue);
    return is_runner_here || outranks(view, job, *before);
  };
  while (!displaced_.empty() && has_turn(displaced_.front())) {
    const JobId job = displaced_.front();
    displaced_.erase(displaced_.begin());
    if (plan.try_start_in(rows_[job.value].pool, job, Reason::Locality) ||
        try_make_way(view, plan, job)) {
      moved_.push_back(job);
    } else {
      displace(view, job);
    }
  }
}

/// It waits ahead of everybody in its queue, like a runner evicted by a higher queue.
void Tiresias::displace(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  Queue& queue = queues_[row.queue];
  stop_running(view, job);
  row.entry = --queue.front;
  enqueue(view, job);
  steps_.push_back({.job = job, .granted = false, .held = false});
  has_left_ = true;
}

/// Somebody this round has evicted was no candidate for other pools in it.
bool Tiresias::goes_on_elsewhere(const View& view) const {
  const auto has_choice = [&](JobId job) {
    return !rows_[job.value].runs && view.shape(job).pools.size() > 1;
  };
  return std::ranges::any_of(holders_, has_choice) ||
         std::ranges::any_of(
             steps_, [&](const Step& step) { return !step.granted && has_choice(step.job); });
}

}  // namespace berth
