// Pollux (OSDI 2021): every job gets the batch that makes it learn fastest on its GPUs, and every
// `interval` GPUs are shared out anew so that a power mean of the jobs' speedups against an equal
// share is largest, moves discounted by what a restart costs (fitness.h).
//
// Pools up to `genetic_gpus` GPUs are optimised by the genetic algorithm (genetic.h) while `effort`
// pays for ten generations, others by filling (water_fill.h). A job that arrives between two rounds
// starts at once at its smallest size if there is room. Rounds in which nothing can have changed
// are left out (round_clock.h).
//
// Assumes: jobs are elastic and preempted by checkpoint; goodput as the profile says, or as fitted
// to the rates seen. Deviations: a job belongs to one device type, chosen by load; the seven
// parameters are learnt only on request; no cloud autoscaling.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/goodput/goodput_jobs.h"
#include "policies/goodput/resizer.h"
#include "policies/goodput/round_clock.h"
#include "policies/goodput/waiting_heads.h"
#include "policies/policy_entry.h"
#include "policies/pollux/genetic.h"

namespace berth::pollux {

enum class Normaliser : std::uint8_t { Share, One };  // what a speedup is measured against

struct Options {
  GoodputOptions goodput;
  GeneticOptions genetic{.patience = 5, .most_cells = 5'000'000};
  Duration interval = std::chrono::seconds{60};
  double p = -1;
  Normaliser normaliser = Normaliser::Share;
  Interference interference = Interference::Avoid;
  std::int64_t genetic_gpus = 1000;
};

class Pollux final : public Policy {
 public:
  Pollux(std::string name, const Options& options)
      : name_(std::move(name)),
        options_(options),
        book_(options.goodput),
        resizer_(book_),
        clock_(options.interval) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile | Need::Reports | Need::RunTime,
            .preempts = true,
            .resizes = true,
            .also_uses = Ability::Batch | Ability::SubBatch};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  /// A pool's nodes, and the last generation of its optimisation.
  struct PoolState {
    std::vector<NodeId> nodes;
    std::vector<JobId> jobs;  // of this round, by id
    std::vector<JobId> population_jobs;
    std::vector<Allocations> population;
  };

  [[nodiscard]] PoolId pool_for(const View& view, JobId job) const;
  void assign_pools(const View& view, const Plan& plan);
  bool optimise(const View& view, Plan& plan, PoolId pool, Rng& rng);
  [[nodiscard]] bool can_breed(const View& view, PoolId pool) const;
  [[nodiscard]] double fair_goodput(const View& view, JobId job, PoolId pool, std::int32_t fair);
  [[nodiscard]] std::int32_t fair_share(const View& view, PoolId pool) const;

  // By the genetic algorithm.
  [[nodiscard]] GeneticProblem problem(const View& view, const Plan& plan, PoolId pool);
  [[nodiscard]] GeneticJob genetic_job(const View& view, const Plan& plan, JobId job, PoolId pool);
  void carry_population(PoolState& state, std::size_t cells);
  bool optimise_by_genes(const View& view, Plan& plan, PoolId pool, Rng& rng);
  bool apply_rows(const View& view, Plan& plan, PoolId pool, std::span<const std::uint8_t> rows,
                  std::span<const std::uint8_t> before);
  [[nodiscard]] bool start_on_row(Plan& plan, JobId job, PoolId pool,
                                  std::span<const std::uint8_t> row, std::span<const Slice> before);

  // By filling.
  bool optimise_by_filling(const View& view, Plan& plan, PoolId pool);
  [[nodiscard]] std::vector<JobId> within_reach(const View& view, const Plan& plan, PoolId pool);
  void keep_what_gains_little(const View& view, const Plan& plan, std::span<const JobId> jobs,
                              PoolId pool, std::vector<std::int32_t>& sizes);

  void start_waiting(const View& view, Plan& plan);

  std::string name_;
  Options options_;
  GoodputJobs book_;
  Resizer resizer_;
  RoundClock clock_;
  std::vector<PoolState> pools_;
  std::vector<PoolId> pool_of_;        // by JobId
  std::vector<std::int64_t> in_pool_;  // active jobs
  WaitingHeads waiting_;
  bool is_anybody_running_ = false;

  std::vector<Slice> slices_;  // scratch
};

}  // namespace berth::pollux

namespace berth {

[[nodiscard]] PolicyEntry pollux_entry();

}  // namespace berth
