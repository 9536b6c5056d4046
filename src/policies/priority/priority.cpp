#include "policies/priority/priority.h"

#include <algorithm>

#include <fmt/format.h>

#include <cmath>
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

namespace berth {

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
  PriorityOptions options;
  BERTH_TRY(const auto pass, params.choice("pass", {"strict", "skip"}));
  options.pass = pass == 0 ? PassRule::Strict : PassRule::Skip;
  BERTH_TRY(options.preempts_from, preempts_from(params));
  BERTH_TRY(options.aging_interval, params.duration("aging_interval"));
  BERTH_TRY(const auto max_class, params.integer("max_class", -1'000'000, 1'000'000));
  options.max_class = static_cast<std::int32_t>(max_class);
  BERTH_TRY(const auto enforce, params.choice("enforce", {"later", "now"}));
  options.enforce = enforce == 0 ? Enforce::Later : Enforce::Now;
  return std::make_unique<Priority>(std::move(quotas), options);
}

}  // namespace

PolicyEntry priority_entry() {
  return {
      .name = "priority",
      .summary = "priority classes with preemption, tenant quotas and aging",
      .params =
          {{"pass", "skip", "strict: stop at the first job that does not fit; skip: try the next"},
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
      .make = make};
}

}  // namespace berth
