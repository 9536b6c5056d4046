#include "daemon/energy_meter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/prometheus.h"

namespace berth {

std::string_view to_string(NodeUse use) noexcept {
  switch (use) {
    case NodeUse::Busy: return "busy";
    case NodeUse::Idle: return "idle";
    case NodeUse::Booting: return "booting";
    case NodeUse::Off: break;
  }
  return "off";
}

EnergyMeter::EnergyMeter(const Cluster& cluster, Rapl rapl)
    : cluster_(cluster),
      rapl_(std::move(rapl)),
      measures_(rapl_.is_there() && cluster.nodes.size() == 1),
      rows_(cluster.nodes.size()) {}

void EnergyMeter::set_user(JobNumber job, const std::string& user) {
  const std::lock_guard lock{mutex_};
  jobs_[job].user = user;
}

bool EnergyMeter::knows(JobNumber job) const {
  const std::lock_guard lock{mutex_};
  return jobs_.contains(job);
}

void EnergyMeter::observe(Time now, std::vector<Held> held, const std::vector<NodeUse>& nodes) {
  const std::lock_guard lock{mutex_};
  charge(now);
  held_ = std::move(held);
  std::set<JobNumber> running;
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].use = nodes[i];
  for (const Held& one : held_) {
    rows_[one.node.value].use = NodeUse::Busy;
    running.insert(one.job);
  }
  std::erase_if(jobs_, [&](const auto& entry) { return !running.contains(entry.first); });
}

double EnergyMeter::server_joules(NodeId id, double held, double seconds) {
  const Node& node = cluster_.nodes[id.value];
  if (measures_) {
    const auto measured = rapl_.joules();
    if (measured && seconds < rapl_.safe_seconds()) return *measured;
    ++gaps_;
  }
  const double extra = std::max(0.0, node.busy_watts - node.idle_watts);
  const double part = node.gpus > 0 ? std::min(1.0, held / node.gpus) : 0;
  return (node.idle_watts + extra * part) * seconds;
}

void EnergyMeter::charge(Time now) {
  const double seconds = since_ ? std::max(0.0, to_seconds(now - *since_)) : 0;
  since_ = since_ ? std::max(*since_, now) : now;
  if (seconds <= 0) return;
  std::vector<double> gpus(rows_.size(), 0);
  for (const Held& one : held_) gpus[one.node.value] += one.gpus;
  std::vector<double> server(rows_.size(), 0);
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const Node& node = cluster_.nodes[i];
    const DeviceType& type = cluster_.pools[node.pool.value];
    Row& row = rows_[i];
    double all = 0;
    if (row.use != NodeUse::Off) {
      const double held = std::min(gpus[i], static_cast<double>(node.gpus));
      server[i] = server_joules(NodeId{i}, held, seconds);
      all = server[i] + (held * type.busy_watts + (node.gpus - held) * type.idle_watts) * seconds;
    }
    row.joules[static_cast<std::size_t>(row.use)] += all;
    nobody_ += all;
  }
  for (const Held& one : held_) {
    const Node& node = cluster_.nodes[one.node.value];
    if (node.gpus == 0) continue;
    const double joules = one.gpus * cluster_.pools[node.pool.value].busy_watts * seconds +
                          server[one.node.value] * one.gpus / node.gpus;
    nobody_ -= joules;
    Account& account = jobs_[one.job];
    account.joules += joules;
    users_[account.user] += joules;
  }
}

double EnergyMeter::joules_of(JobNumber job) const {
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second.joules;
}

double EnergyMeter::joules_of(const std::string& user) const {
  const std::lock_guard lock{mutex_};
  const auto found = users_.find(user);
  return found == users_.end() ? 0 : found->second;
}

double EnergyMeter::joules(NodeId node, NodeUse use) const {
  const std::lock_guard lock{mutex_};
  return rows_[node.value].joules[static_cast<std::size_t>(use)];
}

double EnergyMeter::nobody() const {
  const std::lock_guard lock{mutex_};
  return nobody_;
}

std::string EnergyMeter::metrics(Time now) {
  using Kind = PrometheusText::Kind;
  const std::lock_guard lock{mutex_};
  charge(now);
  PrometheusText text;
  text.family(Kind::Counter, "berth_node_energy_joules_total",
              "Energy of a node by what it was doing, in this life.");
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::size_t use = 0; use < kNodeUses; ++use)
      text.sample(rows_[i].joules[use], {{"node", cluster_.nodes[i].name},
                                         {"state", to_string(static_cast<NodeUse>(use))}});
  }
  text.family(Kind::Counter, "berth_user_energy_joules_total",
              "Energy of the jobs of a user, in this life.");
  for (const auto& [user, joules] : users_) text.sample(joules, {{"user", user}});
  text.counter("berth_nobody_energy_joules_total", "Energy that no job is charged, in this life.",
               std::max(0.0, nobody_));
  text.family(Kind::Gauge, "berth_energy_source", "1: where figures of energy come from, by part.")
      .sample(1, {{"part", "devices"}, {"source", "model"}})
      .sample(1, {{"part", "servers"}, {"source", measures_ ? "rapl" : "model"}});
  text.counter("berth_energy_gaps_total",
               "Times in which counters were not read and the model was.",
               static_cast<double>(gaps_));
  return text.str();
}

}  // namespace berth
