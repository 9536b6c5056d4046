#include "policies/pollux/pollux.h"

#include <algorithm>
#include "policies/goodput/goodput_params.h"

namespace berth::pollux {

void Pollux::begin(const View& view) {
  book_.begin(view);
  pools_.resize(view.cluster.pools());
  in_pool_.resize(view.cluster.pools());
  pool_of_.resize(view.jobs.size(), kNoPool);
  waiting_.begin(view.jobs.size());
  const auto& nodes = view.cluster.cluster().nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    pools_[nodes[i].pool.value].nodes.push_back(NodeId{i});
}

/// The acceptable one with the fewest jobs per GPU.
PoolId Pollux::pool_for(const View& view, JobId job) const {
  PoolId best = view.shape(job).pools.front();
  double least = -1;
  for (const PoolId pool : view.shape(job).pools) {
    const auto gpus = static_cast<double>(view.cluster.usable_gpus(pool));
    if (gpus < book_.least(job)) continue;
    const double load = static_cast<double>(in_pool_[pool.value]) / gpus;
    if (least >= 0 && load >= least) continue;
    least = load;
    best = pool;
  }
  return best;
}

void Pollux::on_arrival(const View& view, JobId job) {
  book_.add(view, job);
  pool_of_[job.value] = pool_for(view, job);
  ++in_pool_[pool_of_[job.value].value];
  waiting_.add(view, job, book_.least(job));
  clock_.stir(view.now);
}

void Pollux::on_departure(const View& view, JobId job) {
  book_.remove(job);
  --in_pool_[pool_of_[job.value].value];
  clock_.stir(view.now);
}

void Pollux::on_requeue(const View& view, JobId job) {
  waiting_.add(view, job, book_.least(job));
  clock_.stir(view.now);
}

void Pollux::on_capacity_change(const View& view, NodeId) { clock_.stir(view.now); }

std::optional<Time> Pollux::next_wakeup(const View& view) {
  // With nothing running nothing changes by waiting.
  if (!is_anybody_running_ || book_.active().empty()) return std::nullopt;
  return std::max(clock_.next(), view.now + Duration{1});
}

void Pollux::decide(const View& view, Plan& plan, Rng& rng) {
  constexpr std::int64_t kLongestPause = 32;  // rounds
  constexpr std::int64_t kWhileLearning = 4;
  if (clock_.is_due(view.now)) {
    bool changed = book_.refresh(view);
    assign_pools(view, plan);
    for (std::uint32_t i = 0; i < pools_.size(); ++i)
      changed |= optimise(view, plan, PoolId{i}, rng);
    for (const JobId job : book_.active()) {
      if (!plan.holds(job)) waiting_.add(view, job, book_.least(job));
    }
    clock_.rest(view.now, changed, book_.hears_noise() ? kWhileLearning : kLongestPause);
  }
  start_waiting(view, plan);
  is_anybody_running_ =
      std::ranges::any_of(book_.active(), [&](JobId job) { return plan.holds(job); });
}

/// Jobs by the pool they belong to; one that waits for a pool too small for it changes over.
void Pollux::assign_pools(const View& view, const Plan& plan) {
  for (PoolState& state : pools_) state.jobs.clear();
  for (const JobId job : book_.active()) {
    PoolId& pool = pool_of_[job.value];
    if (!plan.holds(job) && view.cluster.usable_gpus(pool) < book_.least(job)) {
      --in_pool_[pool.value];
      pool = pool_for(view, job);
      ++in_pool_[pool.value];
    }
    pools_[pool.value].jobs.push_back(job);
  }
}

std::int32_t Pollux::fair_share(const View& view, PoolId pool) const {
  if (options_.normaliser == Normaliser::One) return 1;
  const auto jobs = static_cast<std::int64_t>(pools_[pool.value].jobs.size());
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(1, view.cluster.usable_gpus(pool) / std::max<std::int64_t>(1, jobs)));
}

/// Of an equal share, or of the nearest size the job can run at.
double Pollux::fair_goodput(const View& view, JobId job, PoolId pool, std::int32_t fair) {
  const GoodputTable& table = book_.table(view, job, pool);
  const ElasticRange& range = book_.range(job);
  const std::int32_t from = std::clamp(fair, range.least, range.most);
  const auto at = [&](std::int32_t gpus) {
    return table.goodput(gpus, gpus > view.cluster.largest_node(pool));
  };
  for (std::int32_t gpus = from; gpus >= range.least; --gpus) {
    if (at(gpus) > 0) return at(gpus);
  }
  for (std::int32_t gpus = from; gpus <= range.most; ++gpus) {
    if (at(gpus) > 0) return at(gpus);
  }
  return 1;
}

