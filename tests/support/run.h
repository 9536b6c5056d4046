// Runs a small simulation in a test and hands back what happened: finish times by job, preemptions,
// the digest. Jobs are written in seconds; ids are "1", "2", … in the order given unless named.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine.h"
#include "placements/placements.h"
#include "policies/registry.h"
#include "sim/sim_executor.h"
#include "support/unkind_executor.h"

namespace berth::test {

struct JobSpec {
  double submit = 0;
  int gpus = 1;
  double duration = 1;
  std::string user = {};
  std::string queue = {};
  std::string model = {};
  int cpus = 0;
  int priority = 0;
  double estimate = 0;
  std::string type = {};
  int batch = 0;  // of the whole gang
  int gpu_milli = 1000;
  int gpus_max = 0;  // 0 = not elastic
  JobKind kind = JobKind::Training;
  double deadline = 0;  // 0 = none
  bool soft_deadline = false;
  std::string group = {};
  double weight = 1;
  std::string study = {};
  FailureKind failure = FailureKind::Unknown;  // of its attempts; otherwise it completes
  int failed_attempts = 0;                     // then it completes; 0 = never
  bool preemptible = true;
};

/// An observer that may look at the engine while it runs.
class Observer : public RunObserver {
 public:
  const Engine* engine = nullptr;
  const Trace* trace = nullptr;
};

struct Scenario {
  std::string policy = "fifo";
  Settings settings = {};
  std::string cluster = "1x4";
  std::string placement = "count";
  std::string estimator = "oracle";
  std::vector<JobSpec> jobs;
  SimOptions sim = {};  // its truth is made from the next two if the policy or an effect needs one
  ProfileSet profiles = {};
  Effects effects = {};
  NodeTuner* tuner = nullptr;
  PowerManager* power = nullptr;
  std::function<void(Cluster&)> edit_cluster = {};
  std::uint64_t seed = 1;
  int node_cpus = 0;             // cores of every node; 0 = not limited
  bool open = false;             // jobs are unknown before they arrive
  std::uint64_t shuffle = 0;     // reads the jobs in another order; nothing may depend on it
  std::vector<Time> asked = {};  // when somebody looks although nothing happened; rising
  /// Then each look is an event of the last job, which must come after all of them.
  bool looks_are_events = false;
  /// Then nobody wakes in time, and training code says what it likes.
  std::optional<Lateness> lateness = {};
};

struct Outcome {
  std::vector<double> start;  // first start, by job in the given order; -1 = never
  std::vector<double> finish;
  std::vector<int> preemptions;
  std::vector<int> migrations;
  std::vector<int> suspensions;
  std::vector<JobState> state;
  std::vector<double> held;
  std::vector<double> overhead;
  std::vector<double> work;
  int total_preemptions = 0;
  double sum_jct = 0;
  double makespan = 0;
  std::string digest;
  std::vector<std::string> rejected;
};

/// The simulated world knows the rates if the policy shares devices or some effect beyond that is
/// on.
[[nodiscard]] SimOptions with_truth(SimOptions sim, const Policy& policy, const RateModel& rates);

[[nodiscard]] Trace make_trace(const std::vector<JobSpec>& jobs, std::uint64_t shuffle = 0);
/// Runs to the end; fails the test if the engine reports an error.
[[nodiscard]] Outcome run(const Scenario& scenario, Observer* observer = nullptr);
[[nodiscard]] Outcome run_with(const Scenario& scenario, Policy& policy,
                               Observer* observer = nullptr);

/// The six-job trace of the baselines.
[[nodiscard]] std::vector<JobSpec> t6();

}  // namespace berth::test
