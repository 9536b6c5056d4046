// Whether jobs run as fast with their cores as is believed.
//
// SpeedChecks, in a simulation: speeds are constant between changes, so a job is watched from a
// change on until a sample agrees with the belief within 15 %; three that do not correct the curve
// of its class.
//
// SpeedProbes, live: jobs that report iterations are bound to a few core counts in turn, within
// what they have and nobody holds, and to their sweet point once their curve is known.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "cpu/server_cores.h"

namespace berth {

class SpeedChecks {
 public:
  /// Of a job whose cores were given anew.
  void watch(JobId job) { watched_[job] = 0; }
  [[nodiscard]] bool empty() const noexcept { return watched_.empty(); }
  void forget_stopped(const View& view);
  /// Takes a sample of each watched job. True: beliefs were corrected.
  [[nodiscard]] bool take_samples(const Plan& plan, Time now, CpuBeliefs& beliefs);

 private:
  std::map<JobId, int> watched_;  // samples so far that contradict the belief
};

class SpeedProbes {
 public:
  /// `measured` must outlive this.
  explicit SpeedProbes(MeasuredSpeeds& measured) : measured_(measured) {}
  [[nodiscard]] bool empty() const noexcept { return probing_.empty(); }
  void forget_stopped(const View& view);
  /// Whose servers are to be shared out again: those of jobs that said something new, and if it is
  /// time those of jobs whose measurement takes long.
  enum class Look : std::uint8_t { AtNews, AtAll };
  void collect(const Plan& plan, Look look, CpuBeliefs& beliefs, std::vector<NodeId>& nodes);
  /// Binds jobs that were just given cores to those at which they should be measured next.
  void bind(Plan& plan, const CoreGrants& grants, ServerCores& cores);

 private:
  MeasuredSpeeds& measured_;
  std::set<JobId> probing_;  // bound to cores at which they are measured
  std::vector<JobId> news_;  // scratch
};

}  // namespace berth
