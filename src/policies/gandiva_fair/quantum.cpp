// One quantum of Gandiva_fair: who runs on which server, balancing, leftovers.
#include <algorithm>
#include <bit>
#include <tuple>

#include "policies/gandiva_fair/gandiva_fair.h"

namespace berth::gandiva_fair {

namespace {

/// So many of the free devices, lowest first.
std::uint64_t lowest(std::uint64_t free, std::int32_t count) {
  std::uint64_t devices = 0;
  for (std::int32_t i = 0; i < count && free != 0; ++i, free &= free - 1)
    devices |= free & (~free + 1);
  return devices;
}

}  // namespace

double GandivaFair::load_of(const View& view, NodeId node) const {
  return node_tickets_[node.value] / view.cluster.cluster().nodes[node.value].gpus;
}

/// Nothing if the job is larger than any server, or servers do not count.
std::optional<NodeId> GandivaFair::least_loaded(const View& view, PoolId pool,
                                                std::int32_t gpus) const {
  if (view.cluster.mode() == ClusterState::Mode::Count) return std::nullopt;
  std::optional<NodeId> best;
  double least = 0;
  for (const NodeId node : nodes_[pool.value]) {
    if (view.cluster.cluster().nodes[node.value].gpus < gpus || !view.cluster.is_up(node)) continue;
    const double load = load_of(view, node);
    if (!best || load < least) std::tie(best, least) = std::tuple(std::optional{node}, load);
  }
  return best;
}

/// One job that waits, from the fullest server to the emptiest, if that lowers the higher of both.
void GandivaFair::balance(const View& view, PoolId pool) {
  const auto emptiest = least_loaded(view, pool, 1);
  if (!emptiest) return;
  NodeId fullest = *emptiest;
  for (const NodeId node : nodes_[pool.value]) {
    if (load_of(view, node) > load_of(view, fullest)) fullest = node;
  }
  const std::int32_t gpus = view.cluster.cluster().nodes[emptiest->value].gpus;
  std::optional<JobId> best;  // with the most tickets
  for (const JobId job : homed_[fullest.value]) {
    const Row& row = rows_[job.value];
    if (!row.is_waiting || view.gpus(job) > gpus) continue;
    if (load_of(view, *emptiest) + row.tickets / gpus >= load_of(view, fullest)) continue;
    const double most = best ? rows_[best->value].tickets : 0;
    if (!best || std::tuple(-row.tickets, job) < std::tuple(-most, *best)) best = job;
  }
  if (!best) return;
  set_home(*best, emptiest);
  rows_[best->value].start_cost = options_.migration_cost;
}

void GandivaFair::count_free(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  pool_free_.assign(cluster.pools.size(), 0);
  node_free_.assign(cluster.nodes.size(), 0);
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i)
    pool_free_[i] = view.cluster.usable_gpus(PoolId{i});
  if (view.cluster.mode() == ClusterState::Mode::Count) return;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    node_free_[i] = view.cluster.is_up(NodeId{i}) ? cluster.nodes[i].gpus : 0;
}

/// A turn, if its home (or for larger ones the type) still has devices enough in this quantum.
bool GandivaFair::try_choose(const View& view, const Plan& plan, JobId job) {
  Row& row = rows_[job.value];
  const std::int32_t gpus = view.gpus(job);
  row.plan.clear();
  if (pool_free_[row.pool->value] < gpus) return false;
  if (view.cluster.mode() == ClusterState::Mode::Devices) {
    if (row.home) {
      if (node_free_[row.home->value] < gpus) return false;
      row.plan.push_back({.node = *row.home, .gpus = gpus});
    } else if (!try_choose_spread(view, plan, job)) {
      return false;
    }
    for (const Slice& slice : row.plan) node_free_[slice.node.value] -= slice.gpus;
  }
  pool_free_[row.pool->value] -= gpus;
  return true;
}

/// Where it is, or on the emptiest servers.
bool GandivaFair::try_choose_spread(const View& view, const Plan& plan, JobId job) {
  Row& row = rows_[job.value];
  const auto fits = [&](const Slice& slice) { return node_free_[slice.node.value] >= slice.gpus; };
  if (plan.holds(job) && std::ranges::all_of(plan.slices(job), fits)) {
    row.plan.assign(plan.slices(job).begin(), plan.slices(job).end());
    return true;
  }
  std::vector<NodeId> servers;
  for (const NodeId node : nodes_[row.pool->value]) {
    if (node_free_[node.value] > 0) servers.push_back(node);
  }
  std::ranges::stable_sort(servers, std::ranges::greater{},
                           [&](NodeId node) { return node_free_[node.value]; });
  std::int64_t left = view.gpus(job);
  for (const NodeId node : servers) {
    const std::int64_t part = std::min(left, node_free_[node.value]);
    row.plan.push_back({.node = node, .gpus = static_cast<std::int32_t>(part)});
    left -= part;
    if (left == 0) break;
  }
  std::ranges::sort(row.plan, {}, &Slice::node);
  return left == 0;
}

void GandivaFair::take_turns(const View& view, Plan& plan) {
  if (is_changed_ || !newcomers_.empty()) update_shares(view);
  count_free(view);
  std::vector<JobId> chosen;
  const auto choose = [&](JobId job) {
    rows_[job.value].is_chosen = try_choose(view, plan, job);
    if (rows_[job.value].is_chosen) chosen.push_back(job);
  };
  // Whoever still pays for its start goes on: else a quantum below that cost would be the end of
  // all progress.
  const auto still_starts = [&](JobId job) {
    return plan.holds(job) && view.jobs.work_from[job] >= view.now;
  };
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    if (options_.balancing) balance(view, PoolId{i});
    const auto order = pools_[i].order();
    for (const GangStride::Entry& entry : order) {
      if (still_starts(entry.job)) choose(entry.job);
    }
    for (const GangStride::Entry& entry : order) {
      if (!still_starts(entry.job)) choose(entry.job);
    }
  }
  stop_others(plan);
  std::ranges::stable_sort(chosen, std::ranges::greater{},
                           [&](JobId job) { return view.gpus(job); });
  for (const JobId job : chosen) {
    if (!plan.holds(job)) start_as_planned(view, plan, job);
  }
  fill(view, plan);
  charge(plan);
}

