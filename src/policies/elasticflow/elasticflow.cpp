#include "policies/elasticflow/elasticflow.h"

#include <algorithm>

#include <fmt/format.h>

namespace berth::elasticflow {

namespace {

/// Between slots, waiting jobs that are looked at before the rest waits for the next slot.
constexpr int kLooked = 1000;

}  // namespace

void ElasticFlow::begin(const View& view) {
  promises_.begin(view.jobs.size());
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    servers_.push_back(BuddyServers{view.cluster.cluster(), PoolId{i}});
}

std::optional<Refusal> ElasticFlow::admit(const View& view, JobId job) {
  if (!view.deadline(job)) return std::nullopt;
  if (promises_.try_promise(view, job, rounds_.coming(view.now))) return std::nullopt;
  if (view.deadline_is_soft(job) || unmet_ == Unmet::BestEffort) return std::nullopt;
  return refusal(view, job);
}

Refusal ElasticFlow::refusal(const View& view, JobId job) {
  const PoolId pool = view.shape(job).pools.front();
  const SpeedCurve& speeds = curves_.of(view, job, pool);
  const double seconds = to_seconds(*view.deadline(job) - view.now);
  return {Reason::Deadline,
          fmt::format("needs {} on up to {} GPUs; no share of {} GPUs ends in the {} until its "
                      "deadline beside {} promised jobs",
                      human_duration(promises_.work_left(view, job, view.now) /
                                     (speeds.sizes() == 0 ? 1 : speeds.speed.back())),
                      speeds.sizes() == 0 ? 0 : speeds.gpus.back(), view.cluster.usable_gpus(pool),
                      human_duration(std::max(seconds, 0.0)), promises_.size())};
}

void ElasticFlow::on_arrival(const View& view, JobId job) {
  rounds_.stir(view.now);
  if (promises_.has(job)) {
    promises_.add(view, job);
    idle_.insert(job);
  } else {
    waiting_.insert(job);
  }
}

void ElasticFlow::on_departure(const View& view, JobId job) {
  rounds_.stir(view.now);
  if (promises_.has(job)) promises_.remove(view, job);
  idle_.erase(job);
  running_.erase(job);
  waiting_.erase(job);
}

void ElasticFlow::on_requeue(const View& view, JobId job) {
  rounds_.stir(view.now);
  promises_.note_change();
  set_holding(job, Holds::Nothing);
}

void ElasticFlow::on_capacity_change(const View& view, NodeId) {
  rounds_.stir(view.now);
  promises_.note_change();
}

void ElasticFlow::set_holding(JobId job, Holds holds) {
  const bool has_devices = holds == Holds::Devices;
  const auto put = [job](std::set<JobId>& jobs, bool is_in) {
    if (is_in) {
      jobs.insert(job);
    } else {
      jobs.erase(job);
    }
  };
  const bool is_promised = promises_.has(job);
  put(idle_, is_promised && !has_devices);
  put(running_, !is_promised && has_devices);
  put(waiting_, !is_promised && !has_devices);
}

void ElasticFlow::decide(const View& view, Plan& plan, Rng& rng) {
  if (promises_.size() == 0 && waiting_.empty() && running_.empty()) return rounds_.settle();
  Pass pass{view, plan, rng};
  if (rounds_.is_due(view.now)) begin_slot(pass);
  fill(pass);
}

void ElasticFlow::begin_slot(Pass& pass) {
  rounds_.hold_until(pass.view.now, kNever);  // so that coming() is the slot that begins now
  Time next_change = kNever;
  for (std::uint32_t i = 0; i < servers_.size(); ++i) {
    const PoolId pool{i};
    promises_.renew(pass.view, pool, rounds_.coming(pass.view.now));
    withdraw_late(pass);
    next_change = std::min(next_change, promises_.next_change());
    choose_sizes(pass, pool);
    place(pass, pool);
  }
  promises_.settle();
  rounds_.hold_until(pass.view.now, next_change);
}

/// They go on without a promise.
void ElasticFlow::withdraw_late(Pass& pass) {
  for (const JobId job : promises_.late()) {
    promises_.withdraw(pass.view, job);
    set_holding(job, pass.plan.holds(job) ? Holds::Devices : Holds::Nothing);
  }
}

/// Shares first; what they leave goes to jobs without a promise and to whoever gains most.
void ElasticFlow::choose_sizes(Pass& pass, PoolId pool) {
  choices_.clear();
  growers_.clear();
  for (const Promises::Kept& one : promises_.kept()) {
    const SpeedCurve& speeds = curves_.of(pass.view, one.job, pool);
    const std::int64_t gpus = one.share.stretches.front().gpus;
    choices_.push_back({.job = one.job});
    growers_.push_back(
        {.curve = &speeds, .base = one.share.size, .size = speeds.sizes_within(gpus)});
  }
  for (const JobId job : unpromised(pass, pool, promises_.free_now())) {
    choices_.push_back({.job = job});
    growers_.push_back({.curve = &curves_.of(pass.view, job, pool), .base = 0, .size = 0});
  }
  grow(growers_, promises_.free_now());
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Grower& grown = growers_[i];
    choices_[i].gpus = grown.size == 0 ? 0 : grown.curve->gpus[grown.size - 1];
  }
}

