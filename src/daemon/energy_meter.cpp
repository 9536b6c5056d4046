#include "daemon/energy_meter.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/prometheus.h"
#include "core/device_table.h"

namespace berth {

namespace {

using nlohmann::json;

constexpr Duration kKeepEvery = std::chrono::minutes{5};
constexpr Duration kKeepAfterAnEnd = std::chrono::seconds{10};
constexpr double kLookAtDraws = 1, kLookAtCounters = 30;  // seconds

/// Nothing that a text of somebody else could do harm with.
double amount(const json& value) {
  const double joules = value.is_number() ? value.get<double>() : 0;
  return joules > 0 && joules < 1e18 ? joules : 0;
}

}  // namespace

std::string_view to_string(NodeUse use) noexcept {
  return kNodeUseNames[static_cast<std::size_t>(use)];
}

EnergyMeter::EnergyMeter(const Cluster& cluster, Counters counters)
    : cluster_(cluster), counters_(std::move(counters)), rows_(cluster.nodes.size()) {
  const bool is_alone = cluster.nodes.size() == 1;
  has_rapl_ = is_alone && counters_.rapl.is_there();
  has_gpus_ = is_alone && counters_.gpus.size() > 0 &&
              counters_.gpus.size() == static_cast<std::size_t>(cluster.nodes.front().gpus);
}

void EnergyMeter::set_user(JobNumber job, const std::string& user) {
  const std::lock_guard lock{mutex_};
  jobs_[job].user = user;
}

bool EnergyMeter::knows(JobNumber job) const {
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(job);
  return found != jobs_.end() && !found->second.user.empty();
}

// --- over a restart

std::string EnergyMeter::text(Time now) const {
  json nodes = json::object(), jobs = json::object();
  for (std::size_t i = 0; i < rows_.size(); ++i) nodes[cluster_.nodes[i].name] = rows_[i].joules;
  for (const auto& [job, account] : jobs_) jobs[std::to_string(job)] = account.joules;
  return json{{"at", now.time_since_epoch().count()},
              {"nodes", std::move(nodes)},
              {"users", users_},
              {"nobody", std::max(0.0, nobody_)},
              {"jobs", std::move(jobs)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Since when the model has to stand in: since it was put down, or since the first of them began.
std::optional<Time> EnergyMeter::read(const std::string& text, std::span<const Held> held) {
  const json saved = json::parse(text, nullptr, false);
  if (!saved.is_object() || !saved.contains("at") || !saved["at"].is_number_integer()) {
    if (held.empty()) return std::nullopt;
    return std::ranges::min(held, {}, &Held::since).since;
  }
  const auto part = [&](const char* key) {
    const auto found = saved.find(key);
    return found != saved.end() && found->is_object() ? *found : json::object();
  };
  const json nodes = part("nodes"), jobs = part("jobs"), users = part("users");
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto found = nodes.find(cluster_.nodes[i].name);
    if (found == nodes.end() || !found->is_array()) continue;
    for (std::size_t use = 0; use < std::min(kNodeUses, found->size()); ++use)
      rows_[i].joules[use] = amount((*found)[use]);
  }
  for (const auto& [user, joules] : users.items()) users_[user] = amount(joules);
  if (saved.contains("nobody")) nobody_ = amount(saved["nobody"]);
  for (const Held& one : held) {
    const auto found = jobs.find(std::to_string(one.job));
    if (found != jobs.end()) jobs_[one.job].joules = amount(*found);
  }
  return Time{Duration{saved["at"].get<std::int64_t>()}};
}

void EnergyMeter::restore(const std::string& text, std::span<const Held> held, Time now) {
  const std::lock_guard lock{mutex_};
  kept_ = now;
  since_ = read(text, held);
  if (!since_ || *since_ >= now) return;
  // Those who began in between count from then on.
  std::set<Time> steps{now};
  std::map<JobNumber, double> before;
  for (const Held& one : held) {
    before[one.job] = jobs_[one.job].joules;
    if (one.since > *since_ && one.since < now) steps.insert(one.since);
  }
  const Time from = *since_;
  for (const Time step : steps) {
    held_.clear();
    for (const Held& one : held)
      if (one.since <= *since_) held_.push_back(one);
    for (Row& row : rows_) row.use = NodeUse::Idle;
    for (const Held& one : held_) rows_[one.node.value].use = NodeUse::Busy;
    std::ranges::stable_sort(held_, {}, &Held::node);
    charge(step, By::Model);
  }
  begin_counting(now);
  ++gaps_;
  for (const Held& one : held) {
    Account& account = jobs_[one.job];
    account.unseen_joules = account.joules - before[one.job];
    account.unseen_from = std::max(from, one.since);
    account.unseen_until = now;
  }
}

void EnergyMeter::keep_if_due(Time now) {
  const bool is_due = now - kept_ >= (has_news_ ? kKeepAfterAnEnd : kKeepEvery);
  if (!keep_ || !is_due) return;
  kept_ = now;
  has_news_ = false;
  keep_(text(now));
}

void EnergyMeter::keep(Time now) {
  const std::lock_guard lock{mutex_};
  charge(now);
  if (keep_) keep_(text(now));
}

// --- whose it is

void EnergyMeter::observe(Time now, std::vector<Held> held, const std::vector<NodeUse>& nodes) {
  const std::lock_guard lock{mutex_};
  charge(now);
  held_ = std::move(held);
  std::ranges::stable_sort(held_, {}, &Held::node);
  std::set<JobNumber> running;
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].use = nodes[i];
  for (const Held& one : held_) {
    rows_[one.node.value].use = NodeUse::Busy;
    running.insert(one.job);
  }
  std::erase_if(jobs_, [&](const auto& entry) { return !running.contains(entry.first); });
  keep_if_due(now);
}

double EnergyMeter::take(JobNumber job, Time until, Time now) {
  const std::lock_guard lock{mutex_};
  charge(now);
  std::erase_if(held_, [&](const Held& one) { return one.job == job; });
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return 0;
  Account& account = found->second;
  // It ended while nobody looked: what the model gave it afterwards is nobody's.
  if (until < account.unseen_until && account.unseen_until > account.unseen_from) {
    const double part =
        std::clamp(to_seconds(account.unseen_until - std::max(until, account.unseen_from)) /
                       to_seconds(account.unseen_until - account.unseen_from),
                   0.0, 1.0);
    const double back = account.unseen_joules * part;
    account.joules -= back;
    users_[account.user] -= back;
    nobody_ += back;
  }
  const double joules = std::max(0.0, account.joules);
  jobs_.erase(found);
  has_news_ = true;
  return joules;
}

double EnergyMeter::server_joules(NodeId id, double held, double seconds, By by) {
  const Node& node = cluster_.nodes[id.value];
  if (has_rapl_ && by == By::Counters) {
    const auto measured = counters_.rapl.joules();
    if (measured && seconds < counters_.rapl.safe_seconds()) return *measured;
    ++gaps_;
  }
  const double extra = std::max(0.0, node.busy_watts - node.idle_watts);
  const double part = node.gpus > 0 ? std::min(1.0, held / node.gpus) : 0;
  return (node.idle_watts + extra * part) * seconds;
}

/// Of each device.
std::vector<double> EnergyMeter::device_joules(NodeId id, const std::vector<std::int32_t>& holders,
                                               double seconds, By by) {
  const DeviceType& type = cluster_.pools[cluster_.nodes[id.value].pool.value];
  std::vector<double> joules;
  for (const std::int32_t count : holders)
    joules.push_back((count > 0 ? type.busy_watts : type.idle_watts) * seconds);
  if (!has_gpus_ || by == By::Model) return joules;
  const auto measured = counters_.gpus.joules(to_seconds(*since_));
  bool has_gap = false;
  for (std::size_t i = 0; i < joules.size(); ++i) {
    if (measured[i])
      joules[i] = *measured[i];
    else
      has_gap = true;
  }
  if (has_gap) ++gaps_;
  return joules;
}

void EnergyMeter::charge_job(JobNumber job, double joules) {
  nobody_ -= joules;
  Account& account = jobs_[job];
  account.joules += joules;
  users_[account.user] += joules;
}

void EnergyMeter::begin_counting(Time now) {
  if (has_gpus_) static_cast<void>(counters_.gpus.joules(to_seconds(now)));
  if (has_rapl_) static_cast<void>(counters_.rapl.joules());
}

void EnergyMeter::charge(Time now, By by) {
  if (!since_) begin_counting(now);
  const double seconds = since_ ? std::max(0.0, to_seconds(now - *since_)) : 0;
  since_ = since_ ? std::max(*since_, now) : now;
  if (seconds <= 0) return;
  auto first = held_.begin();  // of a node's: they stand in the order of nodes
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const Node& node = cluster_.nodes[i];
    Row& row = rows_[i];
    const auto last =
        std::find_if(first, held_.end(), [&](const Held& one) { return one.node.value > i; });
    const std::span<const Held> here{std::exchange(first, last), last};
    if (row.use == NodeUse::Off) continue;
    std::vector<std::int32_t> holders(static_cast<std::size_t>(std::max(0, node.gpus)), 0);
    for (const Held& one : here) {
      for_each_device(one.devices, [&](std::int32_t index) {
        const auto device = static_cast<std::size_t>(index);
        if (device < holders.size()) ++holders[device];
      });
    }
    const auto held = static_cast<double>(
        std::ranges::count_if(holders, [](std::int32_t count) { return count > 0; }));
    const double server = server_joules(NodeId{i}, held, seconds, by);
    const std::vector<double> devices = device_joules(NodeId{i}, holders, seconds, by);
    double all = server;
    for (const double joules : devices) all += joules;
    row.joules[static_cast<std::size_t>(row.use)] += all;
    nobody_ += all;
    for (const Held& one : here) {
      double joules = 0;
      for_each_device(one.devices, [&](std::int32_t index) {
        const auto device = static_cast<std::size_t>(index);
        if (device < holders.size())
          joules += (devices[device] + server / node.gpus) / holders[device];
      });
      charge_job(one.job, joules);
    }
  }
}

std::optional<double> EnergyMeter::look(Time now) {
  const std::lock_guard lock{mutex_};
  if (!has_rapl_ && !has_gpus_) return std::nullopt;
  charge(now);
  keep_if_due(now);
  const double wait = has_gpus_ && counters_.gpus.needs_looks() ? kLookAtDraws : kLookAtCounters;
  return has_rapl_ ? std::min(wait, counters_.rapl.safe_seconds() / 2) : wait;
}

// --- what people see

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
  return joules(node)[static_cast<std::size_t>(use)];
}

