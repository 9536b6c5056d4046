#include "policies/priority/priority.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace berth {

void Priority::begin(const View& view) {
  running_.begin(quotas_.size(), view.cluster.pools(), view.jobs.size());
  tenant_.resize(view.jobs.size());
  all_pools_.clear();
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) all_pools_.push_back(PoolId{i});
}

void Priority::change_quota(const std::string& tenant, const Quota& quota) {
  BERTH_CHECK(quotas_.knows(tenant), "only the quota of a listed tenant changes");
  quotas_.set(tenant, quota);
}

std::optional<Refusal> Priority::admit(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  const TenantId tenant =
      quotas_.find(view.text(request.group == NameId{} ? request.user : request.group));
  tenant_[job.value] = tenant;
  if (view.gpus(job) <= quotas_[tenant].hard) return std::nullopt;
  return Refusal{Reason::Quota,
                 fmt::format("needs {} GPUs, tenant '{}' may use at most {}", view.gpus(job),
                             quotas_.name(tenant), quotas_[tenant].hard)};
}

void Priority::on_arrival(const View& view, JobId job) {
  waiting_.push({tenant_[job.value], view.request(job).priority, view.jobs.shape[job]}, job);
}

void Priority::on_departure(const View&, JobId job) {
  if (running_.contains(job)) running_.remove(job);  // one that waited is dropped when it surfaces
}

void Priority::on_requeue(const View& view, JobId job) {
  running_.remove(job);
  on_arrival(view, job);
}

// --- order

/// Counted from submission, so inside a lane (same class) the order of arrival is always the right
/// order.
std::int32_t Priority::effective_class(const View& view, JobId job, Time at) const {
  const std::int32_t own = view.request(job).priority;
  if (options_.aging_interval <= Duration::zero() || own >= options_.max_class) return own;
  const std::int64_t steps = (at - view.jobs.submitted[job]) / options_.aging_interval;
  return static_cast<std::int32_t>(std::min<std::int64_t>(options_.max_class, own + steps));
}

bool Priority::comes_first(const View& view, JobId a, JobId b, Time at) const {
  const std::int32_t a_class = effective_class(view, a, at);
  const std::int32_t b_class = effective_class(view, b, at);
  return a_class != b_class ? a_class > b_class : a < b;
}

bool Priority::is_held(const View& view, const LaneKey& key) const {
  return running_.used(key.tenant) + view.shapes[key.shape].gpus > quotas_[key.tenant].hard;
}

bool Priority::is_guaranteed(TenantId tenant, std::int32_t gpus) const {
  return running_.used(tenant) + gpus <= quotas_[tenant].guaranteed;
}

/// The lane whose head is first in the order. Lanes held by a quota do not count; with skip,
/// neither do those that can get GPUs neither from the free ones nor from others.
Priority::Lane* Priority::first_lane(const View& view) {
  Lane* best = nullptr;
  for (const std::uint32_t at : waiting_.active()) {
    Lane& lane = waiting_[at];
    if (!lane.is_open() || is_held(view, lane.key)) continue;
    if (options_.pass == PassRule::Skip && !has_chance(view, lane.key)) continue;
    if (best == nullptr || comes_first(view, lane.jobs.top(), best->jobs.top(), view.now))
      best = &lane;
  }
  return best;
}

bool Priority::has_chance(const View& view, const LaneKey& key) const {
  const Shape& shape = view.shapes[key.shape];
  const auto has_room = [&](PoolId pool) { return view.cluster.free_gpus(pool) >= shape.gpus; };
  return std::ranges::any_of(shape.pools, has_room) || may_preempt_by_class(key.klass) ||
         is_guaranteed(key.tenant, shape.gpus);
}

// --- taking GPUs back

/// Of other tenants only borrowed jobs, while there are guarantees; of its own tenant by class
/// alone.
const VictimKey* Priority::next_victim(const View& view, JobId job, bool guaranteed) const {
  const std::int32_t own = view.request(job).priority;
  const bool by_class = may_preempt_by_class(own);
  const VictimKey* best = nullptr;
  for (TenantId tenant = 0; tenant < quotas_.size(); ++tenant) {
    const bool same = tenant == tenant_[job.value];
    if (quotas_.in_use() && !same && running_.used(tenant) <= quotas_[tenant].guaranteed) continue;
    const VictimKey* first = running_.first(tenant, view.shape(job).pools);
    if (first == nullptr || (best != nullptr && *best < *first)) continue;
    const bool lower = by_class && first->klass < own;
    if (lower || (guaranteed && !same)) best = first;
  }
  return best;
}

