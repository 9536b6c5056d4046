// From a request to its row of the job table: its shape, what is known of its model, the device
// type its run time stands for, its kind. Done for a whole trace before the run, or job by job as
// they come where nobody knows the jobs of tomorrow.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include "core/feasibility.h"
#include "core/job_table.h"
#include "perf/rate_model.h"

namespace berth {

class Intake {
 public:
  /// `empty` is the cluster with nothing on it; it must stay so for as long as jobs come.
  Intake(const Trace& trace, const ClusterState& empty, Placement& placement, SideLimits limits,
         const RateModel& believed);
  void take(JobId job, JobTable& jobs, ShapeTable& shapes, KindTable& kinds);
  /// Why no state of the cluster could ever hold a job that was taken; empty if some state can.
  [[nodiscard]] std::string why_never(JobId job, const JobTable& jobs,
                                      const ShapeTable& shapes) const {
    return shapes_.why_never(trace_->jobs[job.value], jobs.shape[job], shapes);
  }
  /// Jobs so far of no model that the profiles know.
  [[nodiscard]] std::size_t without_profile() const noexcept { return without_profile_; }

 private:
  const Trace* trace_;
  const RateModel* believed_;
  bool one_pool_;
  ShapeMaker shapes_;
  std::unordered_map<std::uint32_t, std::optional<ProfileId>> by_model_;  // lookup only
  std::size_t without_profile_ = 0;
};

}  // namespace berth
