// Who gives way to whom, and when that is the next thing to change by time alone.
#include <algorithm>
#include <tuple>

#include "policies/fair_share/fair_share.h"

namespace berth {

namespace {

/// The order of accounts is looked at again no more often than this.
constexpr Duration kPatience = std::chrono::seconds{1};

bool contains(const std::vector<PoolId>& pools, PoolId pool) {
  return std::ranges::find(pools, pool) != pools.end();
}

void keep_earlier(std::optional<Time>& first, std::optional<Time> at) {
  if (at && (!first || *at < *first)) first = at;
}

}  // namespace

bool FairShare::is_preemptible(const View& view, JobId job) const {
  const JobRequest& request = view.request(job);
  if (request.kind == JobKind::Interactive || request.kind == JobKind::Service) return false;
  return request.preemptible;
}

Accounts::Lead FairShare::lead_over(const View& view, JobId job, JobId victim) const {
  const auto [a, b] = accounts_.rivals(leaf_[job.value], leaf_[victim.value]);
  return {.a = a, .b = b, .more = view.gpus(job), .factor = 1 + options_.margin};
}

/// Its own class against the one the other started with: age moves a job forward and protects it
/// once it runs, but gives no right to preempt.
bool FairShare::may_take(const View& view, JobId job, JobId victim) const {
  const std::int32_t own = view.request(job).priority;
  const std::int32_t others = running_.row(victim).key.klass;
  if (options_.by_class && others < own) return true;
  return options_.by_share && others <= own && accounts_.is_ahead(lead_over(view, job, victim));
}

/// By class, then by the GPU time that stopping it may throw away.
void FairShare::find_victims(const View& view, const Plan& plan, JobId job) {
  candidates_.clear();
  for (const JobId other : holders_) {
    if (!view.jobs.is_running(other) || !is_preemptible(view, other)) continue;
    if (view.now - view.jobs.last_start[other] < options_.min_run) continue;
    if (!contains(view.shape(job).pools, plan.pool_of(other))) continue;
    if (may_take(view, job, other)) candidates_.push_back(other);
  }
  std::ranges::sort(candidates_, {}, [&](JobId other) {
    const Duration run = view.now - view.jobs.last_start[other];
    return std::tuple(running_.row(other).key.klass, run * view.gpus(other), run,
                      -std::int64_t{other.value});
  });
}

bool FairShare::try_preempt(const View& view, Plan& plan, JobId job) {
  if (!preempts() || std::ranges::find(evicted_, job) != evicted_.end()) return false;
  find_victims(view, plan, job);
  std::size_t at = 0;
  const auto next = [&]() -> const VictimKey* {
    return at == candidates_.size() ? nullptr : &running_.row(candidates_[at++]).key;
  };
  if (!room_.try_make_room(plan, running_, job, Reason::Priority, next, [] { return true; }))
    return false;
  for (std::size_t i = 0; i < at; ++i) {  // spared ones may have moved to another pool
    const JobId other = candidates_[i];
    if (!plan.holds(other)) continue;
    reservation_.ends().remove(other);
    reservation_.ends().add(view, plan.pool_of(other), other);
  }
  for (const JobId victim : room_.victims()) {
    let_go(view, victim);
    evicted_.push_back(victim);
    push(view, victim);
  }
  return true;
}

// --- when to look again

std::optional<Time> FairShare::takes_at(const View& view, JobId job, JobId victim) const {
  if (!is_preemptible(view, victim)) return std::nullopt;
  const Time free_from = view.jobs.last_start[victim] + options_.min_run;
  if (may_take(view, job, victim)) return free_from;
  if (!options_.by_share || running_.row(victim).key.klass > view.request(job).priority)
    return std::nullopt;
  const auto ahead = accounts_.ahead_at(lead_over(view, job, victim));
  if (!ahead) return std::nullopt;
  return std::max(free_from, std::max(*ahead, view.now) + kPatience);
}

/// The next moment from which the job may take devices that it may not take now.
std::optional<Time> FairShare::next_taking(const View& view, JobId job) const {
  std::optional<Time> first;
  for (const JobId other : holders_) {
    if (!contains(view.shape(job).pools, view.jobs.allocation[other].pool)) continue;
    const auto at = takes_at(view, job, other);
    if (at && *at > view.now) keep_earlier(first, at);
  }
  return first;
}

/// The next moment from which another job may come before the head.
std::optional<Time> FairShare::next_overtaking(const View& view, const Lane& head) const {
  std::optional<Time> first;
  const std::int32_t klass = effective_class(view, head.jobs.first()->job);
  for (const std::uint32_t at : active_) {
    const Lane& lane = lanes_[at];
    if (lane.jobs.empty() || &lane == &head) continue;
    const JobId job = lane.jobs.first()->job;
    const std::int32_t others = effective_class(view, job);
    if (options_.aging_interval > Duration::zero() && others < options_.max_class) {
      const std::int64_t steps = (view.now - view.jobs.submitted[job]) / options_.aging_interval;
      keep_earlier(first, view.jobs.submitted[job] + (steps + 1) * options_.aging_interval);
    }
    if (others != klass || lane.key.leaf == head.key.leaf) continue;
    const auto [a, b] = accounts_.rivals(lane.key.leaf, head.key.leaf);
    if (const auto ahead = accounts_.ahead_at({.a = a, .b = b}))
      keep_earlier(first, std::max(*ahead, view.now) + kPatience);
  }
  return first;
}

/// Whatever may start has started: time alone changes something only where the head may take
/// devices later, or where its reservation keeps free devices from somebody who will pass it, or
/// moves because jobs outlive their estimates.
std::optional<Time> FairShare::next_wakeup(const View& view) {
  const auto lane = first_lane(view);
  if (!lane) return std::nullopt;
  const Lane& head = lanes_[*lane];
  std::optional<Time> first;
  if (preempts()) first = next_taking(view, head.jobs.first()->job);
  if (preempts() || has_room_for_any(view)) keep_earlier(first, next_overtaking(view, head));
  // What the starts of this pass really cost may have moved the promise to the head.
  const bool moved = reservation_.ends().refresh(view);
  if (has_room_for_any(view)) {
    const Time change = moved ? view.now + Duration{1} : reservation_.next_change(view);
    if (change != kNever) keep_earlier(first, change);
  }
  return first;
}

}  // namespace berth