/// Who has no turn, and who has it elsewhere.
void GandivaFair::stop_others(Plan& plan) {
  const auto same = [](const Slice& a, const Slice& b) {
    return a.node == b.node && a.gpus == b.gpus;
  };
  for (const GangStride& pool : pools_) {
    for (const GangStride::Entry& entry : pool.entries()) {
      const Row& row = rows_[entry.job.value];
      if (!plan.holds(entry.job)) continue;
      const bool stays =
          row.plan.empty() || std::ranges::equal(row.plan, plan.slices(entry.job), same);
      if (!row.is_chosen || !stays) plan.suspend(entry.job, Reason::TimeSlice);
    }
  }
}

void GandivaFair::start_as_planned(const View& view, Plan& plan, JobId job) {
  Row& row = rows_[job.value];
  if (view.cluster.mode() == ClusterState::Mode::Count) {
    static_cast<void>(plan.try_start_in(*row.pool, job, Reason::TimeSlice));
  } else {
    for (Slice& slice : row.plan) {
      slice.devices = lowest(plan.cluster().free_mask(slice.node), slice.gpus);
      if (std::popcount(slice.devices) != slice.gpus) return;
    }
    static_cast<void>(plan.try_start_on(job, *row.pool, row.plan, Reason::TimeSlice));
  }
  if (plan.holds(job)) plan.set_pause(job, row.start_cost);
}

/// On devices that nobody's turn uses; the place becomes its home.
bool GandivaFair::try_anywhere(const View& view, Plan& plan, JobId job) {
  Row& row = rows_[job.value];
  const auto can_start = [&](std::size_t type) {
    const PoolId pool{static_cast<std::uint32_t>(type)};
    return (*row.rates)[type] > 0 && plan.try_start_in(pool, job, Reason::Backfill);
  };
  const bool at_home = row.pool && can_start(row.pool->value);
  if (!at_home && std::ranges::none_of(fastest_first_, can_start)) return false;
  const bool is_new = !row.pool;
  const PoolId pool = plan.pool_of(job);
  const auto slices = plan.slices(job);
  const auto home = slices.size() == 1 ? std::optional{slices.front().node} : std::nullopt;
  const bool moved = !is_new && (*row.pool != pool || row.home != home);
  if (moved) row.start_cost = options_.migration_cost;
  plan.set_pause(job, row.start_cost);
  if (!is_new && !moved) return true;
  if (!is_new && *row.pool == pool) {  // it keeps its pass
    set_home(job, home);
    return true;
  }
  move_out(view, job);
  live_in(view, job, pool, home);
  return true;
}

bool GandivaFair::try_shape(const View& view, Plan& plan, JobId job) {
  const ShapeId shape = view.jobs.shape[job];
  if (blocked_[shape.value] || !plan.has_room(view.shapes[shape])) return false;
  const bool started = try_anywhere(view, plan, job);
  blocked_[shape.value] = !started;
  return started;
}

/// Nobody waits: whoever comes takes what is free, and no turns are needed.
void GandivaFair::start_newcomers(const View& view, Plan& plan) {
  blocked_.assign(view.shapes.size(), false);
  std::erase_if(newcomers_, [&](JobId job) {
    if (!try_shape(view, plan, job)) return false;
    rows_[job.value].is_waiting = false;
    return true;
  });
}

/// Whoever waits, by pass, on what is free.
void GandivaFair::fill(const View& view, Plan& plan) {
  if (plan.cluster().free_gpus() == 0) return;
  blocked_.assign(view.shapes.size(), false);
  std::vector<std::pair<double, JobId>> rest;
  for (const GangStride& pool : pools_) {
    for (const GangStride::Entry& entry : pool.entries()) {
      if (!plan.holds(entry.job)) rest.emplace_back(entry.pass, entry.job);
    }
  }
  std::ranges::sort(rest);
  for (const auto& [pass, job] : rest) static_cast<void>(try_shape(view, plan, job));
}

/// On what is free until the next quantum: who waits for a turn, by pass, then newcomers. It counts
/// as a turn. Whoever runs is left alone.
void GandivaFair::start_waiting(const View& view, Plan& plan) {
  drop_stale_newcomers();
  if (waiting_ > 0) {
    fill(view, plan);
    for (GangStride& pool : pools_) {
      for (GangStride::Entry& entry : pool.entries()) {
        Row& row = rows_[entry.job.value];
        if (!row.is_waiting || !plan.holds(entry.job)) continue;
        row.is_waiting = false;
        row.start_cost = options_.switch_cost;
        entry.charge();
        --waiting_;
      }
    }
  }
  start_newcomers(view, plan);
}

void GandivaFair::charge(const Plan& plan) {
  waiting_ = 0;
  for (GangStride& pool : pools_) {
    for (GangStride::Entry& entry : pool.entries()) {
      Row& row = rows_[entry.job.value];
      row.is_waiting = !plan.holds(entry.job);
      if (row.is_waiting) {
        row.start_cost = std::max(row.start_cost, options_.switch_cost);
        ++waiting_;
      } else {
        row.start_cost = options_.switch_cost;
        entry.charge();
      }
    }
  }
}

}  // namespace berth::gandiva_fair
