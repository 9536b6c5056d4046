// What is believed of how cores feed the jobs of a run: for each kind of job that stands alike, its
// speed by whole cores relative to having enough of them. Taken from the believed rates once and
// looked up afterwards; a class whose jobs run otherwise than believed is scaled. Where jobs are
// measured, their own speeds count.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "core/plan.h"
#include "cpu/measured_speeds.h"
#include "perf/rate_model.h"

namespace berth {

class CpuBeliefs {
 public:
  /// `measured`: what running jobs say of themselves goes before what is believed of their kind.
  void begin(const RateModel& believed, MeasuredSpeeds* measured = nullptr);
  /// More is known of it.
  void forget_measured(JobId job) { measured_tables_.erase(job); }
  [[nodiscard]] const RateModel& rates() const noexcept { return *believed_; }

  /// All cores of the largest server of the pool.
  [[nodiscard]] std::int32_t most_cores(PoolId pool) const noexcept { return most_cores_[pool]; }
  /// f at 0, 1, 2 … cores per GPU, up to all cores of the largest server of its pool, in the given
  /// phase. Valid until the next correction.
  [[nodiscard]] std::span<const double> speeds(const Plan& plan, JobId job,
                                               Phase phase = Phase::Training);
  [[nodiscard]] bool is_measured(const Plan& plan, JobId job) const {
    return !measured(job, plan.pool_of(job)).empty();
  }
  /// The same for a job that waits, as if its gang had the best place in the pool.
  [[nodiscard]] std::span<const double> speeds_in(const Plan& plan, JobId job, PoolId pool);
  /// The fewest cores per GPU with which it runs at full speed.
  [[nodiscard]] std::int32_t demand(const Plan& plan, JobId job, Phase phase = Phase::Training);
  /// The rate believed of it where it stands, with cores enough and nobody beside it.
  [[nodiscard]] double full_rate(const Plan& plan, JobId job) const;
  /// f at any number of cores, in the phase it is in.
  [[nodiscard]] double speed(const Plan& plan, JobId job, std::int32_t cores_milli) const;
  /// Jobs like this one run at `measured` of their full speed with the cores it has: from now on
  /// they are believed to, in the phase it is in. False: this class was corrected often enough, or
  /// cores are not what limits it.
  [[nodiscard]] bool correct(const Plan& plan, JobId job, double measured);

 private:
  /// Jobs of a model, in a pool and phase: what is corrected as a whole.
  using Curve = std::tuple<ProfileId, PoolId, Phase>;
  /// Jobs that stand alike.
  struct Place {
    KindId kind;
    std::int32_t gpus = 1;
    std::int32_t sub_steps = 1;
    Level level = Level::Device;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Learnt {
    double factor = 1;
    int corrections = 0;
    std::map<Place, std::vector<double>> tables;  // with the factor
  };
  /// As it stands, or as it would at the best place in the pool, with cores enough.
  [[nodiscard]] Standing standing(const Plan& plan, JobId job, Phase phase) const;
  [[nodiscard]] Standing standing_in(const Plan& plan, JobId job, PoolId pool) const;
  /// How far the cores feed the GPU: below 1 they limit it. Without the corrections.
  [[nodiscard]] double fed(Standing standing, std::int32_t cores_milli) const;
  [[nodiscard]] std::span<const double> table_of(KindId kind, const Standing& standing);
  [[nodiscard]] double factor_of(const Standing& standing) const;
  /// Empty: not known.
  [[nodiscard]] std::span<const double> measured(JobId job, PoolId pool) const;

  const RateModel* believed_ = nullptr;
  MeasuredSpeeds* measured_ = nullptr;
  Column<PoolId, std::int32_t> most_cores_;
  std::map<Curve, Learnt> curves_;
  mutable std::map<JobId, std::vector<double>> measured_tables_;  // empty: asked, not known
};

/// The fewest cores of a table of speeds that are as fast as all of them.
[[nodiscard]] std::int32_t fewest_for_full_speed(std::span<const double> speeds) noexcept;

}  // namespace berth
