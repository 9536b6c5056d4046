#include "policies/gandiva_fair/gandiva_fair.h"

#include <algorithm>
#include <numeric>

namespace berth::gandiva_fair {

void GandivaFair::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  rows_.resize(view.jobs.size());
  pools_.resize(cluster.pools.size());
  nodes_.resize(cluster.pools.size());
  homed_.resize(cluster.nodes.size());
  node_tickets_.resize(cluster.nodes.size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    nodes_[cluster.nodes[i].pool.value].push_back(NodeId{i});
  fastest_first_.resize(cluster.pools.size());
  std::iota(fastest_first_.begin(), fastest_first_.end(), std::size_t{0});
  std::ranges::stable_sort(fastest_first_, std::ranges::greater{},
                           [&](std::size_t type) { return cluster.pools[type].speed; });
}

const std::vector<double>& GandivaFair::rates_of(const View& view, JobId job) {
  const auto [entry, is_new] = rates_.try_emplace({view.jobs.profile[job], view.jobs.reference[job],
                                                   view.jobs.batch[job], view.jobs.shape[job]});
  if (!is_new) return entry->second;
  entry->second.resize(view.cluster.pools());
  for (const PoolId pool : view.shape(job).pools) {
    Standing standing;
    standing.profile = view.jobs.profile[job];
    standing.pool = pool;
    standing.reference = view.jobs.reference[job];
    standing.gpus = standing.wanted = view.gpus(job);
    standing.batch = view.jobs.batch[job];
    standing.level = view.believed().best_level(pool, standing.gpus);
    entry->second[pool.value] = view.believed().alone(standing);
  }
  return entry->second;
}

std::uint32_t GandivaFair::user_of(const View& view, JobId job) {
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

void GandivaFair::on_arrival(const View& view, JobId job) {
  Row& row = rows_[job.value];
  row.user = user_of(view, job);
  row.rates = &rates_of(view, job);
  users_[row.user].jobs[job] = {.gpus = view.gpus(job), .rates = *row.rates};
  newcomers_.push_back(job);
  ++active_;
  is_changed_ = true;
  rounds_.stir(view.now);
}

void GandivaFair::on_departure(const View& view, JobId job) {
  Row& row = rows_[job.value];
  if (row.pool) {
    move_out(view, job);
    if (row.is_waiting) --waiting_;
  }
  row.rates = nullptr;
  users_[row.user].jobs.erase(job);
  --active_;
  is_changed_ = true;
  if (waiting_ > 0) rounds_.stir(view.now);
}

void GandivaFair::on_requeue(const View& view, JobId job) {
  move_out(view, job);
  rows_[job.value].is_waiting = true;
  newcomers_.push_back(job);
  is_changed_ = true;
  rounds_.stir(view.now);
}

/// Who lived on a server that went down finds another home.
void GandivaFair::on_capacity_change(const View& view, NodeId node) {
  is_changed_ = true;
  rounds_.stir(view.now);
  if (view.cluster.is_up(node)) return;
  const std::vector<JobId> jobs = homed_[node.value];
  for (const JobId job : jobs) {
    move_out(view, job);
    if (rows_[job.value].is_waiting) --waiting_;
    rows_[job.value].is_waiting = true;
    newcomers_.push_back(job);
  }
}

/// Who sold all of a type still gets a crumb of it, so that every job ends.
double GandivaFair::tickets_of(const User& user, PoolId pool) const noexcept {
  return std::max(user.owned[pool.value], user.tickets * 1e-3);
}

void GandivaFair::live_in(const View& view, JobId job, PoolId pool, std::optional<NodeId> home) {
  Row& row = rows_[job.value];
  User& user = users_[row.user];
  row.pool = pool;
  row.tickets = tickets_of(user, pool);
  user.used[pool.value] += view.gpus(job);
  pools_[pool.value].add(job, view.gpus(job), row.tickets);
  set_home(job, home);
}

void GandivaFair::move_out(const View& view, JobId job) {
  Row& row = rows_[job.value];
  if (!row.pool) return;
  set_home(job, std::nullopt);
  users_[row.user].used[row.pool->value] -= view.gpus(job);
  pools_[row.pool->value].remove(job);
  row.pool.reset();
}

void GandivaFair::set_home(JobId job, std::optional<NodeId> home) {
  Row& row = rows_[job.value];
  if (row.home) {
    std::erase(homed_[row.home->value], job);
    node_tickets_[row.home->value] -= row.tickets;
  }
  row.home = home;
  if (!home) return;
  homed_[home->value].push_back(job);
  node_tickets_[home->value] += row.tickets;
}

std::optional<Time> GandivaFair::next_wakeup(const View& view) { return rounds_.wakeup(view.now); }

void GandivaFair::decide(const View& view, Plan& plan, Rng&) {
  if (active_ == 0) rounds_.settle();
  if (!rounds_.is_due(view.now)) {
    if (options_.start == StartRule::AtOnce) start_waiting(view, plan);
    return;
  }
  rounds_.hold(view.now);
  drop_stale_newcomers();
  if (waiting_ > 0) {
    take_turns(view, plan);
  } else {
    start_newcomers(view, plan);
    if (!newcomers_.empty()) take_turns(view, plan);
  }
  const bool nobody_runs = waiting_ == active_;
  if (waiting_ == 0 || nobody_runs) rounds_.settle();
}

void GandivaFair::drop_stale_newcomers() {
  std::ranges::sort(newcomers_);  // one may be there twice: its server and it were lost
  newcomers_.erase(std::unique(newcomers_.begin(), newcomers_.end()), newcomers_.end());
  std::erase_if(newcomers_, [&](JobId job) {
    const Row& row = rows_[job.value];
    return row.rates == nullptr || row.pool.has_value();
  });
}

/// What every user owns now, where its jobs should live, and their tickets.
void GandivaFair::update_shares(const View& view) {
  std::vector<double> gpus;
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    gpus.push_back(static_cast<double>(view.cluster.usable_gpus(PoolId{i})));
  share_out(users_, gpus);
  if (options_.trading) trade_all(users_, fastest_first_);
  for (const JobId job : newcomers_) house(view, job);
  newcomers_.clear();
  move_between_types(view);
  set_tickets();
  is_changed_ = false;
}

/// The type of which its user has most left; the faster one if equal.
PoolId GandivaFair::best_pool(JobId job) const {
  const Row& row = rows_[job.value];
  const User& user = users_[row.user];
  std::optional<std::size_t> best;
  const auto left = [&](std::size_t type) { return user.owned[type] - user.used[type]; };
  for (const std::size_t type : fastest_first_) {
    if ((*row.rates)[type] > 0 && (!best || left(type) > left(*best))) best = type;
  }
  return PoolId{static_cast<std::uint32_t>(best.value_or(0))};
}

void GandivaFair::house(const View& view, JobId job) {
  const PoolId pool = best_pool(job);
  live_in(view, job, pool, least_loaded(view, pool, view.gpus(job)));
  rows_[job.value].is_waiting = true;
  ++waiting_;
}

/// Jobs that wait, from types of which their user uses more than it owns to those of which less.
void GandivaFair::move_between_types(const View& view) {
  for (User& user : users_) {
    for (const auto& [job, owned] : user.jobs) {
      const Row& row = rows_[job.value];
      if (!row.pool || !row.is_waiting) continue;
      const std::size_t from = row.pool->value;
      if (user.used[from] <= user.owned[from]) continue;
      const PoolId to = best_pool(job);
      if (to == *row.pool || user.owned[to.value] - user.used[to.value] < owned.gpus) continue;
      move_out(view, job);
      live_in(view, job, to, least_loaded(view, to, owned.gpus));
      rows_[job.value].start_cost = options_.migration_cost;
    }
  }
}

void GandivaFair::set_tickets() {
  node_tickets_.assign(node_tickets_.size(), 0);
  for (std::uint32_t type = 0; type < pools_.size(); ++type) {
    std::vector<double> jobs(users_.size());
    for (const GangStride::Entry& entry : pools_[type].entries())
      jobs[rows_[entry.job.value].user] += 1;
    for (GangStride::Entry& entry : pools_[type].entries()) {
      Row& row = rows_[entry.job.value];
      row.tickets = tickets_of(users_[row.user], PoolId{type}) / jobs[row.user];
      entry.tickets = row.tickets;
      if (row.home) node_tickets_[row.home->value] += row.tickets;
    }
  }
}

}  // namespace berth::gandiva_fair

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  gandiva_fair::Options options;
  BERTH_TRY(options.quantum, params.duration("quantum"));
  if (options.quantum <= Duration::zero()) return params.wrong("quantum", "must be more than zero");
  BERTH_TRY(const auto start, params.choice("start", {"turn", "now"}));
  options.start = static_cast<StartRule>(start);
  BERTH_TRY(options.switch_cost, params.duration("switch_cost"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  BERTH_TRY(options.trading, params.flag("trading"));
  BERTH_TRY(options.balancing, params.flag("balancing"));
  BERTH_TRY(const auto list, params.named_numbers("tickets"));
  for (const auto& [user, numbers] : list) {
    if (numbers.size() != 1 || numbers[0] < 1e-3 || numbers[0] > 1e6)
      return params.wrong("tickets", "must be USER:tickets with tickets from 0.001 to 1000000");
    options.tickets.emplace_back(user, numbers[0]);
  }
  return std::make_unique<gandiva_fair::GandivaFair>(entry.name, std::move(options));
}

}  // namespace

PolicyEntry gandiva_fair_entry() {
  return {
      .name = "gandiva-fair",
      .summary =
          "tickets per user on every device type, gangs by stride; users trade fast for slow GPUs",
      .params =
          {{"quantum", "60", "seconds of a turn, aligned to time zero"},
           {"start", "turn",
            "of a job that waits beside free devices: turn: with the next turns; now: at once",
            "now"},
           {"tickets", "", "USER:tickets, comma separated; others have 1"},
           {"trading", "on", "let users trade fast devices for slow ones"},
           {"balancing", "on", "even out tickets per GPU over servers"},
           {"switch_cost", "1", "seconds a job pays when its turn begins"},
           {"migration_cost", "2", "seconds a job pays when it changes server or type"}},
      .make = make};
}

}  // namespace berth