/// With fewer generations than this breeding is guessing, and its cost grows with jobs times nodes.
bool Pollux::can_breed(const View& view, PoolId pool) const {
  constexpr std::int32_t kFewestGenerations = 10;
  if (view.cluster.usable_gpus(pool) > options_.genetic_gpus) return false;
  const PoolState& state = pools_[pool.value];
  const auto generations =
      static_cast<std::size_t>(std::min(kFewestGenerations, options_.genetic.generations));
  return state.jobs.size() * state.nodes.size() * options_.genetic.population * generations <=
         options_.genetic.most_cells;
}

bool Pollux::optimise(const View& view, Plan& plan, PoolId pool, Rng& rng) {
  PoolState& state = pools_[pool.value];
  if (state.jobs.empty()) return false;
  const bool changed = can_breed(view, pool) ? optimise_by_genes(view, plan, pool, rng)
                                             : optimise_by_filling(view, plan, pool);
  for (const JobId job : state.jobs) {
    if (plan.holds(job)) book_.set_batch(view, plan, job);
  }
  return changed;
}

/// Jobs without GPUs, at their smallest size on whatever is free: they need not wait for a round.
void Pollux::start_waiting(const View& view, Plan& plan) {
  waiting_.start(view, plan, [&](JobId job) {
    const auto try_in = [&](PoolId pool) {
      return plan.try_start_sized(pool, job, book_.least(job), Reason::Order);
    };
    const bool is_kept = plan.try_keep(job);
    if (!is_kept && !try_in(pool_of_[job.value]) &&
        std::ranges::none_of(view.shape(job).pools, try_in))
      return false;
    --in_pool_[pool_of_[job.value].value];
    pool_of_[job.value] = plan.pool_of(job);
    ++in_pool_[pool_of_[job.value].value];
    book_.settle(view, plan, job, !is_kept);
    clock_.stir(view.now + Duration{1});
    return true;
  });
}

}  // namespace berth::pollux

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  pollux::Options options;
  BERTH_TRY(options.goodput, goodput_options(params));
  BERTH_TRY(const std::size_t model, params.choice("model", {"profiled", "fitted"}));
  options.goodput.model = model == 0 ? GoodputModel::Profiled : GoodputModel::Fitted;
  BERTH_TRY(options.interval, params.duration("interval"));
  if (options.interval <= Duration::zero())
    return params.wrong("interval", "must be more than zero");
  BERTH_TRY(options.p, params.number("p", -100, 100));
  if (options.p == 0) return params.wrong("p", "must not be zero");
  BERTH_TRY(const std::int64_t population, params.integer("population", 2, 100'000));
  options.genetic.population = static_cast<std::size_t>(population);
  BERTH_TRY(const std::int64_t generations, params.integer("generations", 1, 100'000));
  options.genetic.generations = static_cast<std::int32_t>(generations);
  BERTH_TRY(const std::int64_t patience, params.integer("patience", 1, 100'000));
  options.genetic.patience = static_cast<std::int32_t>(patience);
  BERTH_TRY(const std::int64_t cells, params.integer("effort", 1, 1'000'000'000'000));
  options.genetic.most_cells = static_cast<std::size_t>(cells);
  BERTH_TRY(options.genetic_gpus, params.integer("genetic_gpus", 0, 100'000));
  BERTH_TRY(const bool avoid, params.flag("avoid_interference"));
  options.interference = avoid ? pollux::Interference::Avoid : pollux::Interference::Allow;
  BERTH_TRY(const std::size_t against, params.choice("speedup", {"share", "one"}));
  options.normaliser = against == 0 ? pollux::Normaliser::Share : pollux::Normaliser::One;
  return std::make_unique<pollux::Pollux>(entry.name, options);
}

}  // namespace

PolicyEntry pollux_entry() {
  std::vector<ParamSpec> params = goodput_params();
  const std::vector<ParamSpec> own{
      {"model", "profiled",
       "profiled: goodput as the profile says; fitted: learnt from the rates a job shows"},
      {"p", "-1", "power of the mean of speedups: 1 = average, far below zero = the worst job"},
      {"speedup", "share", "against an equal share of the GPUs (share) or one GPU (one)"},
      {"population", "100", "allocations the genetic algorithm keeps"},
      {"generations", "100", "of the genetic algorithm per round, at most"},
      {"patience", "5", "generations without a better allocation after which it stops"},
      {"effort", "5000000",
       "cells of allocations it touches per round at most; filling where that is less than ten "
       "generations"},
      {"genetic_gpus", "1000", "GPUs of a device type up to which it is used; filling above"},
      {"avoid_interference", "on", "at most one job over several nodes on each node"}};
  params.insert(params.end(), own.begin(), own.end());
  return {.name = "pollux",
          .summary =
              "elastic, batch and GPUs by goodput; a power mean of speedups by a genetic algorithm",
          .params = std::move(params),
          .make = make};
}

}  // namespace berth
