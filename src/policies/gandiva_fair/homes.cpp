#include "policies/gandiva_fair/homes.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace berth::gandiva_fair {

void Homes::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  rows_.resize(view.jobs.size());
  pools_.resize(cluster.pools.size());
  homed_.resize(cluster.nodes.size());
  node_tickets_.resize(cluster.nodes.size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    pools_[cluster.nodes[i].pool].nodes.push_back(NodeId{i});
  fastest_first_.resize(cluster.pools.size());
  std::iota(fastest_first_.begin(), fastest_first_.end(), std::size_t{0});
  std::ranges::stable_sort(fastest_first_, std::ranges::greater{},
                           [&](std::size_t type) { return cluster.pools[type].speed; });
}

std::uint32_t Homes::user_of(const View& view, JobId job) {
  const NameId name = view.request(job).user;
  const auto next = static_cast<std::uint32_t>(users_.size());
  const auto [entry, is_new] = user_index_.try_emplace(name, next);
  if (!is_new) return entry->second;
  User& user = users_.emplace_back();
  user.owned.resize(view.cluster.pools());
  user.used.resize(view.cluster.pools());
  const auto given =
      std::ranges::find(options_.tickets, view.text(name), &std::pair<std::string, double>::first);
  if (given != options_.tickets.end()) user.tickets = given->second;
  return next;
}

void Homes::add(const View& view, JobId job) {
  Row& row = rows_[job];
  row.user = user_of(view, job);
  row.rates = &beliefs_.rates(view, job);
  users_[row.user].jobs[job] = {.gpus = view.gpus(job), .rates = *row.rates};
}

void Homes::remove(const View& view, JobId job) {
  move_out(view, job);
  rows_[job].rates = nullptr;
  users_[rows_[job].user].jobs.erase(job);
}

void Homes::set_waiting(JobId job, bool is_waiting) {
  Row& row = rows_[job];
  if (row.pool && row.is_waiting) --waiting_;
  if (row.pool && is_waiting) ++waiting_;
  row.is_waiting = is_waiting;
}

void Homes::live_in(const View& view, JobId job, PoolId pool, std::optional<NodeId> home) {
  Row& row = rows_[job];
  User& user = users_[row.user];
  row.pool = pool;
  row.tickets = tickets_of(user, pool);
  user.used[pool.value] += view.gpus(job);
  stride(pool).add(job, view.gpus(job), row.tickets);
  set_home(job, home);
  if (row.is_waiting) ++waiting_;
}

void Homes::move_out(const View& view, JobId job) {
  Row& row = rows_[job];
  if (!row.pool) return;
  set_home(job, std::nullopt);
  users_[row.user].used[row.pool->value] -= view.gpus(job);
  stride(*row.pool).remove(job);
  row.pool.reset();
  if (row.is_waiting) --waiting_;
}

void Homes::set_home(JobId job, std::optional<NodeId> home) {
  Row& row = rows_[job];
  if (row.home) {
    std::erase(homed_[*row.home], job);
    node_tickets_[*row.home] -= row.tickets;
  }
  row.home = home;
  if (!home) return;
  homed_[*home].push_back(job);
  node_tickets_[*home] += row.tickets;
}

void Homes::update_shares(const View& view, std::span<const JobId> newcomers) {
  std::vector<double> gpus;
  for (std::uint32_t i = 0; i < pools(); ++i)
    gpus.push_back(static_cast<double>(view.cluster.usable_gpus(PoolId{i})));
  share_out(users_, gpus);
  if (options_.trading == Mechanism::On) trade_all(users_, fastest_first_);
  for (const JobId job : newcomers) {
    const PoolId pool = best_pool(job);
    set_waiting(job, true);
    live_in(view, job, pool, least_loaded(view, pool, view.gpus(job)));
  }
  move_between_types(view);
  set_tickets();
}

/// Who sold all of a type still gets a crumb of it, so that every job ends.
double Homes::tickets_of(const User& user, PoolId pool) const noexcept {
  return std::max(user.owned[pool.value], user.tickets * 1e-3);
}

