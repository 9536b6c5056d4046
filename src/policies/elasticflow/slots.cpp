// A pass of ElasticFlow: sizes where a slot begins, idle GPUs in between.
#include <algorithm>
#include <bit>

#include "policies/elasticflow/elasticflow.h"

namespace berth::elasticflow {

namespace {
/// Between slots, waiting jobs that are looked at before the rest waits for the next slot.
constexpr int kLooked = 1000;
}  // namespace

void ElasticFlow::begin_slot(const View& view, Plan& plan) {
  rounds_.hold_until(view.now, kNever);
  next_change_ = kNever;
  for (std::uint32_t i = 0; i < servers_.size(); ++i) {
    choose_sizes(view, plan, PoolId{i});
    stop_resized(view, plan, PoolId{i});
    place(view, plan, PoolId{i});
  }
  promises_changed_ = false;
  rounds_.hold_until(view.now, next_change_);
}

/// Shares first; what they leave goes to jobs without a promise and to whoever gains most.
void ElasticFlow::choose_sizes(const View& view, const Plan& plan, PoolId pool) {
  if (promises_changed_ || !keep_shares(view, pool))
    static_cast<void>(make_shares(view, pool, std::nullopt));
  commit_shares(view);
  const std::vector<JobId> late = late_;
  for (const JobId job : late) be_late(view, plan, job);
  note_next_change(view);
  choices_.clear();
  growers_.clear();
  for (const Promised& one : shares_) {
    const SpeedCurve& speeds = curve(view, one.job, pool);
    const std::int64_t gpus = one.share.stretches.front().gpus;
    choices_.push_back({.job = one.job, .pool = pool, .gpus = 0, .place = {}});
    growers_.push_back(
        {.curve = &speeds, .base = one.share.size, .size = speeds.sizes_within(gpus)});
  }
  for (const JobId job : unpromised(view, plan, pool, free_->now())) {
    choices_.push_back({.job = job, .pool = pool, .gpus = 0, .place = {}});
    growers_.push_back({.curve = &curve(view, job, pool), .base = 0, .size = 0});
  }
  grow(growers_, free_->now());
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Grower& grown = growers_[i];
    choices_[i].gpus = grown.size == 0 ? 0 : grown.curve->gpus[grown.size - 1];
  }
}

/// Those that run in the pool and as many of the others as could run there, first come first.
std::vector<JobId> ElasticFlow::unpromised(const View& view, const Plan& plan, PoolId pool,
                                           std::int64_t left) const {
  std::vector<JobId> jobs;
  for (const JobId job : running_) {
    if (plan.pool_of(job) == pool) jobs.push_back(job);
  }
  std::int64_t taken = 0;
  for (const JobId job : waiting_) {
    if (taken >= left) break;
    const auto& pools = view.shape(job).pools;
    if (std::ranges::find(pools, pool) == pools.end()) continue;
    jobs.push_back(job);
    ++taken;
  }
  std::ranges::sort(jobs);
  return jobs;
}

/// The first slot in which some share becomes another.
void ElasticFlow::note_next_change(const View& view) {
  for (const Promised& one : shares_) {
    const Stretch& first = one.share.stretches.front();
    next_change_ = std::min(next_change_, rounds_.coming(view.now) + options_.slot * first.slots);
  }
}

void ElasticFlow::stop(Plan& plan, JobId job) {
  plan.preempt(job, Reason::Growth);
  set_holding(job, false);
}

void ElasticFlow::stop_resized(const View&, Plan& plan, PoolId pool) {
  for (const Choice& choice : choices_) {
    if (plan.holds(choice.job) && plan.pool_of(choice.job) == pool &&
        plan.gpus_of(choice.job) != choice.gpus)
      stop(plan, choice.job);
  }
}

/// In aligned blocks where there are some; who finds none is put where there is room.
void ElasticFlow::place(const View& view, Plan& plan, PoolId pool) {
  std::erase_if(choices_, [](const Choice& choice) { return choice.gpus == 0; });
  const BuddyServers& servers = servers_[pool.value];
  std::vector<BuddyTenant> tenants;
  for (const Choice& choice : choices_) {
    tenants.push_back({choice.gpus, std::nullopt});
    if (plan.holds(choice.job))
      tenants.back().own = servers.around(plan.slices(choice.job), choice.gpus);
  }
  const std::vector<std::uint64_t> none(servers.size());
  BuddyServers::Map map{.taken = none, .settled = none, .lent = none};
  for (std::uint32_t s = 0; s < servers.size(); ++s) {
    if (!view.cluster.is_up(servers.node(s))) map.taken[s] = servers.all();
  }
  const auto places = place_tenants(servers, tenants, std::move(map));
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].place = places[i];
    const bool stays = places[i] && places[i] == tenants[i].own;
    if (!stays && plan.holds(choices_[i].job)) stop(plan, choices_[i].job);
  }
  for (const bool has_place : {true, false}) {
    for (const Choice& choice : choices_) {
      if (choice.place.has_value() == has_place && !plan.holds(choice.job))
        start(view, plan, choice);
    }
  }
}

void ElasticFlow::start(const View& view, Plan& plan, const Choice& choice) {
  static_cast<void>(
      plan.set_terms(choice.job, terms_for(view, choice.job, choice.pool, choice.gpus)));
  const bool in_place = choice.place && plan.try_start_on(choice.job, choice.pool,
                                                          servers_[choice.pool.value].slices(
                                                              *choice.place, choice.gpus),
                                                          Reason::Growth);
  if (in_place || plan.try_start_sized(choice.pool, choice.job, choice.gpus, Reason::Growth))
    set_holding(choice.job, true);
}

bool ElasticFlow::start_small(const View& view, Plan& plan, JobId job, PoolId pool) {
  const SpeedCurve& speeds = curve(view, job, pool);
  if (plan.try_keep(job, Reason::Growth)) {  // it runs already; the next slot may resize it
    set_holding(job, true);
    return true;
  }
  if (speeds.sizes() == 0 || speeds.gpus.front() > plan.cluster().free_gpus(pool)) return false;
  start(view, plan, {.job = job, .pool = pool, .gpus = speeds.gpus.front(), .place = {}});
  return plan.holds(job);
}

/// Until the next slot begins: whoever waits, as small as it may be, promised jobs first.
void ElasticFlow::fill(const View& view, Plan& plan) {
  if (plan.cluster().free_gpus() == 0) return;
  const std::vector<JobId> promised(idle_.begin(), idle_.end());
  for (const JobId job : promised)
    static_cast<void>(start_small(view, plan, job, rows_[job.value].pool));
  int looked = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && ++looked <= kLooked;) {
    const JobId job = *next++;  // it leaves the set when it starts
    if (plan.cluster().free_gpus() == 0) return;
    static_cast<void>(std::ranges::any_of(
        view.shape(job).pools, [&](PoolId pool) { return start_small(view, plan, job, pool); }));
  }
}

}  // namespace berth::elasticflow
