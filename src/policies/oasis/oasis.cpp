// OASiS: what a job is worth, what it would cost, and whether it is accepted.
#include "policies/oasis/oasis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "policies/common/sized_start.h"
#include "policies/kit/beliefs.h"

namespace berth::oasis {

Oasis::Oasis(std::string name, const Options& options)
    : name_(std::move(name)), options_(options), clock_(options.slot) {}

void Oasis::begin(const View& view) {
  rows_.resize(view.jobs.size());
  std::vector<Amounts> pools;
  for (std::uint32_t p = 0; p < view.cluster.pools(); ++p)
    pools.push_back({view.cluster.usable_gpus(PoolId{p})});
  gpus_.emplace(pools, options_.horizon);
  gpu_prices_.emplace(1, gpus_->total_capacity());
  if (options_.servers.any()) {
    cores_.emplace(std::vector<Amounts>{{all_cores(view.cluster.cluster())}}, options_.horizon);
    core_prices_.emplace(1, cores_->total_capacity());
  }
  if (!options_.has_fixed_prices()) return;
  const std::vector<double> high{options_.price_high};
  gpus_->set_range(options_.price_low, high);
  if (cores_) cores_->set_range(options_.price_low, high);
}

Speed Oasis::speed_in(const View& view, JobId job, PoolId pool) const {
  Speed speed{.range = range_in(view, job, pool, options_.elastic), .per_slot = {}};
  const double slot = to_seconds(clock_.length());
  for (std::int32_t gpus = speed.range.least; gpus <= speed.range.most; ++gpus) {
    const double work = slot * believed_rate(view, job, pool, gpus);
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
  utility.value = weight * (options_.value_by_work ? std::max(work, 1e-6) : 1);
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
  return rows_[job.value].utility.at(std::max(0.0, clock_.slots(delay) - 1));
}

void Oasis::learn_prices(const View& view, JobId job, double shortest, double gpu_slots) {
  if (options_.has_fixed_prices()) return;
  const std::int64_t first = clock_.first_whole(view.now);
  const auto soonest = static_cast<std::int64_t>(std::min(1e9, std::ceil(shortest)));
  std::int64_t last = gpus_->end_slot() - 1;
  while (last > first && worth(view, job, last) <= 0) --last;
  const PriceRange::Sample sample{
      .best = worth(view, job, first + std::max<std::int64_t>(1, soonest) - 1),
      .worst = worth(view, job, last),
      .work = std::max(1.0, std::ceil(gpu_slots))};
  const auto update = [&](PriceRange& range, PriceBook& book, std::int64_t need) {
    if (range.see(sample, Amounts{need})) book.set_range(range.low(), range.high());
  };
  update(*gpu_prices_, *gpus_, 1);
  if (cores_) update(*core_prices_, *cores_, options_.servers.cores);
}

/// Looks at a new job for the first time.
void Oasis::meet(const View& view, JobId job) {
  const double left = believed_left(view, job);
  double shortest = 1e18;
  double gpu_slots = 0;
  for (const PoolId pool : view.shape(job).pools) {
    const Speed speed = speed_in(view, job, pool);
    if (speed.shortest(left) >= shortest) continue;
    shortest = speed.shortest(left);
    gpu_slots = shortest * speed.range.most;
  }
  rows_[job.value].utility = utility_of(view, job, shortest);
  learn_prices(view, job, shortest, gpu_slots);
}

/// The best schedule in any pool; ties to the pool it prefers.
std::optional<Oasis::Offer> Oasis::best_offer(const View& view, JobId job) const {
  const Market market{&*gpus_, cores_ ? &*cores_ : nullptr};
  const Finish finish{.first = clock_.first_whole(view.now),
                      .end = gpus_->end_slot(),
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
    Demand demand = demand_for(left, speed, options_.servers, options_.units);
    demand.servers = {pool.value};
    auto schedule = best_schedule(market, demand, finish);
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
        human_duration(to_seconds(view.estimate(job))), view.gpus(job), options_.horizon,
        human_duration(to_seconds(clock_.length())), rows_[job.value].utility.at(0));
  }
  const Schedule& schedule = pending_->schedule;
  std::int64_t gpu_slots = 0;
  for (const Hold& hold : schedule.workers) gpu_slots += hold.units * pending_->gpus_per_worker;
  return fmt::format(
      "its best schedule takes {} GPU-slots of {} and costs {:.4g} at the prices of today, but "
      "done "
      "{} after its arrival it is worth {:.4g}",
      gpu_slots, human_duration(to_seconds(clock_.length())), schedule.cost,
      human_duration(to_seconds(clock_.begin(schedule.finish + 1) - view.jobs.submitted[job])),
      schedule.worth);
}

std::optional<Refusal> Oasis::admit(const View& view, JobId job) {
  if (!clock_.is_started()) clock_.start(view.now);
  catch_up(view);
  meet(view, job);
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
    commit(view, job, *std::move(pending_));
    pending_.reset();
  } else {
    become_guest(view, job);
  }
}

}  // namespace berth::oasis

namespace berth {

namespace {

Result<void> read_prices(const Params& params, oasis::Options& options) {
  BERTH_TRY(options.price_low, params.number("price_low", 0, 1e12));
  BERTH_TRY(options.price_high, params.number("price_high", 0, 1e12));
  if ((options.price_low > 0) != (options.price_high > 0) || options.price_low > options.price_high)
    return params.wrong("price_high", "must be given with price_low, and be no less");
  return {};
}

Result<void> read_utility(const Params& params, oasis::Options& options) {
  BERTH_TRY(const std::size_t value, params.choice("value", {"weight", "work"}));
  options.value_by_work = value == 1;
  BERTH_TRY(options.sensitivity, params.number("sensitivity", 0, 1000));
  BERTH_TRY(options.critical, params.number("critical", 0, 1000));
  BERTH_TRY(options.target, params.number("target", 0, 1e6));
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  oasis::Options options;
  BERTH_TRY(options.slot, params.duration("slot"));
  if (options.slot <= Duration::zero()) return params.wrong("slot", "must be more than zero");
  BERTH_TRY(options.horizon, params.integer("horizon", 1, 100'000));
  BERTH_TRY(options.units, params.integer("units", 1, 100'000));
  BERTH_TRY_VOID(read_utility(params, options));
  BERTH_TRY_VOID(read_prices(params, options));
  BERTH_TRY(options.reject_to_besteffort, params.flag("reject_to_besteffort"));
  BERTH_TRY(options.ahead, params.flag("ahead"));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.servers, parameter_servers(params));
  return std::make_unique<oasis::Oasis>(entry.name, options);
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

PolicyEntry oasis_entry() {
  return {
      .name = "oasis",
      .summary = "online primal-dual: accepts a job if it is worth the price of its best schedule",
      .params = all_params(),
      .make = make};
}

}  // namespace berth
