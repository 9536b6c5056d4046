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
constexpr Duration kKeepAfterNews = std::chrono::seconds{10};
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

void EnergyMeter::restore(const std::string& text, std::span<const Held> held,
                          const std::vector<NodeUse>& nodes, Time now) {
  const std::lock_guard lock{mutex_};
  kept_ = now - kKeepAfterNews;  // the first news is put down at once
  since_ = read(text, held);
  set_state({held.begin(), held.end()}, nodes);
  if (!since_ || *since_ >= now) return;
  gap_.from = *since_;
  gap_.until = now;
  gap_.nodes = nodes;
  for (const Held& one : held) gap_.stays.push_back({one, now});
  std::ranges::stable_sort(gap_.stays, {}, &Held::node);
  for (const Stay& stay : gap_.stays) gap_.users.push_back(jobs_[stay.job].user);
  gap_.charged = {.nodes = std::vector<std::array<double, kNodeUses>>(rows_.size()),
                  .stays = std::vector<double>(gap_.stays.size(), 0)};
  charge_gap();
  since_ = now;
  begin_counting(now);
  ++gaps_;
}

/// Those who began or ended in between count from then or until then.
EnergyMeter::Tally EnergyMeter::tally(const Gap& gap) {
  Tally all{.nodes = std::vector<std::array<double, kNodeUses>>(rows_.size()),
            .stays = std::vector<double>(gap.stays.size(), 0)};
  std::set<Time> steps{gap.until};
  for (const Stay& stay : gap.stays) {
    for (const Time step : {stay.since, stay.until})
      if (step > gap.from && step < gap.until) steps.insert(step);
  }
  Time from = gap.from;
  for (const Time step : steps) {
    std::vector<Held> held;
    std::vector<std::size_t> whose;
    std::vector<NodeUse> uses = gap.nodes;
    for (std::size_t i = 0; i < gap.stays.size(); ++i) {
      if (gap.stays[i].since > from || gap.stays[i].until <= from) continue;
      held.push_back(gap.stays[i]);
      whose.push_back(i);
      uses[gap.stays[i].node.value] = NodeUse::Busy;
    }
    const Spent spent = spend(held, uses, to_seconds(step - from), By::Model);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      all.nodes[i][static_cast<std::size_t>(uses[i])] += spent.nodes[i];
    for (std::size_t i = 0; i < held.size(); ++i) all.stays[whose[i]] += spent.held[i];
    from = step;
  }
  // What somebody was charged who is over is on record with his end.
  for (std::size_t i = 0; i < gap.stays.size(); ++i)
    all.stays[i] = gap.stays[i].taken.value_or(all.stays[i]);
  return all;
}

/// By as much as the time in which nobody looked costs more or less than was thought.
void EnergyMeter::charge_gap() {
  Tally now = tally(gap_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::size_t use = 0; use < kNodeUses; ++use) {
      const double more = now.nodes[i][use] - gap_.charged.nodes[i][use];
      rows_[i].joules[use] += more;
      nobody_ += more;
    }
  }
  for (std::size_t i = 0; i < gap_.stays.size(); ++i) {
    const double more = now.stays[i] - gap_.charged.stays[i];
    nobody_ -= more;
    users_[gap_.users[i]] += more;
    if (!gap_.stays[i].taken) jobs_[gap_.stays[i].job].joules += more;
  }
  gap_.charged = std::move(now);
}

bool EnergyMeter::is_due(Time now) const {
  return keep_ && now - kept_ >= (has_news_ ? kKeepAfterNews : kKeepEvery);
}

void EnergyMeter::keep_if_due(Time now) {
  if (!is_due(now)) return;
  kept_ = now;
  has_news_ = false;
  keep_(text(now));
}

void EnergyMeter::count_until(Time now) {
  const std::lock_guard lock{mutex_};
  charge(now);
}

void EnergyMeter::keep(Time now) {
  const std::lock_guard lock{mutex_};
  charge(now);
  if (keep_) keep_(text(now));
}

// --- whose it is

void EnergyMeter::set_state(std::vector<Held> held, const std::vector<NodeUse>& nodes) {
  uses_ = nodes;
  held_ = std::move(held);
  std::ranges::stable_sort(held_, {}, &Held::node);
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].use = nodes[i];
  for (const Held& one : held_) rows_[one.node.value].use = NodeUse::Busy;
}

void EnergyMeter::observe(Time now, std::vector<Held> held, const std::vector<NodeUse>& nodes) {
  const std::lock_guard lock{mutex_};
  charge(now);
  has_news_ = has_news_ || nodes != uses_;
  set_state(std::move(held), nodes);
  std::set<JobNumber> running;
  for (const Held& one : held_) running.insert(one.job);
  std::erase_if(jobs_, [&](const auto& entry) { return !running.contains(entry.first); });
  keep_if_due(now);
}

