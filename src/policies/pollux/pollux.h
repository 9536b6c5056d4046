// Pollux (OSDI 2021): every job gets the batch that makes it learn fastest on its GPUs, and every
// `interval` GPUs are shared out anew so that a power mean of the jobs' speedups against an equal
// share is largest, moves discounted by what a restart costs (fitness.h).
//
// Pools up to `genetic_gpus` GPUs are optimised by the genetic algorithm (evolution.h) while
// `effort` pays for ten generations, others by filling (filling.h).
//
// Assumes: jobs are elastic and preempted by checkpoint; goodput as the profile says, or as fitted
// to the rates seen. Deviations: a job belongs to one device type, chosen by load; the seven
// parameters are learnt only on request; no cloud autoscaling; a job that arrives between two
// rounds starts at once (goodput_policy.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/goodput/goodput_policy.h"
#include "policies/policy_entry.h"
#include "policies/pollux/evolution.h"

namespace berth::pollux {

enum class Normaliser : std::uint8_t { Share, One };  // what a speedup is measured against

struct Options {
  goodput::Options base;
  GeneticOptions genetic{.patience = 5, .most_cells = 5'000'000};
  double p = -1;
  Normaliser normaliser = Normaliser::Share;
  Interference interference = Interference::Avoid;
  std::int64_t genetic_gpus = 1000;
};

class Pollux final : public goodput::GoodputPolicy {
 public:
  Pollux(std::string name, const Options& options)
      : GoodputPolicy(std::move(name), options.base), options_(options) {}
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;

 private:
  struct PoolState {
    Evolution evolution;
    std::int64_t active = 0;  // jobs that belong to it
    std::vector<JobId> jobs;  // the same in this round, by id
  };

  bool hold_round(Pass& pass) override;
  [[nodiscard]] PoolId first_pool(const View&, JobId job) const override { return pool_of_[job]; }
  void on_start(const Plan& plan, JobId job) override { change_pool(job, plan.pool_of(job)); }

  [[nodiscard]] PoolId least_loaded(const View& view, JobId job) const;
  void change_pool(JobId job, PoolId pool);
  void assign_pools(const View& view, const Plan& plan);
  bool optimise(Pass& pass, PoolId pool);
  [[nodiscard]] bool can_breed(const View& view, PoolId pool) const;
  [[nodiscard]] std::int32_t fair_share(const View& view, PoolId pool) const;

  Options options_;
  Column<PoolId, PoolState> pools_;
  Column<JobId, PoolId> pool_of_;  // the pool it belongs to; it may run in no other
};

}  // namespace berth::pollux

namespace berth {

[[nodiscard]] PolicyEntry pollux_entry();

}  // namespace berth
