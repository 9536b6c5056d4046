// Who shares out the cores of a server, beside any policy (`--cpu`):
//
//   shared  nobody: workers take what they want, and in proportion to it once cores run short
//   role    fixed by role: 4 cores per GPU worker, 3 for the parameter server of a gang
//   bind    in proportion to GPUs
//   aware   by the curves believed of each model (perf/cpu_allocation.h), corrected where measured
//           speeds contradict them; now and then a starved job moves to a server with idle cores
//
// A gang over several servers has the cores of its poorest worker everywhere. Servers that do not
// say how many cores they have are left alone.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "core/node_tuner.h"
#include "core/policy.h"
#include "perf/cpu_allocation.h"

namespace berth {

struct CpuTunerOptions {
  CpuObjective objective = CpuObjective::FairFloor;
  CpuLeftover leftover = CpuLeftover::Keep;
  Duration check_interval = std::chrono::seconds{30};  // of measured against believed speeds
  Duration reschedule_interval{};                      // zero: jobs never move for cores
  Duration move_cost = std::chrono::seconds{30};       // a moved job stands still so long
  double moved_share = 0.01;                           // of the running jobs, at most, a round
};

/// What suits the policy: with one that keeps its own books of servers (it shares devices) nobody
/// moves for cores, beside any other every 10 min.
[[nodiscard]] CpuTunerOptions cpu_options_for(const Policy& policy);

/// `mode` as above; the options are those of `aware`.
[[nodiscard]] Result<std::unique_ptr<NodeTuner>> make_cpu_tuner(
    std::string_view mode, const CpuTunerOptions& options = {});

/// sum, maxmin or fair-floor.
[[nodiscard]] Result<CpuObjective> parse_cpu_objective(std::string_view text);

}  // namespace berth
