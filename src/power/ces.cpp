#include "power/ces.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/rounds.h"

namespace berth {

void Ces::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  std::vector<std::vector<NodeId>> nodes(cluster.pools.size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    nodes[cluster.nodes[i].pool.value].push_back(NodeId{i});
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    std::vector<NodeId>& own = nodes[i];
    std::int32_t largest = 1;
    for (const NodeId node : own) largest = std::max(largest, cluster.nodes[node.value].gpus);
    const bool uniform = std::ranges::all_of(
        own, [&](NodeId node) { return cluster.nodes[node.value].gpus == largest; });
    const auto total = static_cast<std::int32_t>(own.size());
    CesRule rule = options_.rule;
    rule.buffer =
        std::max(rule.buffer, static_cast<std::int32_t>(std::ceil(options_.buffer_share * total)));
    groups_.push_back({.pool = PoolId{i},
                       .nodes = std::move(own),
                       .largest = largest,
                       .uniform = uniform,
                       .control = CesControl{total, rule},
                       .forecast = DemandForecast{options_.forecast}});
  }
  idle_since_ = Column<NodeId, Time>(cluster.nodes.size(), kNever);
}

void Ces::on_arrival(const View&, JobId job) {
  active_.push_back(job);
  newcomers_.push_back(job);
}

void Ces::on_departure(const View& view, JobId) {
  // Now and then instead of a search for each that leaves: O(1) per departure in the long run.
  if (++departed_ * 2 > active_.size()) forget_departed(view);
}

void Ces::forget_departed(const View& view) {
  std::erase_if(active_, [&](JobId job) { return is_over(view.jobs.state[job]); });
  departed_ = 0;
}

std::int32_t Ces::occupied(const Group& group, const Plan& plan) const {
  if (group.nodes.empty()) return 0;
  if (group.uniform) {
    // Those that are up less those that are up and empty, without a look at each.
    const auto up = plan.cluster().usable_gpus(group.pool) / group.largest;
    const auto& empty = plan.cluster().nodes_with(group.pool, group.largest);
    return static_cast<std::int32_t>(up - static_cast<std::int64_t>(empty.size()));
  }
  return static_cast<std::int32_t>(std::ranges::count_if(group.nodes, [&](NodeId node) {
    return plan.cluster().is_up(node) && !plan.cluster().is_idle(node);
  }));
}

/// Nodes with a job on them, and those that waiting jobs need; a job counts for the type it likes
/// best of those that could hold it.
double Ces::demand(const Group& group, const View& view, const Plan& plan) const {
  std::int64_t needed = occupied(group, plan);
  for (const JobId job : active_) {
    if (is_over(view.jobs.state[job]) || plan.holds(job)) continue;
    const Shape& shape = view.shape(job);
    const auto wanted = std::ranges::find_if(shape.pools, [&](PoolId pool) {
      return view.cluster.cluster().total_gpus(pool) >= shape.gpus;
    });
    if (wanted == shape.pools.end() || *wanted != group.pool) continue;
    needed += (shape.gpus + group.largest - 1) / group.largest;
  }
  return static_cast<double>(needed);
}

void Ces::manage(const View& view, Plan& plan) {
  if (!std::exchange(has_begun_, true)) {
    // Of the time before nothing is known: a scheduler that begins again has no idle weeks behind
    // it.
    next_tick_ = Grid{options_.tick}.at_or_before(view.now);
  }
  // Demand between ticks counts by its peak; where it takes a look at every node, only at ticks.
  for (Group& group : groups_) {
    if (group.uniform) group.peak = std::max<double>(group.peak, occupied(group, plan));
  }
  const bool waits = std::ranges::any_of(
      newcomers_, [&](JobId job) { return view.jobs.is_waiting(job) && !plan.holds(job); });
  newcomers_.clear();
  if (waits) {  // too few nodes are on for it
    for (Group& group : groups_) {
      const double needed = demand(group, view, plan);
      group.peak = std::max(group.peak, needed);
      set_active(group, group.control.wake(needed), plan);
    }
  }
  if (view.now >= next_tick_) tick(view, plan);
}