std::array<double, kNodeUses> EnergyMeter::joules(NodeId node) const {
  const std::lock_guard lock{mutex_};
  return rows_[node.value].joules;
}

double EnergyMeter::nobody() const {
  const std::lock_guard lock{mutex_};
  return nobody_;
}

std::string EnergyMeter::source() const {
  return fmt::format("{}(gpus) {}(servers)", has_gpus_ ? "nvml" : "model",
                     has_rapl_ ? "rapl" : "model");
}

std::string EnergyMeter::metrics(Time now) {
  using Metric = PrometheusText::Kind;
  const std::lock_guard lock{mutex_};
  charge(now);
  PrometheusText text;
  text.family(Metric::Counter, "berth_node_energy_joules_total",
              "Energy of a node by what it was doing.");
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::size_t use = 0; use < kNodeUses; ++use)
      text.sample(rows_[i].joules[use], {{"node", cluster_.nodes[i].name},
                                         {"state", to_string(static_cast<NodeUse>(use))}});
  }
  text.family(Metric::Counter, "berth_user_energy_joules_total", "Energy of the jobs of a user.");
  for (const auto& [user, joules] : users_) text.sample(std::max(0.0, joules), {{"user", user}});
  text.counter("berth_nobody_energy_joules_total", "Energy that no job is charged.",
               std::max(0.0, nobody_));
  text.family(Metric::Gauge, "berth_energy_source", "1: where figures of energy come from, by part.")
      .sample(1, {{"part", "devices"}, {"source", has_gpus_ ? "nvml" : "model"}})
      .sample(1, {{"part", "servers"}, {"source", has_rapl_ ? "rapl" : "model"}});
  text.counter("berth_energy_gaps_total",
               "Times in which counters were not read and the model was.",
               static_cast<double>(gaps_));
  return text.str();
}

}  // namespace berth