/// Those that run in the pool and as many of the others as could run there, first come first.
std::vector<JobId> ElasticFlow::unpromised(const Pass& pass, PoolId pool, std::int64_t left) const {
  std::vector<JobId> jobs;
  for (const JobId job : running_) {
    if (pass.plan.pool_of(job) == pool) jobs.push_back(job);
  }
  std::int64_t taken = 0;
  for (const JobId job : waiting_) {
    if (taken >= left) break;
    const auto& pools = pass.view.shape(job).pools;
    if (std::ranges::find(pools, pool) == pools.end()) continue;
    jobs.push_back(job);
    ++taken;
  }
  std::ranges::sort(jobs);
  return jobs;
}

void ElasticFlow::stop(Plan& plan, JobId job) {
  plan.preempt(job, Reason::Growth);
  set_holding(job, Holds::Nothing);
}

/// In aligned blocks where there are some; who finds none is put where there is room. Who changes
/// its size leaves first, so that its devices count as free.
void ElasticFlow::place(Pass& pass, PoolId pool) {
  Plan& plan = pass.plan;
  for (const auto& [job, gpus, place] : choices_) {
    if (plan.holds(job) && plan.pool_of(job) == pool && plan.gpus_of(job) != gpus) stop(plan, job);
  }
  std::erase_if(choices_, [](const Choice& choice) { return choice.gpus == 0; });
  const BuddyServers& servers = servers_[pool];
  std::vector<BuddyTenant> tenants;
  for (const Choice& choice : choices_) {
    tenants.push_back({choice.gpus, std::nullopt});
    if (plan.holds(choice.job))
      tenants.back().own = servers.around(plan.slices(choice.job), choice.gpus);
  }
  const std::vector<std::uint64_t> none(servers.size());
  BuddyServers::Map map{.taken = none, .settled = none, .lent = none};
  for (std::uint32_t s = 0; s < servers.size(); ++s) {
    if (!pass.view.cluster.is_up(servers.node(s))) map.taken[s] = servers.all();
  }
  const auto places = place_tenants(servers, tenants, std::move(map));
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].place = places[i];
    const bool stays = places[i] && places[i] == tenants[i].own;
    if (!stays && plan.holds(choices_[i].job)) stop(plan, choices_[i].job);
  }
  // Blocks first: who has none must not take devices out of the block of another.
  for (const bool has_place : {true, false}) {
    for (const Choice& choice : choices_) {
      if (choice.place.has_value() == has_place && !plan.holds(choice.job))
        start(pass, pool, choice);
    }
  }
}

void ElasticFlow::start(Pass& pass, PoolId pool, const Choice& choice) {
  Plan& plan = pass.plan;
  const auto& [job, gpus, place] = choice;
  static_cast<void>(plan.set_terms(job, terms_for(pass.view, job, pool, gpus)));
  const bool is_in_place =
      place && plan.try_start_on(job, pool, servers_[pool].slices(*place, gpus), Reason::Growth);
  if (is_in_place || plan.try_start_sized(pool, job, gpus, Reason::Growth))
    set_holding(job, Holds::Devices);
}

bool ElasticFlow::start_small(Pass& pass, JobId job, PoolId pool) {
  const SpeedCurve& speeds = curves_.of(pass.view, job, pool);
  if (pass.plan.try_keep(job, Reason::Growth)) {  // it runs already; the next slot may resize it
    set_holding(job, Holds::Devices);
    return true;
  }
  if (speeds.sizes() == 0 || speeds.gpus.front() > pass.plan.cluster().free_gpus(pool))
    return false;
  start(pass, pool, {.job = job, .gpus = speeds.gpus.front()});
  return pass.plan.holds(job);
}

/// Until the next slot begins: whoever waits, as small as it may be, promised jobs first.
void ElasticFlow::fill(Pass& pass) {
  const ClusterState& state = pass.plan.cluster();
  if (state.free_gpus() == 0) return;
  const std::vector<JobId> promised(idle_.begin(), idle_.end());
  for (const JobId job : promised) static_cast<void>(start_small(pass, job, promises_.pool(job)));
  int looked = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && ++looked <= kLooked;) {
    const JobId job = *next++;  // it leaves the set when it starts
    if (state.free_gpus() == 0) return;
    static_cast<void>(std::ranges::any_of(
        pass.view.shape(job).pools, [&](PoolId pool) { return start_small(pass, job, pool); }));
  }
}

}  // namespace berth::elasticflow

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  using elasticflow::Unmet;
  elasticflow::Options options;
  BERTH_TRY(options.slot, params.positive_duration("slot"));
  BERTH_TRY(options.slack, params.number("slack", 1, 100));
  BERTH_TRY(options.unmet, params.choice<Unmet>("unmet", {{"refuse", Unmet::Refuse},
                                                          {"best-effort", Unmet::BestEffort}}));
  BERTH_TRY(options.elastic, elastic_rule(params));
  return std::make_unique<elasticflow::ElasticFlow>(options);
}

std::vector<ParamSpec> params_of_elasticflow() {
  std::vector<ParamSpec> params{
      {"slot", "60", "seconds between two changes of size, aligned to time zero"},
      {"slack", "1.05", "factor on the believed work left, against wrong estimates and restarts"},
      {"unmet", "refuse", "strict deadline that cannot be promised: refuse or best-effort"}};
  for (ParamSpec& one : elastic_params()) params.push_back(std::move(one));
  return params;
}

}  // namespace

PolicyEntry elasticflow_entry() {
  return {.name = "elasticflow",
          .summary =
              "elastic jobs with deadlines on the fewest GPUs that are in time; the rest to "
              "whoever gains",
          .params = params_of_elasticflow(),
          .make = make,
          .test_settings = {{"slot", "4"}, {"unmet", "best-effort"}, {"elastic", "all"}}};
}

}  // namespace berth