/// Jobs wait, nobody runs and no node boots for them.
bool Ces::is_stuck(const Plan& plan) const {
  if (active_.empty() || std::ranges::any_of(active_, [&](JobId job) { return plan.holds(job); }))
    return false;
  return std::ranges::none_of(groups_, [&](const Group& group) {
    return std::ranges::any_of(group.nodes, [&](NodeId node) {
      return !plan.cluster().has_failed(node) && plan.cluster().power(node) == PowerState::Booting;
    });
  });
}

void Ces::tick(const View& view, Plan& plan) {
  forget_departed(view);
  for (Group& group : groups_) group.peak = std::max(group.peak, demand(group, view, plan));
  const bool stuck = is_stuck(plan);
  note_idle(view, plan);
  std::vector<double> forecast(static_cast<std::size_t>(2 * options_.rule.future));
  const bool was_quiet = is_quiet();  // then it asked for no wake-up, and ticks passed unseen
  do {  // ticks nobody woke up for had no demand; those that came late had what there is
    const bool is_last = next_tick_ + options_.tick > view.now;
    for (Group& group : groups_) {
      const double used = is_last || !was_quiet ? group.peak : 0;
      group.forecast.add(used);
      group.forecast.predict(forecast);
      const auto broken = std::ranges::count_if(
          group.nodes, [&](NodeId node) { return plan.cluster().has_failed(node); });
      group.control.set_total(static_cast<std::int32_t>(group.nodes.size()) -
                              static_cast<std::int32_t>(broken));
      const std::int32_t active = group.control.tick(used, forecast);
      // Whatever keeps them, it shall not be a node that is off.
      if (is_last) set_active(group, stuck ? group.control.wake_all() : active, plan);
    }
    next_tick_ += options_.tick;
  } while (next_tick_ <= view.now);
  for (Group& group : groups_) group.peak = 0;
  quiet_ticks_ = active_.empty() ? quiet_ticks_ + 1 : 0;
}

void Ces::note_idle(const View& view, const Plan& plan) {
  for (std::uint32_t i = 0; i < idle_since_.size(); ++i) {
    Time& since = idle_since_[NodeId{i}];
    if (!plan.cluster().is_idle(NodeId{i})) {
      since = kNever;
    } else if (since == kNever) {
      since = view.now;
    }
  }
}

/// Switches off those idle longest, on those with the lowest number.
void Ces::set_active(Group& group, std::int32_t active, Plan& plan) {
  const ClusterState& state = plan.cluster();
  const auto is_on = [&](NodeId node) {
    return !state.has_failed(node) && state.power(node) != PowerState::Off;
  };
  auto on = static_cast<std::int32_t>(std::ranges::count_if(group.nodes, is_on));
  if (on < active) {
    for (const NodeId node : group.nodes) {
      if (on == active) return;
      if (!state.has_failed(node) && plan.power_on(node)) ++on;
    }
    return;
  }
  if (on == active) return;
  std::vector<NodeId> idle;
  std::ranges::copy_if(group.nodes, std::back_inserter(idle),
                       [&](NodeId node) { return state.is_idle(node); });
  std::ranges::sort(idle, {}, [&](NodeId node) { return std::tuple(idle_since_[node], node); });
  for (const NodeId node : idle) {
    if (on == active) return;
    if (plan.power_off(node)) --on;
  }
}

/// With no job in the system and demand long flat, nothing changes until somebody comes.
std::optional<Time> Ces::next_wakeup(const View&) {
  if (is_quiet()) return std::nullopt;
  return next_tick_;
}

bool Ces::is_quiet() const noexcept {
  return active_.empty() && quiet_ticks_ > options_.rule.history + options_.rule.keep + 1;
}

std::optional<double> Ces::forecast_error() const noexcept {
  std::optional<double> worst;
  for (const Group& group : groups_) {
    if (const auto error = group.forecast.error()) worst = std::max(worst.value_or(0), *error);
  }
  return worst;
}

}  // namespace berth
