// From a finished engine to the summary. One walk over the jobs collects all sums and values; the
// describe_ functions turn them into metrics. A metric that does not apply stays empty: zero would
// be a statement.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/portable_math.h"
#include "metrics/derive.h"
#include "metrics/run_data.h"

namespace berth {

namespace {

/// Everything that is summed or sorted over jobs, in one walk.
struct JobTotals {
  std::vector<double> jct, queue, run, response, slowdown, bounded, ftf, rho, speed;
  // Ordered, because its sum of floats must not depend on a hash.
  std::map<NameId, std::pair<double, std::size_t>> user_speed;  // sum, jobs
  double work_gpu_seconds = 0, completed_gpu_seconds = 0, held_gpu_seconds = 0,
         overhead_gpu_seconds = 0;
  std::uint64_t preemptions = 0, migrations = 0, suspensions = 0, lost = 0, retries = 0;
  double wasted_gpu_seconds = 0;
  std::size_t completed = 0, failed = 0, cancelled = 0, rejected = 0, unfinished = 0, deadlines = 0,
              misses = 0, soft_misses = 0, unfair = 0;
  std::vector<double> tardiness;
  std::optional<Time> first_submit, last_finish;
};

// Everything that is not over counts as unfinished; after a run to the end that is nothing.
void count_state(JobTotals& totals, JobState state) {
  switch (state) {
    case JobState::Completed: ++totals.completed; break;
    case JobState::Failed: ++totals.failed; break;
    case JobState::Cancelled: ++totals.cancelled; break;
    case JobState::Rejected: ++totals.rejected; break;
    default: ++totals.unfinished; break;
  }
}

void add_ended(JobTotals& totals, const JobOutcome& job, double cluster_gpus) {
  totals.last_finish = std::max(totals.last_finish.value_or(*job.finish), *job.finish);
  totals.jct.push_back(to_seconds(job.jct()));
  totals.queue.push_back(to_seconds(job.queue_time()));
  totals.run.push_back(to_seconds(job.run_time));
  // A job that ran to an end has a start: ran_to_an_end() asks for both.
  totals.response.push_back(to_seconds(*job.start - job.submit));
  totals.bounded.push_back(job.bounded_slowdown());
  const auto slowdown = job.slowdown();
  const auto ftf = job.ftf(cluster_gpus);
  if (!slowdown || !ftf) return;  // no work: nothing to compare with
  totals.slowdown.push_back(*slowdown);
  totals.ftf.push_back(*ftf);
  totals.rho.push_back(*job.rho());
  totals.unfair += *ftf > 1 ? 1U : 0U;
  // A job of no length at all was served at full speed.
  const double speed = *slowdown > 0 ? 1 / *slowdown : 1;
  totals.speed.push_back(speed);
  auto& [sum, jobs] = totals.user_speed[job.user];
  sum += speed;
  ++jobs;
}

JobTotals total_over(const Outcomes& jobs, double cluster_gpus) {
  JobTotals totals;
  for (const JobOutcome& job : jobs.rows) {
    const double gpus = job.gpus;
    count_state(totals, job.state);
    totals.first_submit = std::min(totals.first_submit.value_or(job.submit), job.submit);
    totals.work_gpu_seconds += gpus * to_seconds(job.work);
    totals.held_gpu_seconds += to_seconds(job.service);
    totals.overhead_gpu_seconds += gpus * to_seconds(job.overhead);
    if (job.state == JobState::Completed)
      totals.completed_gpu_seconds += gpus * to_seconds(job.work);
    totals.preemptions += job.preemptions;
    totals.migrations += job.migrations;
    totals.suspensions += job.suspensions;
    totals.lost += job.lost_attempts;
    totals.retries += job.retries;
    totals.wasted_gpu_seconds += to_seconds(job.wasted);
    totals.deadlines += job.deadline ? 1U : 0U;
    totals.misses += job.missed_deadline() ? 1U : 0U;
    totals.soft_misses += job.missed_deadline() && job.soft_deadline ? 1U : 0U;
    if (job.deadline && job.ran_to_an_end())
      totals.tardiness.push_back(std::max(0.0, to_seconds(*job.finish - *job.deadline)));
    if (job.ran_to_an_end()) add_ended(totals, job, cluster_gpus);
  }
  return totals;
}

void describe_times(Summary& summary, JobTotals& totals) {
  for (auto* values : {&totals.jct, &totals.queue, &totals.run, &totals.response, &totals.slowdown,
                       &totals.bounded, &totals.ftf, &totals.rho}) {
    std::ranges::sort(*values);
  }
  summary.avg_jct = mean(totals.jct);
  summary.median_jct = quantile(totals.jct, 0.5);
  summary.p95_jct = quantile(totals.jct, 0.95);
  summary.p99_jct = quantile(totals.jct, 0.99);
  summary.max_jct = quantile(totals.jct, 1);
  summary.avg_queue_time = mean(totals.queue);
  summary.median_queue_time = quantile(totals.queue, 0.5);
  summary.p95_queue_time = quantile(totals.queue, 0.95);
  summary.p99_queue_time = quantile(totals.queue, 0.99);
  summary.max_queue_time = quantile(totals.queue, 1);
  summary.avg_run_time = mean(totals.run);
  summary.avg_response_time = mean(totals.response);
  summary.p95_response_time = quantile(totals.response, 0.95);
  summary.avg_slowdown = mean(totals.slowdown);
  summary.median_slowdown = quantile(totals.slowdown, 0.5);
  summary.p95_slowdown = quantile(totals.slowdown, 0.95);
  summary.max_slowdown = quantile(totals.slowdown, 1);
  summary.avg_bounded_slowdown = mean(totals.bounded);
  summary.median_bounded_slowdown = quantile(totals.bounded, 0.5);
  summary.p95_bounded_slowdown = quantile(totals.bounded, 0.95);
}

void describe_fairness(Summary& summary, const JobTotals& totals) {
  summary.avg_ftf = mean(totals.ftf);
  summary.p95_ftf = quantile(totals.ftf, 0.95);
  summary.max_ftf = quantile(totals.ftf, 1);
  if (!totals.ftf.empty())
    summary.unfair_share =
        static_cast<double>(totals.unfair) / static_cast<double>(totals.ftf.size());
  summary.avg_rho = mean(totals.rho);
  summary.p95_rho = quantile(totals.rho, 0.95);
  summary.max_rho = quantile(totals.rho, 1);
  summary.jain = jain_index(totals.speed);
  std::vector<double> users;
  for (const auto& [user, entry] : totals.user_speed)
    users.push_back(entry.first / static_cast<double>(entry.second));
  if (users.size() > 1) summary.jain_users = jain_index(users);
}

void describe_counts(Summary& summary, const JobTotals& totals) {
  summary.finished = static_cast<double>(totals.jct.size());
  summary.completed = static_cast<double>(totals.completed);
  summary.failed = static_cast<double>(totals.failed);
  summary.cancelled = static_cast<double>(totals.cancelled);
  summary.rejected = static_cast<double>(totals.rejected);
  summary.unfinished = static_cast<double>(totals.unfinished);
  summary.preemptions = static_cast<double>(totals.preemptions);
  summary.migrations = static_cast<double>(totals.migrations);
  summary.suspensions = static_cast<double>(totals.suspensions);
  summary.lost_attempts = static_cast<double>(totals.lost);
  summary.retries = static_cast<double>(totals.retries);
  summary.wasted_gpu_hours = totals.wasted_gpu_seconds / 3600;
  summary.deadline_jobs = static_cast<double>(totals.deadlines);
  if (totals.deadlines > 0) {
    summary.deadline_misses = static_cast<double>(totals.misses);
    summary.strict_deadline_misses = static_cast<double>(totals.misses - totals.soft_misses);
    summary.soft_deadline_misses = static_cast<double>(totals.soft_misses);
    summary.avg_tardiness = mean(totals.tardiness);
  }
  summary.gpu_hours = totals.held_gpu_seconds / 3600;
  summary.overhead_gpu_hours = totals.overhead_gpu_seconds / 3600;
}

void describe_use(Summary& summary, const JobTotals& totals, double cluster_gpus) {
  if (!totals.last_finish) return;
  const double makespan = to_seconds(*totals.last_finish - *totals.first_submit);
  summary.makespan = makespan;
  if (totals.held_gpu_seconds > 0)
    summary.goodput = totals.completed_gpu_seconds / totals.held_gpu_seconds;
  if (makespan <= 0) return;
  summary.jobs_per_hour = static_cast<double>(totals.jct.size()) * 3600 / makespan;
  if (cluster_gpus <= 0) return;
  summary.gpu_utilization = totals.work_gpu_seconds / (cluster_gpus * makespan);
  summary.gpu_allocation = totals.held_gpu_seconds / (cluster_gpus * makespan);
}

// Integrals are exact until here.
double seconds(Int128 microseconds) { return static_cast<double>(microseconds) * 1e-6; }

/// GPU-seconds held by pool. Without a recorder they are known only where jobs have no choice of
/// pool.
std::optional<std::vector<double>> held_by_pool(const Engine& engine, const Outcomes& jobs,
                                                const Recorder* recorder) {
  std::vector<double> held(engine.cluster().pools());
  if (recorder != nullptr) {
    std::ranges::transform(recorder->integrals().held, held.begin(), seconds);
    return held;
  }
  for (std::uint32_t i = 0; i < jobs.rows.size(); ++i) {
    const JobOutcome& job = jobs.rows[i];
    if (job.run_time <= Duration::zero()) continue;
    const Shape& shape = engine.shapes()[engine.jobs().shape[JobId{i}]];
    // One such job is enough to leave energy and cost out: a guess would look like a measurement.
    if (shape.pools.size() != 1) return std::nullopt;
    held[shape.pools.front().value] += to_seconds(job.run_time) * job.gpus;
  }
  return held;
}

struct Joules {
  double busy = 0;
  double idle = 0;  // if all nodes were always on
};

/// A device draws its busy power while held, a node in proportion to its devices held.
/// Servers of a pool are averaged: which of them a job is on does not change the sum of devices
/// held.
Joules energy_always_on(const Cluster& cluster, const std::vector<double>& held, double makespan) {
  Joules joules;
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i) {
    const double devices = static_cast<double>(cluster.total_gpus(PoolId{i}));
    double node_idle_watts = 0;
    double node_extra_watts = 0;  // all nodes of the pool busy
    for (const Node& node : cluster.nodes) {
      if (node.pool != PoolId{i}) continue;
      node_idle_watts += node.idle_watts;
      node_extra_watts += std::max(0.0, node.busy_watts - node.idle_watts);
    }
    const double idle = std::max(0.0, devices * makespan - held[i]);
    joules.busy += held[i] * cluster.pools[i].busy_watts;
    joules.idle += idle * cluster.pools[i].idle_watts + node_idle_watts * makespan;
    if (devices > 0) joules.busy += held[i] * node_extra_watts / devices;
  }
  return joules;
}

/// What the held devices cost by the hour.
double cost_of(const Cluster& cluster, const std::vector<double>& held) {
  double dollars = 0;
  for (std::size_t i = 0; i < held.size(); ++i)
    dollars += held[i] / 3600 * price_of(cluster.pools[i]);
  return dollars;
}

void describe_energy(Summary& summary, const Joules& always_on, const Recorder* recorder) {
  constexpr double kJoulesPerKwh = 3.6e6;
  constexpr double kSecondsPerDay = 86'400;
  double saved = 0;
  double boot = 0;
  if (recorder != nullptr && recorder->integrals().power_offs > 0) {
    const Integrals& integrals = recorder->integrals();
    saved = seconds(integrals.off_milliwatts) / 1000;
    boot = seconds(integrals.boot_milliwatts) / 1000;
    if (*summary.makespan > 0)
      summary.avg_nodes_off = seconds(integrals.off_nodes) / *summary.makespan;
    summary.power_ons = static_cast<double>(integrals.power_ons);
    summary.boot_delayed_jobs = static_cast<double>(integrals.boot_delayed);
    if (*summary.makespan > 0)
      summary.wake_ups_per_day =
          static_cast<double>(integrals.wake_ups) * kSecondsPerDay / *summary.makespan;
    if (integrals.wake_ups > 0)
      summary.nodes_per_wake_up =
          static_cast<double>(integrals.power_ons) / static_cast<double>(integrals.wake_ups);
    summary.energy_saved_kwh = saved / kJoulesPerKwh;
    summary.energy_boot_kwh = boot / kJoulesPerKwh;
  }
  summary.energy_busy_kwh = always_on.busy / kJoulesPerKwh;
  // All nodes on is the reference: what was off is subtracted, what booted is listed apart.
  summary.energy_idle_kwh = (always_on.idle - saved - boot) / kJoulesPerKwh;
  summary.energy_kwh = (always_on.busy + always_on.idle - saved) / kJoulesPerKwh;
}

// Metrics that need the course of the run, not only its end.
void describe_recorded(Summary& summary, const Recorder& recorder, double cluster_gpus,
                       std::size_t cluster_nodes) {
  const Integrals& integrals = recorder.integrals();
  summary.max_queue_length = static_cast<double>(integrals.max_queue);
  if (integrals.free > 0) {
    summary.fragmentation =
        static_cast<double>(integrals.stranded) / static_cast<double>(integrals.free);
  }
  if (!summary.makespan || *summary.makespan <= 0) return;
  summary.avg_queue_length = seconds(integrals.queue) / *summary.makespan;
  summary.avg_running = seconds(integrals.running) / *summary.makespan;
  if (integrals.occupied_nodes > 0) {
    const double nodes = static_cast<double>(cluster_nodes) * *summary.makespan;
    const double off = seconds(integrals.off_nodes);
    summary.node_utilization = seconds(integrals.occupied_nodes) / nodes;
    if (integrals.power_offs > 0 && nodes > off)
      summary.node_utilization_on = seconds(integrals.occupied_nodes) / (nodes - off);
  }
  if (cluster_gpus > 0) {
    if (integrals.shares_devices)  // a device is held once, however many share it
      summary.gpu_allocation = seconds(integrals.busy) / (cluster_gpus * *summary.makespan);
    summary.idle_while_queued =
        seconds(integrals.idle_while_queued) / (cluster_gpus * *summary.makespan);
  }
}

std::optional<double> estimate_error(const Engine& engine, const Outcomes& jobs) {
  std::vector<double> errors;
  for (std::uint32_t i = 0; i < engine.estimates().size(); ++i) {
    const double believed = to_seconds(engine.estimates()[JobId{i}]);
    const double truth = to_seconds(jobs.rows[i].duration);
    if (jobs.rows[i].ran_to_an_end() && believed > 0 && truth > 0)
      errors.push_back(std::abs(portable_log(believed / truth)));
  }
  return mean(errors);
}

Summary summary_of(const Engine& engine, const Outcomes& jobs, const Cluster& cluster,
                   const Recorder* recorder, const RunLabels& labels) {
  const auto gpus = static_cast<double>(cluster.total_gpus());
  Summary summary;
  summary.policy = labels.policy;
  summary.label = labels.label.empty() ? labels.policy : labels.label;
  summary.placement = labels.placement;
  summary.estimator = labels.estimator;
  summary.seed = labels.seed;
  summary.wall_seconds = labels.wall_seconds;
  summary.digest = engine.digest();
  summary.events = static_cast<double>(engine.events());
  describe_jobs(summary, jobs, gpus);
  if (recorder != nullptr) describe_recorded(summary, *recorder, gpus, cluster.nodes.size());
  if (const auto held = held_by_pool(engine, jobs, recorder); held && summary.makespan) {
    describe_energy(summary, energy_always_on(cluster, *held, *summary.makespan), recorder);
    summary.cost = cost_of(cluster, *held);
  }
  summary.avg_estimate_error = estimate_error(engine, jobs);
  summary.forecast_error = labels.forecast_error;
  summary.without_profile = labels.profiles_matter
                                ? std::optional(static_cast<double>(engine.jobs_without_profile()))
                                : std::nullopt;
  return summary;
}

}  // namespace

