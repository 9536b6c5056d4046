#include "advise/advise_metrics.h"

#include <algorithm>
#include <map>
#include <utility>

#include "advise/job_views.h"
#include "advise/node_views.h"
#include "base/prometheus.h"

namespace berth::advise {

namespace {

using Metric = PrometheusText::Kind;

void add_jobs(const AdviseState& state, PrometheusText& text) {
  const ClusterView& view = state.cluster;
  text.family(Metric::Gauge, "berth_jobs", "Jobs that are not over.")
      .sample(static_cast<double>(view.pending - view.held), {{"state", "pending"}})
      .sample(static_cast<double>(view.running), {{"state", "running"}})
      .sample(static_cast<double>(view.held), {{"state", "held"}});
  std::map<std::pair<std::string, std::string_view>, std::size_t> by_partition;
  for (const slurm::Job& job : state.sight.all_jobs()) {
    const LiveState now = live_state(job);
    if (!is_over(now))
      by_partition[{job.partition, to_string(now)}] +=
          std::max<std::size_t>(1, tasks_of(job).size());
  }
  text.family(Metric::Gauge, "berth_slurm_jobs",
              "Slurm's jobs that are not over, tasks of arrays one by one.");
  for (const auto& [key, count] : by_partition)
    text.sample(static_cast<double>(count), {{"partition", key.first}, {"state", key.second}});
}

void add_nodes(const AdviseState& state, PrometheusText& text) {
  const ClusterView& view = state.cluster;
  text.family(Metric::Gauge, "berth_gpus", "Devices by use.")
      .sample(view.gpus_used, {{"state", "used"}})
      .sample(view.gpus - view.gpus_used, {{"state", "free"}});
  text.family(Metric::Gauge, "berth_slurm_gpus",
              "GPUs by type; out: not used, on nodes that take no jobs.");
  for (const TypeUse& use : uses_of_types(state.sight)) {
    text.sample(static_cast<double>(use.used), {{"type", use.type}, {"state", "used"}});
    text.sample(static_cast<double>(use.free), {{"type", use.type}, {"state", "free"}});
    text.sample(static_cast<double>(use.out), {{"type", use.type}, {"state", "out"}});
  }
  const auto nodes = node_views(state.sight);
  const auto is_asleep = [](const NodeView& node) {
    return node.state == "off" || node.state == "booting";
  };
  text.family(Metric::Gauge, "berth_node_gpus_used", "Devices in use on a node.");
  for (const NodeView& node : nodes) text.sample(node.gpus_used, {{"node", node.name}});
  text.family(Metric::Gauge, "berth_node_up", "1 unless the node is down or drained.");
  for (const NodeView& node : nodes) {
    const bool is_out = node.state == "down" || node.state == "drained" || node.state == "draining";
    text.sample(is_out ? 0 : 1, {{"node", node.name}});
  }
  text.family(Metric::Gauge, "berth_node_asleep", "1 if the node is off, going off or booting.");
  for (const NodeView& node : nodes) text.sample(is_asleep(node) ? 1 : 0, {{"node", node.name}});
}

void add_polls(const AdviseState& state, PrometheusText& text) {
  const PollFigures& figures = state.figures;
  text.counter("berth_slurm_polls_total", "Readings of Slurm, in this life.",
               static_cast<double>(figures.polls));
  text.gauge("berth_slurm_poll_last_seconds", "How long the last reading took.",
             figures.last_seconds);
  text.gauge("berth_slurm_poll_worst_seconds", "The longest one of this life.",
             figures.worst_seconds);
  text.family(Metric::Counter, "berth_slurm_failures_total",
              "Questions that Slurm did not answer, by what was asked.");
  for (const auto& [what, count] : figures.failures)
    text.sample(static_cast<double>(count), {{"what", what}});
  const double age =
      state.sight.at == 0 ? -1 : static_cast<double>(state.wall - state.sight.at) * 1e-6;
  text.gauge("berth_slurm_snapshot_age_seconds",
             "How old what is known of jobs is; -1: nothing is known yet.", age);
  text.counter("berth_slurm_jobs_vanished_total",
               "Jobs that were gone before their end was seen, in this life.",
               static_cast<double>(figures.vanished));
}

}  // namespace

std::string advise_metrics(const AdviseState& state) {
  PrometheusText text;
  add_jobs(state, text);
  add_nodes(state, text);
  add_polls(state, text);
  const ClusterView& view = state.cluster;
  text.gauge("berth_trouble", "1 if something stands in the way of complete answers.",
             view.trouble.empty() ? 0 : 1);
  text.gauge("berth_start_time_seconds", "Unix time at which this life began.",
             static_cast<double>(view.started) * 1e-6);
  const std::string slurm =
      state.sight.version ? to_string(*state.sight.version) : std::string{"unknown"};
  text.family(Metric::Gauge, "berth_info", "Version and policy.")
      .sample(1, {{"version", view.version}, {"policy", view.policy}, {"slurm", slurm}});
  return text.str();
}

}  // namespace berth::advise
