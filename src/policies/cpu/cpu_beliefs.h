// What is believed of how cores feed the jobs of a run: for each kind of job that stands alike, its
// speed by whole cores relative to having enough of them. Taken from the believed rates once and
// looked up afterwards; a class whose jobs run otherwise than believed is scaled.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/view.h"
#include "perf/rate_model.h"

namespace berth {

class CpuBeliefs {
 public:
  void begin(const RateModel& believed);

  /// f at 0, 1, 2 … cores per GPU, up to all cores of the largest server of its pool. Valid until
  /// the next correction.
  [[nodiscard]] std::span<const double> speeds(const View& view, const Plan& plan, JobId job);
  /// The fewest cores per GPU with which it runs at full speed.
  [[nodiscard]] std::int32_t demand(const View& view, const Plan& plan, JobId job);
  /// The rate believed of it where it stands, with cores enough and nobody beside it.
  [[nodiscard]] double full_rate(const View& view, const Plan& plan, JobId job) const;
  /// f at any number of cores.
  [[nodiscard]] double speed(const View& view, const Plan& plan, JobId job,
                             std::int32_t cores_milli) const;
  /// Jobs like this one run at `measured` of their full speed with the cores it has: from now on
  /// they are believed to. False: this class was corrected often enough, or cores are not what
  /// limits it.
  [[nodiscard]] bool correct(const View& view, const Plan& plan, JobId job, double measured);

 private:
  struct Kind {
    ProfileId profile;
    PoolId pool;
    std::int32_t gpus = 1;
    std::int32_t batch = 0;
    std::int32_t sub_steps = 1;
    Level level = Level::Device;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  [[nodiscard]] Kind kind_of(const View& view, const Plan& plan, JobId job) const;
  [[nodiscard]] Standing standing(const Kind& kind, std::int32_t cores_milli) const;
  /// How far the cores feed the GPU: below 1 they limit it. Without the corrections.
  [[nodiscard]] double fed(const Kind& kind, std::int32_t cores_milli) const;
  struct Scale {
    double factor = 1;
    int corrections = 0;
  };
  [[nodiscard]] double scale_of(const Kind& kind) const;

  const RateModel* believed_ = nullptr;
  std::vector<std::int32_t> most_cores_;  // by pool
  std::map<Kind, std::vector<double>> tables_;
  std::map<std::pair<ProfileId, PoolId>, Scale> scales_;
};

}  // namespace berth