void describe_jobs(Summary& summary, const Outcomes& jobs, double cluster_gpus) {
  JobTotals totals = total_over(jobs, cluster_gpus);
  summary.jobs = static_cast<double>(jobs.rows.size());
  describe_counts(summary, totals);
  describe_times(summary, totals);
  describe_fairness(summary, totals);
  describe_use(summary, totals, cluster_gpus);
}

TraceFacts facts_of(const Trace& trace) {
  TraceFacts facts{.name = trace.source, .jobs = trace.jobs.size()};
  for (const TraceJob& job : trace.jobs)
    facts.gpu_seconds += to_seconds(job.duration) * devices_of(job);
  if (!trace.jobs.empty())
    facts.span_seconds = to_seconds(trace.jobs.back().submit - trace.jobs.front().submit);
  return facts;
}

ClusterFacts facts_of(const Cluster& cluster) {
  ClusterFacts facts{.name = cluster.name, .gpus = cluster.total_gpus(), .types = {}, .nodes = {}};
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i) {
    facts.types.emplace_back(cluster.pools[i].name, cluster.total_gpus(PoolId{i}));
  }
  for (const Node& node : cluster.nodes) {
    facts.nodes.push_back({node.name, node.gpus, cluster.pools[node.pool.value].name,
                           cluster.racks[node.rack.value]});
  }
  return facts;
}

