#include "policies/priority/priority.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"

namespace berth::priority {

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
  tenant_[job] = tenant;
  if (view.gpus(job) <= quotas_[tenant].hard) return std::nullopt;
  return Refusal{Reason::Quota,
                 fmt::format("needs {} GPUs, tenant '{}' may use at most {}", view.gpus(job),
                             quotas_.name(tenant), quotas_[tenant].hard)};
}

void Priority::on_arrival(const View& view, JobId job) { waiting_.push(group_of(view, job), job); }

void Priority::on_departure(const View& view, JobId job) {
  if (running_.contains(job)) {
    running_.remove(job);
  } else {
    waiting_.forget(group_of(view, job), job);
  }
}

void Priority::on_requeue(const View& view, JobId job) {
  running_.remove(job);
  on_arrival(view, job);
}

// --- order

bool Priority::comes_first(const View& view, JobId a, JobId b, Time at) const {
  const std::int32_t a_class = effective_class(view, a, at);
  const std::int32_t b_class = effective_class(view, b, at);
  return a_class != b_class ? a_class > b_class : a < b;
}

bool Priority::is_held(const View& view, const Alike& key) const {
  return running_.used(key.tenant) + view.shapes[key.shape].gpus > quotas_[key.tenant].hard;
}

bool Priority::is_guaranteed(TenantId tenant, std::int32_t gpus) const {
  return running_.used(tenant) + gpus <= quotas_[tenant].guaranteed;
}

/// The group whose head is first in the order. Groups held by a quota do not count; with skip,
/// neither do those that can get GPUs neither from the free ones nor from others.
std::optional<GroupId> Priority::first_group(const View& view) const {
  std::optional<GroupId> best;
  for (const GroupId group : waiting_.active()) {
    const Alike& key = groups_[group];
    if (waiting_.is_blocked(group) || is_held(view, key)) continue;
    if (options_.pass == PassRule::Skip && !has_chance(view, key)) continue;
    if (!best || comes_first(view, waiting_.top(group).job, waiting_.top(*best).job, view.now))
      best = group;
  }
  return best;
}

bool Priority::has_chance(const View& view, const Alike& key) const {
  const Shape& shape = view.shapes[key.shape];
  const auto has_room = [&](PoolId pool) { return view.cluster.free_gpus(pool) >= shape.gpus; };
  return std::ranges::any_of(shape.pools, has_room) || may_preempt_by_class(key.priority) ||
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
    const bool same = tenant == tenant_[job];
    if (quotas_.in_use() && !same && running_.used(tenant) <= quotas_[tenant].guaranteed) continue;
    const VictimKey* first = running_.first(tenant, view.shape(job).pools);
    if (first == nullptr || (best != nullptr && *best < *first)) continue;
    const bool lower = by_class && first->priority < own;
    if (lower || (guaranteed && !same)) best = first;
  }
  return best;
}

