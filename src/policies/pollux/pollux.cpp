#include "policies/pollux/pollux.h"

#include <algorithm>

#include "policies/pollux/filling.h"

namespace berth::pollux {

void Pollux::begin(const View& view) {
  GoodputPolicy::begin(view);
  pool_of_.resize(view.jobs.size(), kNoPool);
  std::vector<std::vector<NodeId>> nodes(view.cluster.pools());
  const auto& all = view.cluster.cluster().nodes;
  for (std::uint32_t i = 0; i < all.size(); ++i) nodes[all[i].pool.value].push_back(NodeId{i});
  for (std::vector<NodeId>& in_pool : nodes)
    pools_.push_back({.evolution = Evolution{std::move(in_pool)}, .jobs = {}});
}

/// The acceptable one with the fewest jobs per GPU.
PoolId Pollux::least_loaded(const View& view, JobId job) const {
  PoolId best = view.shape(job).pools.front();
  double least = -1;
  for (const PoolId pool : view.shape(job).pools) {
    const auto gpus = static_cast<double>(view.cluster.usable_gpus(pool));
    if (gpus < jobs().least(job)) continue;
    const double load = static_cast<double>(pools_[pool].active) / gpus;
    if (least >= 0 && load >= least) continue;
    least = load;
    best = pool;
  }
  return best;
}

void Pollux::change_pool(JobId job, PoolId pool) {
  if (pool_of_[job] != kNoPool) --pools_[pool_of_[job]].active;
  pool_of_[job] = pool;
  if (pool != kNoPool) ++pools_[pool].active;
}

void Pollux::on_arrival(const View& view, JobId job) {
  GoodputPolicy::on_arrival(view, job);
  change_pool(job, least_loaded(view, job));
}

void Pollux::on_departure(const View& view, JobId job) {
  GoodputPolicy::on_departure(view, job);
  change_pool(job, kNoPool);
}

bool Pollux::hold_round(Pass& pass) {
  assign_pools(pass.view, pass.plan);
  bool changed = false;
  for (std::uint32_t i = 0; i < pools_.size(); ++i) changed |= optimise(pass, PoolId{i});
  set_batches(pass);
  return changed;
}

/// Jobs by the pool they belong to; one that waits for a pool too small for it changes over.
void Pollux::assign_pools(const View& view, const Plan& plan) {
  for (std::uint32_t i = 0; i < pools_.size(); ++i) pools_[PoolId{i}].jobs.clear();
  for (const JobId job : jobs().active()) {
    const bool is_too_small = view.cluster.usable_gpus(pool_of_[job]) < jobs().least(job);
    if (!plan.holds(job) && is_too_small) {
      change_pool(job, kNoPool);  // it is no load where it leaves
      change_pool(job, least_loaded(view, job));
    }
    pools_[pool_of_[job]].jobs.push_back(job);
  }
}

std::int32_t Pollux::fair_share(const View& view, PoolId pool) const {
  if (options_.normaliser == Normaliser::One) return 1;
  const auto jobs = static_cast<std::int64_t>(pools_[pool].jobs.size());
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(1, view.cluster.usable_gpus(pool) / std::max<std::int64_t>(1, jobs)));
}

/// With fewer generations than this breeding is guessing, and its cost grows with jobs times nodes.
bool Pollux::can_breed(const View& view, PoolId pool) const {
  constexpr std::int32_t kFewestGenerations = 10;
  if (view.cluster.usable_gpus(pool) > options_.genetic_gpus) return false;
  const PoolState& state = pools_[pool];
  const auto generations =
      static_cast<std::size_t>(std::min(kFewestGenerations, options_.genetic.generations));
  return state.jobs.size() * state.evolution.nodes() * options_.genetic.population * generations <=
         options_.genetic.most_cells;
}

bool Pollux::optimise(Pass& pass, PoolId pool) {
  PoolState& state = pools_[pool];
  if (state.jobs.empty()) return false;
  const PoolRound round{.pass = pass,
                        .models = jobs(),
                        .resizer = resizer(),
                        .pool = pool,
                        .jobs = state.jobs,
                        .share = fair_share(pass.view, pool),
                        .p = options_.p};
  if (!can_breed(pass.view, pool)) return optimise_by_filling(round);
  return state.evolution.optimise(round, options_.genetic, options_.interference);
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  using goodput::Model;
  Options options;
  GeneticOptions& genetic = options.genetic;
  BERTH_TRY(options.base, goodput::read_options(params));
  BERTH_TRY(options.base.model, params.choice<Model>("model", {{"profiled", Model::Profiled},
                                                               {"fitted", Model::Fitted}}));
  BERTH_TRY(options.p, params.number("p", -100, 100));
  if (options.p == 0) return params.wrong("p", "must not be zero");
  BERTH_TRY(genetic.population, params.whole<std::size_t>("population", 2, 100'000));
  BERTH_TRY(genetic.generations, params.whole("generations", 1, 100'000));
  BERTH_TRY(genetic.patience, params.whole("patience", 1, 100'000));
  BERTH_TRY(genetic.most_cells, params.whole<std::size_t>("effort", 1, 1'000'000'000'000));
  BERTH_TRY(options.genetic_gpus, params.integer("genetic_gpus", 0, 100'000));
  BERTH_TRY(const bool avoid, params.flag("avoid_interference"));
  options.interference = avoid ? Interference::Avoid : Interference::Allow;
  BERTH_TRY(options.normaliser, params.choice<Normaliser>("speedup", {{"share", Normaliser::Share},
                                                                      {"one", Normaliser::One}}));
  return std::make_unique<Pollux>(entry.name, options);
}

}  // namespace

}  // namespace berth::pollux

namespace berth {

PolicyEntry pollux_entry() {
  return {
      .name = "pollux",
      .summary =
          "elastic, batch and GPUs by goodput; a power mean of speedups by a genetic algorithm",
      .params = goodput::params_with(
          {{"model", "profiled",
            "profiled: goodput as the profile says; fitted: learnt from the rates a job shows"},
           {"p", "-1",
            "power of the mean of speedups: 1 = average, far below zero = the worst job"},
           {"speedup", "share", "against an equal share of the GPUs (share) or one GPU (one)"},
           {"population", "100", "allocations the genetic algorithm keeps"},
           {"generations", "100", "of the genetic algorithm per round, at most"},
           {"patience", "5", "generations without a better allocation after which it stops"},
           {"effort", "5000000",
            "cells of allocations it touches per round at most; filling where that is less than "
            "ten generations"},
           {"genetic_gpus", "1000", "GPUs of a device type up to which it is used; filling above"},
           {"avoid_interference", "on", "at most one job over several nodes on each node"}}),
      .make = pollux::make,
      .test_settings = {{"interval", "2"},
                        {"restart", "1"},
                        {"max_gpus", "4"},
                        {"population", "8"},
                        {"generations", "5"},
                        {"elastic", "all"}}};
}

}  // namespace berth
