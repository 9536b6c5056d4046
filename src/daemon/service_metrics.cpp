#include "daemon/service_metrics.h"

#include <fmt/format.h>

#include "base/prometheus.h"

namespace berth {

std::string service_metrics(const ServiceState& state) {
  using Metric = PrometheusText::Kind;
  const ClusterView& view = state.cluster;
  const SchedulerFigures& figures = state.figures;
  PrometheusText text;
  text.family(Metric::Gauge, "berth_jobs", "Jobs that are not over.")
      .sample(static_cast<double>(view.pending - view.held), {{"state", "pending"}})
      .sample(static_cast<double>(view.running), {{"state", "running"}})
      .sample(static_cast<double>(view.held), {{"state", "held"}});
  text.family(Metric::Counter, "berth_jobs_ended_total", "Jobs that are over, in this life.");
  for (const auto& [outcome, count] : state.ended)
    text.sample(static_cast<double>(count), {{"outcome", to_string(outcome)}});
  text.counter("berth_submits_total", "Requests that were acknowledged, in this life.",
               static_cast<double>(state.submits));
  text.family(Metric::Gauge, "berth_gpus", "Devices by use.")
      .sample(view.gpus_used, {{"state", "used"}})
      .sample(view.gpus - view.gpus_used, {{"state", "free"}});
  text.family(Metric::Gauge, "berth_node_gpus_used", "Devices in use on a node.");
  for (const NodeView& node : state.nodes) text.sample(node.gpus_used, {{"node", node.name}});
  text.family(Metric::Gauge, "berth_node_up", "1 unless the node is down or drained.");
  const auto is_asleep = [](const NodeView& node) {
    return node.state == "off" || node.state == "booting" || node.state == "suspending";
  };
  for (const NodeView& node : state.nodes)
    text.sample(node.state == "up" || is_asleep(node) ? 1 : 0, {{"node", node.name}});
  text.family(Metric::Gauge, "berth_node_asleep", "1 if the node is off, going off or booting.");
  for (const NodeView& node : state.nodes)
    text.sample(is_asleep(node) ? 1 : 0, {{"node", node.name}});
  text.counter("berth_passes_total", "Decisions of the policy, in this life.",
               static_cast<double>(figures.passes));
  text.gauge("berth_pass_last_seconds", "How long the last decision took to be carried out.",
             figures.last_pass_seconds);
  text.gauge("berth_pass_worst_seconds", "The longest one of this life.",
             figures.worst_pass_seconds);
  text.counter("berth_engines_total", "Engines begun: one, and one for each change of policy.",
               static_cast<double>(figures.engines));
  text.counter("berth_engine_failures_total",
               "Engines that ended by a fault inside; the next one went on.",
               static_cast<double>(figures.failures));
  text.gauge("berth_jobs_set_aside",
             "Jobs that the scheduler holds because something is wrong with them.",
             static_cast<double>(state.set_aside));
  text.gauge("berth_policy_fallback", "1 if the chosen policy failed and another one decides.",
             figures.has_fallen_back ? 1 : 0);
  text.counter("berth_why_unexplained_total", "Waiting jobs for which no reason was found.",
               static_cast<double>(state.unexplained));
  text.gauge("berth_journal_space_bytes", "Left on the disk of the journal.",
             static_cast<double>(state.journal_bytes_left));
  text.gauge("berth_trouble", "1 if something stands in the way of taking jobs.",
             view.trouble.empty() ? 0 : 1);
  text.gauge("berth_start_time_seconds", "Unix time at which this life began.",
             static_cast<double>(view.started) * 1e-6);
  text.family(Metric::Gauge, "berth_info", "Version and policy.")
      .sample(1, {{"version", view.version}, {"policy", view.policy}});
  return text.str();
}

}  // namespace berth