double EnergyMeter::take(JobNumber job, Time until, Time now) {
  const std::lock_guard lock{mutex_};
  charge(now);
  std::erase_if(held_, [&](const Held& one) { return one.job == job; });
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return 0;
  // It ended while nobody looked.
  for (std::size_t i = 0; until < gap_.until && i < gap_.stays.size(); ++i) {
    Stay& stay = gap_.stays[i];
    if (stay.job == job && !stay.taken) stay.until = std::max(until, gap_.from);
  }
  if (until < gap_.until) {
    charge_gap();
    for (std::size_t i = 0; i < gap_.stays.size(); ++i)
      if (gap_.stays[i].job == job) gap_.stays[i].taken = gap_.charged.stays[i];
  }
  const double joules = std::max(0.0, found->second.joules);
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

void EnergyMeter::begin_counting(Time now) {
  if (has_gpus_) static_cast<void>(counters_.gpus.joules(to_seconds(now)));
  if (has_rapl_) static_cast<void>(counters_.rapl.joules());
}

void EnergyMeter::charge(Time now) {
  if (!since_) begin_counting(now);
  const double seconds = since_ ? std::max(0.0, to_seconds(now - *since_)) : 0;
  since_ = since_ ? std::max(*since_, now) : now;
  if (seconds <= 0) return;
  std::vector<NodeUse> uses(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) uses[i] = rows_[i].use;
  const Spent spent = spend(held_, uses, seconds, By::Counters);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].joules[static_cast<std::size_t>(rows_[i].use)] += spent.nodes[i];
    nobody_ += spent.nodes[i];
  }
  for (std::size_t i = 0; i < held_.size(); ++i) {
    nobody_ -= spent.held[i];
    Account& account = jobs_[held_[i].job];
    account.joules += spent.held[i];
    users_[account.user] += spent.held[i];
  }
}

/// `held` stands in the order of nodes.
EnergyMeter::Spent EnergyMeter::spend(std::span<const Held> held, std::span<const NodeUse> nodes,
                                      double seconds, By by) {
  Spent spent{.nodes = std::vector<double>(rows_.size(), 0),
              .held = std::vector<double>(held.size(), 0)};
  std::size_t first = 0;  // of a node's
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const Node& node = cluster_.nodes[i];
    const std::size_t begin = first;
    while (first < held.size() && held[first].node.value <= i) ++first;
    if (nodes[i] == NodeUse::Off) continue;
    const std::span<const Held> here = held.subspan(begin, first - begin);
    std::vector<std::int32_t> holders(static_cast<std::size_t>(std::max(0, node.gpus)), 0);
    for (const Held& one : here) {
      for_each_device(one.devices, [&](std::int32_t index) {
        const auto device = static_cast<std::size_t>(index);
        if (device < holders.size()) ++holders[device];
      });
    }
    const auto in_use = static_cast<double>(
        std::ranges::count_if(holders, [](std::int32_t count) { return count > 0; }));
    const double server = server_joules(NodeId{i}, in_use, seconds, by);
    const std::vector<double> devices = device_joules(NodeId{i}, holders, seconds, by);
    spent.nodes[i] = server;
    for (const double joules : devices) spent.nodes[i] += joules;
    for (std::size_t k = begin; k < first; ++k) {
      for_each_device(held[k].devices, [&](std::int32_t index) {
        const auto device = static_cast<std::size_t>(index);
        if (device < holders.size())
          spent.held[k] += (devices[device] + server / node.gpus) / holders[device];
      });
    }
  }
  return spent;
}

std::optional<double> EnergyMeter::sample(Time now) {
  const std::lock_guard lock{mutex_};
  const bool has_counters = has_rapl_ || has_gpus_;
  if (!has_counters && !keep_) return std::nullopt;
  // By the model the next life finds out what has no news.
  if (has_counters || (has_news_ && is_due(now))) {
    charge(now);
    keep_if_due(now);
  }
  double wait = to_seconds(kKeepAfterNews);
  if (has_counters) wait = kLookAtCounters;
  if (has_gpus_ && counters_.gpus.needs_looks()) wait = kLookAtDraws;
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
  text.family(Metric::Gauge, "berth_energy_source",
              "1: where figures of energy come from, by part.")
      .sample(1, {{"part", "devices"}, {"source", has_gpus_ ? "nvml" : "model"}})
      .sample(1, {{"part", "servers"}, {"source", has_rapl_ ? "rapl" : "model"}});
  text.counter("berth_energy_gaps_total",
               "Times in which counters were not read and the model was.",
               static_cast<double>(gaps_));
  return text.str();
}

}  // namespace berth