/// The type of which its user has most left; the faster one if equal.
PoolId Homes::best_pool(JobId job) const {
  const Row& row = rows_[job];
  const User& user = users_[row.user];
  std::optional<std::size_t> best;
  const auto left = [&](std::size_t type) { return user.owned[type] - user.used[type]; };
  for (const std::size_t type : fastest_first_) {
    if ((*row.rates)[type] > 0 && (!best || left(type) > left(*best))) best = type;
  }
  return PoolId{static_cast<std::uint32_t>(best.value_or(0))};
}

/// Jobs that wait, from types of which their user uses more than it owns to those of which less.
void Homes::move_between_types(const View& view) {
  for (const User& user : users_) {
    for (const auto& [job, owned] : user.jobs) {
      const Row& row = rows_[job];
      if (!row.pool || !row.is_waiting) continue;
      const std::size_t from = row.pool->value;
      if (user.used[from] <= user.owned[from]) continue;
      const PoolId to = best_pool(job);
      if (to == *row.pool || user.owned[to.value] - user.used[to.value] < owned.gpus) continue;
      move_out(view, job);
      live_in(view, job, to, least_loaded(view, to, owned.gpus));
      set_start_cost(job, options_.migration_cost);
    }
  }
}

/// Summed up anew: what was added and taken away before has left rounding errors.
void Homes::set_tickets() {
  node_tickets_ = Column<NodeId, double>(node_tickets_.size());
  std::vector<double> jobs;  // by user
  for (std::uint32_t i = 0; i < pools(); ++i) {
    const PoolId pool{i};
    jobs.assign(users_.size(), 0);
    for (const GangStride::Entry& entry : stride(pool).entries()) jobs[rows_[entry.job].user] += 1;
    for (GangStride::Entry& entry : stride(pool).entries()) {
      Row& row = rows_[entry.job];
      row.tickets = tickets_of(users_[row.user], pool) / jobs[row.user];
      entry.tickets = row.tickets;
      if (row.home) node_tickets_[*row.home] += row.tickets;
    }
  }
}

double Homes::load_of(const View& view, NodeId node) const {
  return node_tickets_[node] / view.cluster.cluster().nodes[node.value].gpus;
}

/// Nothing if the job is larger than any server, or servers do not count.
std::optional<NodeId> Homes::least_loaded(const View& view, PoolId pool, std::int32_t gpus) const {
  if (view.cluster.mode() == ClusterState::Mode::Count) return std::nullopt;
  std::optional<NodeId> best;
  double least = 0;
  for (const NodeId node : nodes(pool)) {
    if (view.cluster.cluster().nodes[node.value].gpus < gpus || !view.cluster.is_up(node)) continue;
    const double load = load_of(view, node);
    if (!best || load < least) std::tie(best, least) = std::tuple(std::optional{node}, load);
  }
  return best;
}

void Homes::balance(const View& view, PoolId pool) {
  const auto emptiest = least_loaded(view, pool, 1);
  if (!emptiest) return;
  NodeId fullest = *emptiest;
  for (const NodeId node : nodes(pool))
    if (load_of(view, node) > load_of(view, fullest)) fullest = node;
  const std::int32_t gpus = view.cluster.cluster().nodes[emptiest->value].gpus;
  std::optional<JobId> best;  // with the most tickets
  for (const JobId job : homed_[fullest]) {
    const Row& row = rows_[job];
    if (!row.is_waiting || view.gpus(job) > gpus) continue;
    if (load_of(view, *emptiest) + row.tickets / gpus >= load_of(view, fullest)) continue;
    const double most = best ? rows_[*best].tickets : 0;
    if (!best || std::tuple(-row.tickets, job) < std::tuple(-most, *best)) best = job;
  }
  if (!best) return;
  set_home(*best, emptiest);
  set_start_cost(*best, options_.migration_cost);
}

}  // namespace berth::gandiva_fair
