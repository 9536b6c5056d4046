// `--cpu aware`: the cores of a server go to the jobs that gain most by them. A server is looked at
// again when its set of jobs changed, when a job there came to another phase, or when beliefs about
// one of its jobs did.
//
//   ServerCores   who gets how many cores of a server
//   CorePlacer    where a job that fits one server starts: where the cores are that it wants
//   SpeedChecks   whether jobs are as fast as believed, or SpeedProbes, live: how fast they are
//   CoreMoves     now and then starved jobs move to idle cores
//
// This is what holds them together: it gives out the cores, tells the others, and lends what is
// left over to jobs that validate. Checks and moves do not tick for nothing.
//
// Deviations: a contradicted curve is scaled by the measured speed at the cores the job has, a
// neighbouring core count is not tried; remaining time is the time run so far if the policy has no
// estimates; gangs over several servers stand where the placement puts them.
#pragma once

#include <optional>
#include <vector>

#include "cpu/core_moves.h"
#include "cpu/core_placer.h"
#include "cpu/cpu_beliefs.h"
#include "cpu/cpu_tuner.h"
#include "cpu/server_cores.h"
#include "cpu/speed_checks.h"

namespace berth {

class AwareTuner final : public NodeTuner {
 public:
  explicit AwareTuner(const CpuTunerOptions& options);
  AwareTuner(const AwareTuner&) = delete;  // its parts know each other
  AwareTuner& operator=(const AwareTuner&) = delete;
  [[nodiscard]] std::string_view name() const noexcept override { return "aware"; }
  void begin(const View& view, const RateModel& believed) override;
  void begin_instant(Time now) override { placer_.begin_instant(now); }
  [[nodiscard]] bool place(const Plan& plan, JobId job, PoolId pool,
                           std::vector<Slice>& slices) override;
  void tune(const View& view, std::span<const NodeId> changed, Plan& plan) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  void share_out(Plan& plan, std::span<const NodeId> nodes);
  void lend_to_validating(Plan& plan, const CoreGrants& grants);

  CpuTunerOptions options_;
  bool knows_devices_ = false;
  CpuBeliefs beliefs_;
  ServerCores cores_;
  CorePlacer placer_;
  CoreMoves moves_;
  SpeedChecks checks_;                 // in a simulation
  std::optional<SpeedProbes> probes_;  // live
  Time next_check_ = kNever;           // by either
  std::vector<NodeId> nodes_;          // scratch
};

}  // namespace berth
