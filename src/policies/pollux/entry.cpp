#include "policies/pollux/entry.h"

#include "policies/goodput/goodput_params.h"
#include "policies/pollux/pollux.h"

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
