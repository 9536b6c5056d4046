// One simulated run behind one call: a trace, a cluster and a RunSpec in, the run's data out. Trace
// and cluster are only read, so any number of runs may go on at once, each on its own thread. Knows
// nothing of command lines, files or terminals.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "core/engine.h"
#include "metrics/run_data.h"
#include "perf/predict/past.h"
#include "policies/registry.h"
#include "sim/outage_generator.h"
#include "sim/sim_executor.h"

namespace berth {

/// How much of a run is written down beside its totals.
enum class Recording : unsigned char {
  None,        // no journal at all: figures that need one are absent (for benchmarks)
  Totals,      // exact totals
  Everything,  // actions, intervals and timeline too
};

struct RunSpec {
  std::string policy = "fifo";
  Settings settings = {};
  std::string label = {};                 // how people call the run; empty: the policy's name
  std::string placement = "best-fit";     // a name, skew:LIMIT or topology:interference
  std::string estimator = {};             // empty: the policy's own
  std::shared_ptr<const Past> past = {};  // what estimators know at time zero; empty: nothing
  std::uint64_t seed = 1;                 // of estimates, random placements and random outages
  SimOptions sim = {};
  Effects effects = {};  // what makes jobs faster or slower than their trace says
  std::shared_ptr<const ProfileSet> profiles = {};  // empty: the built-in catalogue
  double profile_error = 0;  // deviation of what the scheduler believes of profiles
  std::string cpu = "off";  // who shares out the cores of a server: off|shared|role|bind|aware[:…]
  std::string power = "off";          // who switches nodes off and on beside the policy: off|ces
  RandomOutages random_outages = {};  // beside those in `sim`
  Duration checkpoint_interval{};
  std::optional<Duration> checkpoint_cost = {};  // instead: intervals by size, with random outages
  Recording recording = Recording::Totals;
};

using ProgressFn = std::function<void(const Progress&)>;

/// Everything about the spec that can be wrong without running it; names, keys and values.
[[nodiscard]] Result<void> check_spec(const Trace& trace, const Cluster& cluster,
                                      const RunSpec& spec);
/// Whether some decision of the run rests on what jobs before it did.
[[nodiscard]] bool learns_run_times(const RunSpec& spec);
/// Runs to the end. An error is a bad spec, or jobs that could never start.
[[nodiscard]] Result<RunData> run_one(const Trace& trace, const Cluster& cluster,
                                      const RunSpec& spec, const ProgressFn& progress = {});

}  // namespace berth
