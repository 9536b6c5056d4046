// One simulated run: make_run() checks a trace, a cluster and a RunSpec, Run::run() gives the run's
// data. Trace and cluster are only read, so any number of runs may go on at once, each on its own
// thread. Knows nothing of command lines, files or terminals.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/engine.h"
#include "metrics/run_data.h"
#include "perf/predict/past.h"
#include "run/parts.h"
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

/// A run that is known to be possible: names, keys and values of its spec are parsed, its outages
/// drawn. Trace and cluster must outlive it.
class Run {
 public:
  /// Runs to the end; once. An error: some jobs could never start.
  [[nodiscard]] Result<RunData> run(const ProgressFn& progress = {});
  /// Whether some decision rests on what jobs before the run did.
  [[nodiscard]] bool learns_run_times() const {
    return includes(parts_.policy->traits().needs, Need::RunTime) && parts_.estimator->learns();
  }

 private:
  friend Result<Run> make_run(const Trace& trace, const Cluster& cluster, RunSpec spec);
  Run(const Trace& trace, const Cluster& cluster, RunSpec spec, SchedulerParts parts)
      : trace_(&trace), cluster_(&cluster), spec_(std::move(spec)), parts_(std::move(parts)) {}
  [[nodiscard]] std::optional<CheckpointRule> checkpoints() const;
  [[nodiscard]] bool profiles_matter(const Effects& effects) const;

  const Trace* trace_;
  const Cluster* cluster_;
  RunSpec spec_;  // with the outages that were drawn
  SchedulerParts parts_;
  bool has_run_ = false;
};

/// Everything that can be wrong with the spec is said, all of it at once.
[[nodiscard]] Result<Run> make_run(const Trace& trace, const Cluster& cluster, RunSpec spec);

}  // namespace berth