bool Priority::try_preempt(const View& view, Plan& plan, JobId job) {
  const TenantId tenant = tenant_[job];
  const bool guaranteed = is_guaranteed(tenant, view.gpus(job));
  if (!guaranteed && !may_preempt_by_class(view.request(job).priority)) return false;
  if (std::ranges::find(evicted_, job) != evicted_.end()) return false;
  const auto is_fair = [&] {
    return std::ranges::none_of(room_.victims(), [&](JobId victim) {
      const TenantId from = tenant_[victim];
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
  waiting_.unblock();
  evicted_.clear();
  if (options_.enforce == Enforce::Now) enforce_quotas(view, plan);
  while (const auto group = first_group(view)) {
    const JobId job = waiting_.top(*group).job;
    if (!plan.try_start(job) && !try_preempt(view, plan, job)) {
      waiting_.block(*group);
      if (options_.pass == PassRule::Strict) return;
      continue;
    }
    waiting_.forget(*group, job);  // whom it evicted may stand before it now
    running_.add(
        tenant_[job], plan.pool_of(job),
        {.priority = effective_class(view, job, view.now), .started = view.now, .job = job},
        view.gpus(job));
  }
}

/// Both rise one class per interval, so whether one passes the other shows within one interval, or
/// when the head has reached the top class and the other comes up to it.
std::optional<Time> Priority::overtakes_at(const View& view, JobId later, JobId head) const {
  const Time submitted = view.jobs.submitted[later];
  const std::int64_t steps = options_.aging.steps(view, later, view.now);
  const std::int64_t to_top = options_.aging.max_class - view.request(later).priority;
  for (const std::int64_t step : {steps + 1, to_top}) {
    if (step <= steps || step > to_top) continue;
    const Time at = submitted + step * options_.aging.interval;
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
  if (options_.pass == PassRule::Skip || !options_.aging.is_on()) return std::nullopt;
  waiting_.unblock();
  const auto head = first_group(view);
  if (!head) return std::nullopt;
  std::optional<Time> first;
  for (const GroupId group : waiting_.active()) {
    const Alike& key = groups_[group];
    if (group == *head || is_held(view, key) || !has_chance(view, key)) continue;
    const auto overtakes = overtakes_at(view, waiting_.top(group).job, waiting_.top(*head).job);
    if (overtakes && (!first || *overtakes < *first)) first = overtakes;
  }
  return first;
}

namespace {

Result<Quotas> quotas_of(const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("quota"));
  Quotas quotas;
  for (const auto& [tenant, numbers] : list) {
    Quota quota;
    const auto is_count = [](double number) {
      return number == std::floor(number) && number <= 1e9;
    };
    const bool whole = numbers.size() <= 2 && is_count(numbers.front()) && is_count(numbers.back());
    if (!whole || numbers.front() > (numbers.size() == 2 ? numbers.back() : numbers.front())) {
      return params.wrong("quota",
                          "must be TENANT:guaranteed[:hard] in whole GPUs with guaranteed <= hard");
    }
    quota.guaranteed = static_cast<std::int64_t>(numbers.front());
    if (numbers.size() == 2) quota.hard = static_cast<std::int64_t>(numbers.back());
    quotas.set(tenant, quota);
  }
  return quotas;
}

Result<std::optional<std::int32_t>> preempts_from(const Params& params) {
  if (params.text("preempt_classes") == "none") return std::nullopt;
  if (params.text("preempt_classes") == "all") return std::numeric_limits<std::int32_t>::min();
  const auto lowest = params.integer("preempt_classes", -1'000'000'000, 1'000'000'000);
  if (!lowest)
    return params.wrong("preempt_classes", "must be none, all or the lowest class that may");
  return static_cast<std::int32_t>(*lowest);
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(auto quotas, quotas_of(params));
  Options options;
  BERTH_TRY(options.pass, pass_rule(params));
  BERTH_TRY(options.preempts_from, preempts_from(params));
  BERTH_TRY(options.aging, aging_of(params));
  BERTH_TRY(options.enforce,
            params.choice<Enforce>("enforce", {{"later", Enforce::Later}, {"now", Enforce::Now}}));
  return std::make_unique<Priority>(std::move(quotas), options);
}

}  // namespace
}  // namespace berth::priority

namespace berth {

PolicyEntry priority_entry() {
  return {
      .name = "priority",
      .summary = "priority classes with preemption, tenant quotas and aging",
      .params =
          {pass_param("skip"),
           {"preempt_classes", "none",
            "who may preempt lower classes: none, all, or the lowest class that may"},
           {"quota", "",
            "TENANT:guaranteed[:hard] in GPUs, comma separated; tenant is a job's group, else its "
            "user"},
           {"aging_interval", "0",
            "seconds of age that raise a waiting job by one class; 0 = no aging"},
           {"max_class", "10", "class up to which aging raises a job"},
           {"enforce", "later",
            "a quota lowered below use; later: no new starts; now: preempt down to it"}},
      .make = priority::make};
}

}  // namespace berth
