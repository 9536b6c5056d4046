// Sia (SOSP 2023): goodput on several device types. Every `interval` each job gets one of a few
// configurations (type, servers, GPUs) or none, by an integer program over all jobs (assignment.h):
// costs fall with the job's goodput, relative to its worst configuration, and moves are discounted
// by what a restart costs.
//
// Jobs are adaptive (limits of their batch known), strong-scaling (batch fixed, GPUs free) or rigid
// (GPUs fixed, type free); the trace and the profile say which. A job that arrives between two
// rounds starts at once at its smallest size if there is room.
//
// Assumes: checkpoints; one-GPU goodput known for each type. Deviations: equal jobs are one row,
// restart factors told apart in twentieths; jobs that are split over several GPUs are not known to
// traces, so their unit is 1.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/policy.h"
#include "policies/goodput/goodput_jobs.h"
#include "policies/goodput/resizer.h"
#include "policies/goodput/round_clock.h"
#include "policies/goodput/waiting_heads.h"
#include "policies/policy_entry.h"
#include "policies/sia/assignment.h"
#include "policies/sia/configurations.h"

namespace berth::sia {

enum class Knowledge : std::uint8_t { All, Bootstrapped };

struct Options {
  GoodputOptions goodput;
  Duration interval = std::chrono::seconds{60};
  CostRule costs;
  SolveLimits limits;
  Knowledge knowledge = Knowledge::All;
};

class Sia final : public Policy {
 public:
  Sia(std::string name, const Options& options)
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
  void on_capacity_change(const View& view, NodeId) override { clock_.stir(view.now); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  /// Jobs that differ in nothing the program sees.
  struct Alike {
    const GoodputTable* table;  // on the first pool: stands for profile, batch and noise
    ShapeId shape;
    std::int32_t least, most;
    std::int32_t held;  // GPUs, and where
    std::uint32_t pool;
    std::int32_t restart;  // factor in twentieths
    std::uint64_t seen;    // pools where it ran on several GPUs; only if goodput is bootstrapped
    friend auto operator<=>(const Alike&, const Alike&) = default;
  };
  struct Group {
    std::vector<JobId> jobs;
    std::vector<PoolId> pools;  // by option
  };

  [[nodiscard]] Alike key_of(const View& view, const Plan& plan, JobId job);
  [[nodiscard]] double goodput(const View& view, JobId job, PoolId pool, std::int32_t gpus);
  void build(const View& view, const Plan& plan);
  void add_row(const View& view, const Alike& alike, Group& group);
  bool round(const View& view, Plan& plan);
  void note_gangs(const Plan& plan);
  void start_waiting(const View& view, Plan& plan);

  std::string name_;
  Options options_;
  GoodputJobs book_;
  Resizer resizer_;
  RoundClock clock_;
  std::vector<std::vector<Configuration>> shapes_;  // by pool
  std::vector<std::uint64_t> seen_;                 // by JobId: pools where it had several GPUs
  WaitingHeads waiting_;
  bool is_anybody_running_ = false;

  Program program_;            // scratch
  std::vector<Group> groups_;  // scratch, by row
};

}  // namespace berth::sia

namespace berth {

[[nodiscard]] PolicyEntry sia_entry();

}  // namespace berth
