// Everything the reports tell about one run, detached from engine, trace and cluster: made from an
// engine that has run (analyse) or read back from a directory (report/read_run.h). Large parts
// (jobs, actions, intervals) can be dropped once written, so that a comparison of many runs keeps
// only what it draws.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "metrics/distribution.h"
#include "metrics/outcomes.h"
#include "metrics/recorder.h"
#include "metrics/summary.h"

namespace berth {

/// What the engine does not know about its own run.
struct RunLabels {
  std::string policy;
  std::string label;  // empty: the policy's name
  std::string placement;
  std::string estimator;
  std::uint64_t seed = 1;
  double wall_seconds = 0;
  bool profiles_matter = false;  // some rate or decision of the run came from a profile
  std::optional<double> forecast_error = {};  // of the power manager's demand, if it makes any
};

struct TraceFacts {
  std::string name;
  std::size_t jobs = 0;
  double span_seconds = 0;  // last submit - first submit
  double gpu_seconds = 0;   // sum of gpus x duration
};
struct NodeFacts {
  std::string name;
  std::int32_t gpus = 0;
  std::string type;
  std::string rack;
};
struct ClusterFacts {
  std::string name;
  std::int64_t gpus = 0;
  std::vector<std::pair<std::string, std::int64_t>> types;  // devices by type
  std::vector<NodeFacts> nodes;
};

struct GroupRow {  // jobs that ran to an end, by size or by user
  std::string label;
  std::size_t jobs = 0;
  double avg_jct = 0, median_jct = 0, p95_jct = 0, avg_queue_time = 0;
  double gpu_hours = 0;  // held
  std::uint64_t preemptions = 0;
};

/// One device busy with one job: what a Gantt chart draws.
struct GanttBar {
  std::uint32_t lane = 0;  // running number of the device over all nodes in order
  std::uint32_t job = 0;   // row of RunData::gantt.jobs
  Time start;
  Time end;
  IntervalKind kind = IntervalKind::Run;
};
struct Gantt {
  struct Job {
    std::string id;
    std::int32_t gpus = 0;
    std::string user;
  };
  std::vector<Job> jobs;
  std::vector<GanttBar> bars;  // by lane, then start
  std::uint64_t total = 0;     // bars there would be without the limit
};
inline constexpr std::size_t kMaxGanttBars = 120'000;

struct RunData {
  Summary summary;
  std::vector<Summary> seeds;  // the same run under several seeds; empty for a single one
  TraceFacts trace;
  ClusterFacts cluster;

  Cdf jct, queue_time, slowdown, ftf;
  std::vector<GroupRow> by_size, by_user;
  std::map<std::uint32_t, std::size_t> preemption_histogram;
  std::vector<TimelinePoint> timeline;
  std::optional<Gantt> gantt;

  Outcomes jobs;
  std::vector<std::pair<std::string, std::string>> rejected;  // job, reason; the first 100
  std::optional<ActionLog> actions;

  /// Forgets jobs and actions; what is drawn stays.
  void drop_rows();
};

/// Everything about a run that has ended. Takes the recorder's logs; without one, what needs it is
/// absent.
[[nodiscard]] RunData analyse(const Engine& engine, const Trace& trace, const Cluster& cluster,
                              Recorder* recorder, const RunLabels& labels);
/// The numbers alone.
[[nodiscard]] Summary summarise(const Engine& engine, const Trace& trace, const Cluster& cluster,
                                const Recorder* recorder, const RunLabels& labels);

/// The run stands for several seeds: its summary becomes their mean (texts of the first), `seeds`
/// holds all.
void combine_seeds(RunData& run, std::vector<Summary> seeds);
/// The 95 % interval of a metric over the run's seeds; nothing for fewer than two seeds that have
/// it.
[[nodiscard]] std::optional<MeanInterval> confidence_of(const RunData& run, const Metric& metric);

}  // namespace berth
