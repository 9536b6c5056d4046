#include "policies/oasis/oasis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "policies/common/sized_start.h"

namespace berth::oasis {

void Oasis::begin(const View& view) {
  utility_.resize(view.jobs.size());
  promises_.emplace(view.cluster, options_.promises, view.jobs.size());
}

Speed Oasis::speed_in(const View& view, JobId job, PoolId pool) {
  Speed speed{.range = range_in(view, job, pool, options_.elastic), .per_slot = {}};
  const double slot = to_seconds(clock_.length());
  const std::vector<double>& rates = beliefs_.curve(view, job, pool, speed.range.most);
  for (std::int32_t gpus = speed.range.least; gpus <= speed.range.most; ++gpus) {
    const double work = slot * rates[static_cast<std::size_t>(gpus)];
    // More GPUs than pay are simply not used.
    speed.per_slot.push_back(speed.per_slot.empty() ? work : std::max(work, speed.per_slot.back()));
  }
  return speed;
}

/// Half of a job's value is left at its target. What is done at the end of the deadline's slot is
/// in time, so the target lies half a slot behind.
Utility Oasis::utility_of(const View& view, JobId job, double shortest) const {
  const double weight = std::max(1e-6, static_cast<double>(view.request(job).weight));
  const double work = clock_.slots(view.estimate(job)) * view.gpus(job);
  Utility utility;
  utility.value = weight * (options_.value == Value::Work ? std::max(work, 1e-6) : 1);
  utility.steepness = options_.sensitivity;
  utility.target = shortest + options_.target;
  if (const auto deadline = view.deadline(job)) {
    utility.target = clock_.slots(*deadline - view.jobs.submitted[job]) - 0.5;
    if (!view.deadline_is_soft(job)) utility.steepness = options_.critical;
  }
  return utility;
}

/// Of a job that is done at the end of the slot.
double Oasis::worth(const View& view, JobId job, std::int64_t slot) const {
  const Duration delay = clock_.begin(slot + 1) - view.jobs.submitted[job];
  return utility_[job].at(std::max(0.0, clock_.slots(delay) - 1));
}

void Oasis::learn_prices(const View& view, JobId job, double shortest, double gpu_slots) {
  if (options_.promises.prices.low > 0) return;  // they are fixed
  const std::int64_t first = clock_.first_whole(view.now);
  const auto soonest = static_cast<std::int64_t>(std::min(1e9, std::ceil(shortest)));
  // The least it is worth counts only while it is worth anything: a price of zero has no logarithm.
  std::int64_t last = promises_->gpus().end_slot() - 1;
  while (last > first && worth(view, job, last) <= 0) --last;
  promises_->learn({.best = worth(view, job, first + std::max<std::int64_t>(1, soonest) - 1),
                    .worst = worth(view, job, last),
                    .work = std::max(1.0, std::ceil(gpu_slots))});
}

/// What a new job is worth, and what its coming says of prices.
void Oasis::appraise(const View& view, JobId job) {
  const double left = believed_left(view, job);
  double shortest = 1e18;
  double gpu_slots = 0;
  for (const PoolId pool : view.shape(job).pools) {
    const Speed speed = speed_in(view, job, pool);
    if (speed.shortest(left) >= shortest) continue;
    shortest = speed.shortest(left);
    gpu_slots = shortest * speed.range.most;
  }
  utility_[job] = utility_of(view, job, shortest);
  learn_prices(view, job, shortest, gpu_slots);
}

/// The best schedule in any pool; ties to the pool it prefers.
std::optional<Offer> Oasis::best_offer(const View& view, JobId job) {
  const Finish finish{.first = clock_.first_whole(view.now),
                      .end = promises_->gpus().end_slot(),
                      .worth = [&](std::int64_t slot) { return worth(view, job, slot); }};
  const double left = believed_left(view, job);
  std::optional<Offer> best;
  for (const PoolId pool : view.shape(job).pools) {
    if (view.cluster.usable_gpus(pool) == 0) continue;
    const Speed speed = speed_in(view, job, pool);
    // However cheap: a table of all its work would be as long as that.
    const bool is_too_long =
        !(speed.shortest(left) <= static_cast<double>(finish.end - finish.first));
    if (is_too_long) continue;
    Demand demand = demand_for(left, speed, options_.promises.servers, options_.units);
    demand.servers = {pool.value};
    auto schedule = best_schedule(promises_->market(), demand, finish);
    if (!schedule || (best && schedule->payoff() <= best->schedule.payoff())) continue;
    best = Offer{*std::move(schedule), demand.worker[0]};
  }
  return best;
}

std::string Oasis::why_refused(const View& view, JobId job) const {
  if (!pending_) {
    return fmt::format(
        "its {} of work at {} GPUs fit nowhere into the {} slots of {} ahead in which it would be "
        "worth anything (it is worth {:.4g} at best)",
        human_duration(to_seconds(view.estimate(job))), view.gpus(job), options_.promises.horizon,
        human_duration(to_seconds(clock_.length())), utility_[job].at(0));
  }
  const Schedule& schedule = pending_->schedule;
  std::int64_t gpu_slots = 0;
  for (const Hold& hold : schedule.workers) gpu_slots += hold.units * pending_->gpus_per_worker;
  return fmt::format(
      "its best schedule takes {} GPU-slots of {} and costs {:.4g} at the prices of today, but "
      "done {} after its arrival it is worth {:.4g}",
      gpu_slots, human_duration(to_seconds(clock_.length())), schedule.cost,
      human_duration(to_seconds(clock_.begin(schedule.finish + 1) - view.jobs.submitted[job])),
      schedule.worth);
}

std::optional<Refusal> Oasis::admit(const View& view, JobId job) {
  if (!clock_.is_started()) clock_.start(view.now);
  catch_up(view);
  appraise(view, job);
  pending_ = best_offer(view, job);
  if (pending_ && pending_->schedule.payoff() > 0) return std::nullopt;
  if (options_.reject_to_besteffort) {
    pending_.reset();
    return std::nullopt;
  }
  return Refusal{Reason::Price, why_refused(view, job)};
}

void Oasis::on_arrival(const View& view, JobId job) {
  if (pending_) {
    accept(view, job, *pending_);
  } else {
    guests_.add(view, job);
  }
  pending_.reset();
}

void Oasis::accept(const View& view, JobId job, const Offer& offer) {
  promises_->keep(job, offer, clock_.at(view.now));
  changed_.insert(job);
}

/// Everything that comes before new jobs: lost nodes, then schedules that end.
void Oasis::catch_up(const View& view) {
  if (!clock_.is_started()) return;
  const std::int64_t slot = clock_.at(view.now);
  // Only a slot that somebody waited for begins with this moment; of any other one, a part is over.
  if (slot > looked_at_ && promises_->is_awaited(looked_at_, slot)) clock_.begin_slot(view.now);
  looked_at_ = slot;
  promises_->advance(slot);
  for (const JobId job : lost_) plan_again(view, job);
  lost_.clear();
  if (capacity_fell_) relieve_overfull(view);
  capacity_fell_ = false;
  while (const auto job = promises_->pop_due(slot)) {
    if (promises_->is_over(*job, slot)) {
      end_schedule(view, *job);
    } else {
      changed_.insert(*job);
    }
  }
}

/// Whoever was accepted last plans again until no slot holds more promises than GPUs.
void Oasis::relieve_overfull(const View& view) {
  const PriceBook& gpus = promises_->gpus();
  for (std::uint32_t p = 0; p < gpus.servers(); ++p) {
    for (std::int64_t slot = clock_.first_whole(view.now); slot < gpus.end_slot(); ++slot) {
      while (gpus.promised(p, 0, slot) > gpus.capacity(p, 0)) {
        const auto job = promises_->last_holder(PoolId{p}, slot);
        if (!job) break;
        plan_again(view, *job);
      }
    }
  }
}

/// A request for what is left, with the utility it always had. If nobody would pay for that it goes
/// on as a guest.
void Oasis::plan_again(const View& view, JobId job) {
  const std::int64_t slot = clock_.at(view.now);
  promises_->release_from(job, clock_.first_whole(view.now));
  const auto offer = best_offer(view, job);
  if (offer && offer->schedule.payoff() > 0) {
    // What it still holds in this slot was counted in workers of another size.
    if (offer->gpus_per_worker != promises_->gpus_per_worker(job))
      promises_->release_from(job, slot);
    accept(view, job, *offer);
  } else {
    promises_->release_from(job, slot);
    promises_->drop(job);
    ahead_.erase(job);
    guests_.add(view, job);
  }
}

/// The schedule is over, the job is not. One that needs but an instant more keeps its GPUs for it.
void Oasis::end_schedule(const View& view, JobId job) {
  const Duration left = view.estimated_left(job);
  const Duration instant = std::max<Duration>(std::chrono::milliseconds{1}, clock_.length() / 1000);
  if (view.jobs.is_running(job) && left > Duration::zero() && left <= instant) {
    promises_->remind(job, clock_.at(view.now) + 1);
  } else {
    plan_again(view, job);
  }
}

void Oasis::on_departure(const View& view, JobId job) {
  if (promises_->has(job)) {
    promises_->release_from(job, clock_.at(view.now));
    promises_->drop(job);
  } else {
    guests_.remove(view, job);
  }
  ahead_.erase(job);
  lost_.erase(job);
}

void Oasis::on_requeue(const View& view, JobId job) {
  if (promises_->has(job)) {
    promises_->release_from(job, clock_.at(view.now));
    ahead_.erase(job);
    lost_.insert(job);
  } else {
    guests_.requeue(view, job);
  }
}

void Oasis::on_capacity_change(const View& view, NodeId node) {
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  const bool fell = promises_->set_capacity(pool, view.cluster.usable_gpus(pool));
  capacity_fell_ = capacity_fell_ || fell;
}

std::optional<Time> Oasis::next_wakeup(const View& view) {
  const auto slot = promises_->next_slot();
  if (!slot) return std::nullopt;
  return std::max(clock_.begin(*slot), view.now + Duration{1});
}

void Oasis::decide(const View& view, Plan& plan, Rng& rng) {
  if (!clock_.is_started()) return;
  Pass pass{view, plan, rng};
  catch_up(view);
  stop_changed(pass);
  start_planned(pass);
  guests_.start_waiting(pass);
  if (options_.ahead) start_ahead(pass);
}

/// Jobs that hold another number of GPUs than their schedule says for this slot.
void Oasis::stop_changed(Pass& pass) {
  Plan& plan = pass.plan;
  starting_.clear();
  const std::int64_t slot = clock_.at(pass.view.now);
  for (const JobId job : changed_) {
    if (!promises_->has(job)) continue;
    const std::int64_t wanted = promises_->gpus_at(job, slot);
    const bool was_ahead = ahead_.contains(job);
    if (was_ahead && wanted == 0) continue;  // its slots are still to come
    ahead_.erase(job);
    const bool is_elsewhere = was_ahead && plan.pool_of(job) != promises_->pool_at(job, slot);
    if (plan.gpus_of(job) == wanted && !is_elsewhere) continue;
    if (plan.holds(job)) plan.preempt(job, Reason::Reservation);
    if (wanted > 0) starting_.push_back(job);
  }
  changed_.clear();
}

void Oasis::start_planned(Pass& pass) {
  Plan& plan = pass.plan;
  const std::int64_t slot = clock_.at(pass.view.now);
  for (const JobId job : starting_) {
    const PoolId pool = promises_->pool_at(job, slot);
    const auto gpus = static_cast<std::int32_t>(promises_->gpus_at(job, slot));
    if (start_in_place_of_others(plan, job, pool, gpus)) continue;
    // Short of GPUs it waits for a job that is late by an instant; short of cores or closeness it
    // takes what can be placed.
    const ElasticRange range = range_in(pass.view, job, pool, options_.elastic);
    const bool enough = plan.cluster().free_gpus(pool) >= gpus;
    if (!enough || !try_start_up_to(plan, pass.view, job, pool, gpus, range, Reason::Reservation))
      changed_.insert(job);
  }
}

/// Those of the pool who run ahead of their slots give way, then guests, the last to arrive first;
/// who still fits is brought back.
bool Oasis::start_in_place_of_others(Plan& plan, JobId job, PoolId pool, std::int32_t gpus) {
  const auto try_start = [&] { return plan.try_start_sized(pool, job, gpus, Reason::Reservation); };
  if (try_start()) return true;
  for (std::size_t i = ahead_.size(); i-- > 0;) {
    if (plan.pool_of(ahead_[i]) != pool) continue;
    plan.preempt(ahead_[i], Reason::Reservation);
    ahead_.erase_at(i);
    if (try_start()) return true;
  }
  return guests_.give_way(plan, pool, try_start);
}

/// Accepted jobs on GPUs that nobody was promised now, those whose slots come first before others.
/// With what is done before, a schedule ends early.
void Oasis::start_ahead(Pass& pass) {
  Plan& plan = pass.plan;
  if (plan.cluster().free_gpus() == 0) return;
  const std::int64_t slot = clock_.at(pass.view.now);
  std::vector<std::pair<std::int64_t, JobId>> order;
  for (const JobId job : promises_->jobs()) {
    const auto next = promises_->next_after(job, slot);
    if (next && !plan.holds(job) && promises_->gpus_at(job, slot) == 0)
      order.emplace_back(*next, job);
  }
  std::ranges::sort(order);
  for (const auto& [next, job] : order) {
    const auto gpus = static_cast<std::int32_t>(promises_->gpus_at(job, next));
    if (plan.try_start_sized(promises_->pool_at(job, next), job, gpus, Reason::Backfill))
      ahead_.insert(job);
  }
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options;
  FixedPrices& prices = options.promises.prices;
  BERTH_TRY(options.slot, params.positive_duration("slot"));
  BERTH_TRY(options.promises.horizon, params.integer("horizon", 1, 100'000));
  BERTH_TRY(options.units, params.integer("units", 1, 100'000));
  BERTH_TRY(options.value,
            params.choice<Value>("value", {{"weight", Value::Weight}, {"work", Value::Work}}));
  BERTH_TRY(options.sensitivity, params.number("sensitivity", 0, 1000));
  BERTH_TRY(options.critical, params.number("critical", 0, 1000));
  BERTH_TRY(options.target, params.number("target", 0, 1e6));
  BERTH_TRY(prices.low, params.number("price_low", 0, 1e12));
  BERTH_TRY(prices.high, params.number("price_high", 0, 1e12));
  if ((prices.low > 0) != (prices.high > 0) || prices.low > prices.high)
    return params.wrong("price_high", "must be given with price_low, and be no less");
  BERTH_TRY(options.reject_to_besteffort, params.flag("reject_to_besteffort"));
  BERTH_TRY(options.ahead, params.flag("ahead"));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.promises.servers, parameter_servers(params));
  return std::make_unique<Oasis>(entry.name, options);
}

std::vector<ParamSpec> all_params() {
  std::vector<ParamSpec> params{
      {"slot", "10m", "seconds of a slot: numbers of GPUs change at its beginning only"},
      {"horizon", "200", "slots ahead in which schedules are made"},
      {"value", "weight", "what a job is worth: its weight, or work: its weight times GPU-slots"},
      {"sensitivity", "0.1", "steepness of utility of jobs without a hard deadline, per slot"},
      {"critical", "5", "steepness of utility of jobs with a hard deadline, per slot"},
      {"target", "15", "slots after its shortest run time at which half a job's value is left"},
      {"price_low", "0", "price of an idle GPU-slot; 0 = learnt from the jobs seen"},
      {"price_high", "0", "price of the last GPU-slot; 0 = learnt from the jobs seen"},
      {"reject_to_besteffort", "off", "refused jobs run on GPUs that nobody was promised"},
      {"ahead", "off", "accepted jobs run on GPUs that nobody was promised until their slots come",
       "on"},
      {"units", "128", "parts into which work is cut where speed is not proportional to GPUs"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  for (ParamSpec& spec : parameter_server_params()) params.push_back(std::move(spec));
  return params;
}

}  // namespace

}  // namespace berth::oasis

namespace berth {

PolicyEntry oasis_entry() {
  return {
      .name = "oasis",
      .summary = "online primal-dual: accepts a job if it is worth the price of its best schedule",
      .params = oasis::all_params(),
      .make = oasis::make,
      .test_settings = {{"slot", "2"}, {"reject_to_besteffort", "on"}, {"elastic", "all"}}};
}

}  // namespace berth
