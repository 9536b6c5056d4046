// Sia (SOSP 2023): goodput on several device types. Every `interval` each job gets one of a few
// configurations (type, servers, GPUs) or none, by an integer program over all jobs (assignment.h):
// costs fall with the job's goodput, relative to its worst configuration, and moves are discounted
// by what a restart costs.
//
// Jobs are adaptive (limits of their batch known), strong-scaling (batch fixed, GPUs free) or rigid
// (GPUs fixed, type free); the trace and the profile say which.
//
// Assumes: checkpoints; one-GPU goodput known for each type. Deviations: equal jobs are one row,
// restart factors told apart in twentieths; jobs that are split over several GPUs are not known to
// traces, so their unit is 1; a job that arrives between two rounds starts at once
// (goodput_policy.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/goodput/goodput_policy.h"
#include "policies/policy_entry.h"
#include "policies/sia/assignment.h"
#include "policies/sia/configurations.h"

namespace berth::sia {

/// What is known of a gang on a device type where the job never ran as one.
enum class Knowledge : std::uint8_t { All, Bootstrapped };

struct Options {
  goodput::Options base;
  CostRule costs;
  SolveLimits limits;
  Knowledge knowledge = Knowledge::All;
};

class Sia final : public goodput::GoodputPolicy {
 public:
  Sia(std::string name, const Options& options)
      : GoodputPolicy(std::move(name), options.base), options_(options) {}
  void begin(const View& view) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  /// Jobs that differ in nothing the program sees.
  struct Alike {
    const goodput::Table* table;  // in the first pool: stands for kind and noise
    std::int32_t most;            // GPUs it may grow to
    std::int32_t held;            // GPUs, and where
    PoolId pool;
    std::int32_t restart;  // factor in twentieths
    std::uint64_t seen;    // as seen_; only if goodput is bootstrapped
    friend auto operator<=>(const Alike&, const Alike&) = default;
  };
  struct Group {
    Alike alike;
    std::vector<JobId> jobs;
    std::vector<PoolId> pools;  // by option
  };

  bool hold_round(Pass& pass) override;
  void build_program(const View& view, const Plan& plan);
  [[nodiscard]] Alike key_of(const View& view, const Plan& plan, JobId job);
  void add_row(const View& view, Group& group);
  [[nodiscard]] double goodput_of(const View& view, JobId job, PoolId pool, std::int32_t gpus);
  [[nodiscard]] std::vector<goodput::SizeWish> wishes(const Plan& plan) const;
  [[nodiscard]] bool has_seen(JobId job, PoolId pool) const {
    return ((seen_[job] >> pool.value) & 1U) != 0;
  }
  void note_gangs(const Plan& plan);

  Options options_;
  Column<PoolId, std::vector<Configuration>> shapes_;
  Column<JobId, std::uint64_t> seen_;  // bits: pools where it had several GPUs

  Program program_;            // scratch
  std::vector<Group> groups_;  // scratch, by row
};

}  // namespace berth::sia

namespace berth {

[[nodiscard]] PolicyEntry sia_entry();

}  // namespace berth