bool Priority::try_preempt(const View& view, Plan& plan, JobId job) {
  const TenantId tenant = tenant_[job.value];
  const bool guaranteed = is_guaranteed(tenant, view.gpus(job));
  if (!guaranteed && !may_preempt_by_class(view.request(job).priority)) return false;
  if (std::ranges::find(evicted_, job) != evicted_.end()) return false;
  const auto is_fair = [&] {
    return std::ranges::none_of(room_.victims(), [&](JobId victim) {
      const TenantId from = tenant_[victim.value];
      return from != tenant && running_.used(from) < quotas_[from].guaranteed;
    });
  };
  const auto next = [&] { return next_victim(view, job, guaranteed); };
  const Reason reason = guaranteed ? Reason::Guarantee : Reason::Priority;
  if (!room_.try_make_room(plan, running_, job, reason, next, is_fair)) return false;
  for (const JobId victim : room_.victims()) wait_again(view, victim);
  return true;
}

void Priority::wait_again(const View& view, JobId job) {
  evicted_.push_back(job);
  on_arrival(view, job);
}

/// A quota was lowered below what is in use: the same victims' order, until the tenant is within
/// it.
void Priority::enforce_quotas(const View& view, Plan& plan) {
  for (TenantId tenant = 0; tenant < quotas_.size(); ++tenant) {
    while (running_.used(tenant) > quotas_[tenant].hard) {
      const JobId job = running_.first(tenant, all_pools_)->job;
      plan.preempt(job, Reason::Quota);
      running_.remove(job);
      wait_again(view, job);
    }
  }
}

// --- the pass

void Priority::decide(const View& view, Plan& plan, Rng&) {
  waiting_.begin_pass(view.jobs);
  evicted_.clear();
  if (options_.enforce == Enforce::Now) enforce_quotas(view, plan);
  while (Lane* lane = first_lane(view)) {
    const JobId job = lane->jobs.pop(view.jobs);
    const LaneKey key = lane->key;
    if (plan.try_start(job) || try_preempt(view, plan, job)) {
      running_.add(key.tenant, plan.pool_of(job),
                   {.klass = effective_class(view, job, view.now), .started = view.now, .job = job},
                   view.gpus(job));
      continue;
    }
    waiting_.push(key, job);
    lane->blocked = true;
    if (options_.pass == PassRule::Strict) return;
  }
}

/// Both rise one class per interval, so whether one passes the other shows within one interval, or
/// when the head has reached the top class and the other comes up to it.
std::optional<Time> Priority::overtakes_at(const View& view, JobId later, JobId head) const {
  const Time submitted = view.jobs.submitted[later];
  const std::int64_t steps = (view.now - submitted) / options_.aging_interval;
  const std::int64_t to_top = options_.max_class - view.request(later).priority;
  for (const std::int64_t step : {steps + 1, to_top}) {
    if (step <= steps || step > to_top) continue;
    const Time at = submitted + step * options_.aging_interval;
    if (comes_first(view, later, head, at)) return at;
  }
  return std::nullopt;
}

/// Aging alone can change a decision only where the head of a strict queue blocks a job that has a
/// chance; with skip everything that could start has started.
std::optional<Time> Priority::next_wakeup(const View& view) {
  // Who was evicted in this pass could not take GPUs from others in it.
  const auto may_go_on = [&](JobId job) {
    return view.jobs.is_waiting(job) && may_preempt_by_class(view.request(job).priority);
  };
  if (std::ranges::any_of(evicted_, may_go_on)) return view.now + Duration{1};
  if (options_.pass == PassRule::Skip || options_.aging_interval <= Duration::zero())
    return std::nullopt;
  waiting_.begin_pass(view.jobs);
  const Lane* head = first_lane(view);
  std::optional<Time> first;
  for (const std::uint32_t at : waiting_.active()) {
    const Lane& lane = waiting_[at];
    if (head == nullptr || &lane == head || is_held(view, lane.key) || !has_chance(view, lane.key))
      continue;
    const auto overtakes = overtakes_at(view, lane.jobs.top(), head->jobs.top());
    if (overtakes && (!first || *overtakes < *first)) first = overtakes;
  }
  return first;
}

}  // namespace berth
