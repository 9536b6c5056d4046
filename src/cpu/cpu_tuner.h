// Who shares out the cores of a server, beside any policy (`--cpu`):
//
//   shared  nobody: workers take what they want, and in proportion to it once cores run short
//   role    fixed by role: 4 cores per GPU worker, 3 for the parameter server of a gang
//   bind    in proportion to GPUs
//   aware   by the curves believed of each model (perf/cpu_allocation.h), corrected where measured
//           speeds contradict them; jobs start on servers with the cores they want, and now and
//           then a starved one moves to idle cores
//
// A gang over several servers has the cores of its poorest worker everywhere. Servers that do not
// say how many cores they have are left alone.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/params.h"
#include "base/result.h"
#include "base/time.h"
#include "core/node_tuner.h"
#include "core/policy.h"
#include "cpu/measured_speeds.h"
#include "perf/cpu_allocation.h"

namespace berth {

struct CpuTunerOptions {
  CpuObjective objective = CpuObjective::FairFloor;
  CpuLeftover leftover = CpuLeftover::Keep;
  bool place = true;                                   // jobs start where their cores are
  Duration wait{};                                     // for them, at most; 60 s is the limit
  bool lend = true;                                    // left over cores to jobs that validate
  Duration check_interval = std::chrono::seconds{30};  // of measured against believed speeds
  Duration reschedule_interval{};                      // zero: jobs never move for cores
  Duration move_cost = std::chrono::seconds{30};       // a moved job stands still so long
  double moved_share = 0.01;                           // of the running jobs, at most, a round
  MeasuredSpeeds* measured = nullptr;                  // live: what jobs say of themselves
};

/// What suits the policy: beside one that tracks the jobs of its servers itself (it shares devices)
/// nobody waits or moves for cores, beside any other for 60 s and every 10 min.
[[nodiscard]] CpuTunerOptions cpu_options_for(const Policy& policy);

/// The options of `aware` as they are written on the command line.
[[nodiscard]] std::vector<ParamSpec> aware_params();

/// `text` is a mode, `aware` with options if wanted: "aware:objective=sum,leftover=deal". What it
/// leaves out suits the policy. `measured` is for `aware`, see measured_speeds.h.
[[nodiscard]] Result<std::unique_ptr<NodeTuner>> make_cpu_tuner(std::string_view text,
                                                                const Policy& policy,
                                                                MeasuredSpeeds* measured = nullptr);
/// `mode` as above; the options are those of `aware`.
[[nodiscard]] Result<std::unique_ptr<NodeTuner>> make_cpu_tuner(
    std::string_view mode, const CpuTunerOptions& options = {});

}  // namespace berth