Summary summarise(const Engine& engine, const Trace& trace, const Cluster& cluster,
                  const Recorder* recorder, const RunLabels& labels) {
  return summary_of(engine, outcomes_of(engine, trace), cluster, recorder, labels);
}

RunData analyse(const Engine& engine, const Trace& trace, const Cluster& cluster,
                Recorder* recorder, const RunLabels& labels) {
  RunData run;
  run.jobs = outcomes_of(engine, trace);
  run.summary = summary_of(engine, run.jobs, cluster, recorder, labels);
  run.trace = facts_of(trace);
  run.cluster = facts_of(cluster);
  derive_from_jobs(run);
  if (recorder == nullptr) return run;
  const RecordOptions& recorded = recorder->options();
  if (recorded.timeline) run.timeline = recorder->timeline();
  if (recorded.intervals) run.gantt = gantt_of(recorder->take_intervals(), run.jobs, cluster);
  if (recorded.actions) run.actions = recorder->take_actions();
  return run;
}

void RunData::drop_rows() {
  jobs = {};
  actions.reset();
}

// A metric that some seeds lack is averaged over those that have it.
void combine_seeds(RunData& run, std::vector<Summary> seeds) {
  run.seeds = std::move(seeds);
  for (const Metric& metric : metrics()) {
    std::vector<double> values;
    for (const Summary& summary : run.seeds) {
      if (const auto& value = summary.*metric.field) values.push_back(*value);
    }
    run.summary.*metric.field = mean(values);
  }
}

std::optional<MeanInterval> confidence_of(const RunData& run, const Metric& metric) {
  std::vector<double> values;
  for (const Summary& summary : run.seeds) {
    if (const auto& value = summary.*metric.field) values.push_back(*value);
  }
  return confidence_95(values);
}

}  // namespace berth
