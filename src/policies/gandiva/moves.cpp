// Migration: to where somebody left, away from bad company, off loosely used servers, and between
// the classes of a pool.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "policies/gandiva/gandiva.h"

namespace berth::gandiva {

namespace {

constexpr double kBadCompany = 0.9;  // of the best rate seen

}  // namespace

bool Gandiva::may_move(const View& view, JobId job) {
  const JobRow& mine = jobs_[job.value];
  if (options_.migration == Mechanism::Off || mine.where != Where::Unit) return false;
  if (mine.moved && view.now - *mine.moved < options_.migrate_cooldown) return false;
  const UnitRow& here = row(mine.home);
  return !here.ring.seat_of(job)->guest && std::ranges::find(here.grown, job) == here.grown.end();
}

/// Changes ring; `servers` counts it at its new home and no longer at the old one.
void Gandiva::rehouse(const View& view, Plan& plan, JobId job, Home to, Reason reason) {
  JobRow& mine = jobs_[job.value];
  const Home from = mine.home;
  suspend(plan, job, reason);  // started elsewhere in this instant, it has migrated
  row(from).ring.remove(job);
  touch(view, from);
  settle_in(view, job, to);
  mine.moved = view.now;
  mine.start_cost = options_.migration_cost;
  blocked_.assign(blocked_.size(), false);
}

void Gandiva::migrate(const View& view, Plan& plan, JobId job, Home to, Reason reason) {
  const Home from = jobs_[job.value].home;
  servers(from).remove(from.unit, demand_of(view, job));
  rehouse(view, plan, job, to, reason);
}

/// One whose leaving makes the unit lower and that fits into `room`; who does not run first.
std::optional<JobId> Gandiva::job_that_lowers(const View& view, Home from, std::int32_t room) {
  const Servers::Unit& here = unit(from);
  const auto seats = row(from).ring.seats();
  for (std::size_t i = seats.size(); i-- > 0;) {
    const JobId job = seats[i].job;
    const std::int32_t gpus = demand_of(view, job).gpus;
    const std::int32_t height = (here.alloc - gpus + here.gpus - 1) / here.gpus;
    if (gpus <= room && height < here.height() && may_move(view, job)) return job;
  }
  return std::nullopt;
}

void Gandiva::pull_after_departures(const View& view, Plan& plan) {
  if (options_.migration == Mechanism::Off) return;
  std::vector<Home> left;
  for (const Home home : dirty_) {
    if (row(home).left_by != 0) left.push_back(home);
  }
  std::ranges::sort(left);
  for (const Home home : left) {
    const AffinityClass affinity = row(home).left_by;
    while (unit(home).in_use && unit(home).free() > 0) {
      const auto highest = servers(home).highest(affinity);
      if (!highest || *highest == home.unit) break;
      const Home source{home.pool, *highest};
      if (unit(source).height() <= 1) break;
      const auto job = job_that_lowers(view, source, unit(home).free());
      if (!job) break;
      servers(home).add(home.unit, demand_of(view, *job));
      migrate(view, plan, *job, home, Reason::Balance);
    }
  }
}

/// A job that runs clearly slower than it has run elsewhere moves to an empty server.
void Gandiva::leave_bad_company(const View& view, Plan& plan, Home home) {
  std::vector<JobId> unhappy;
  for (const Ring::Seat& seat : row(home).ring.running()) {
    const JobRow& mine = jobs_[seat.job.value];
    const double rate = view.jobs.rate[seat.job].value();
    const SeenRate seen{.value = rate,
                        .is_measured = view.measured_over(seat.job) > Duration::zero()};
    const bool slow = view.jobs.is_running(seat.job) && are_alike(seen, mine.best) &&
                      view.jobs.basis[seat.job] != RateBasis::Awaited &&
                      rate < kBadCompany * mine.best.value;
    if (slow && row(home).ring.seats().size() > 1 && may_move(view, seat.job) &&
        is_worth_moving(rate, mine.best.value, to_seconds(options_.horizon),
                        to_seconds(options_.migration_cost))) {
      unhappy.push_back(seat.job);
    }
  }
  std::ranges::sort(unhappy);
  for (const JobId job : unhappy) {
    const auto found = try_step(home.pool, Step::Empty, demand_of(view, job));
    if (!found) return;
    migrate(view, plan, job, {home.pool, *found}, Reason::Interference);
  }
}

/// Servers that are loose enough to give jobs away, with those that may move.
std::vector<Occupied> Gandiva::loose_servers(const View& view, PoolId pool) {
  const Servers& all = pools_[pool.value].servers;
  std::vector<UnitId> loose;
  all.append_loose(options_.defrag_threshold, loose);
  std::vector<Occupied> occupied;
  for (const UnitId id : loose) {
    if (all[id].free() == 0) continue;
    occupied.push_back({.server = id, .gpus = all[id].gpus, .free = all[id].free(), .movable = {}});
    for (const Ring::Seat& seat : row({pool, id}).ring.seats()) {
      if (may_move(view, seat.job))
        occupied.back().movable.emplace_back(demand_of(view, seat.job).gpus, seat.job);
    }
  }
  return occupied;
}

/// Servers that jobs of the loose ones may go to. A move changes the free GPUs of two servers and
/// looks for the lowest of one number, so that of each number as many as `moves` can change, and
/// two more, are all that it can ever meet.
void Gandiva::append_targets(PoolId pool, std::size_t moves, std::vector<Occupied>& occupied) {
  const Servers& all = pools_[pool.value].servers;
  for (std::int32_t free = all.largest_server() - 1; free > 0; --free) {
    std::size_t left = 2 * moves + 2;
    for (const UnitId id : all.with_free(free)) {
      if (left-- == 0) break;
      const bool is_listed = free >= options_.defrag_threshold * all[id].gpus;
      if (is_listed) continue;
      occupied.push_back({.server = id, .gpus = all[id].gpus, .free = free, .movable = {}});
    }
  }
}

/// Only if one of the servers that are loose by the measure of the largest has a job to give.
void Gandiva::defragment_pool(const View& view, Plan& plan, PoolId pool) {
  std::vector<Occupied> occupied = loose_servers(view, pool);
  const std::int32_t largest = pools_[pool.value].servers.largest_server();
  const auto least = static_cast<std::int32_t>(std::floor(options_.defrag_threshold * largest));
  std::size_t moves = 0;
  bool any_loose = false;
  for (const Occupied& server : occupied) {
    moves += server.movable.size();
    any_loose =
        any_loose || (!server.movable.empty() && server.free >= std::min(least, largest - 1));
  }
  if (!any_loose) return;
  append_targets(pool, moves, occupied);
  for (const Move& move : defragment(std::move(occupied), options_.defrag_threshold)) {
    pools_[pool.value].servers.add(move.to, demand_of(view, move.job));
    migrate(view, plan, move.job, {pool, move.to}, Reason::Defragment);
  }
}

void Gandiva::rebalance(const View& view, Plan& plan) {
  rebalances_.settle();
  if (options_.migration == Mechanism::Off) return;
  for (std::uint32_t pool = 0; pool < pools_.size(); ++pool)
    rebalance_pool(view, plan, PoolId{pool});
}

/// Residents of the class's high units go to empty servers.
void Gandiva::relieve(const View& view, Plan& plan, PoolId pool, AffinityClass affinity) {
  while (const auto highest = pools_[pool.value].servers.highest(affinity)) {
    const Home source{pool, *highest};
    if (unit(source).height() <= 1) return;
    const auto job = job_that_lowers(view, source, unit(source).gpus);
    if (!job) return;
    const Demand demand = demand_of(view, *job);
    auto found = try_step(pool, Step::SameClass, demand);
    if (!found) found = try_step(pool, Step::Empty, demand);
    if (!found) return;
    migrate(view, plan, *job, {pool, *found}, Reason::Balance);
  }
}

/// All residents of the server find a place with their own classes, or nothing happens.
bool Gandiva::empty_a_server(const View& view, Plan& plan, Home home) {
  std::vector<JobId> residents;
  for (const Ring::Seat& seat : row(home).ring.seats()) {
    if (!may_move(view, seat.job)) return false;
    residents.push_back(seat.job);
  }
  Servers& here = servers(home);
  for (const JobId job : residents) here.remove(home.unit, demand_of(view, job));
  std::vector<UnitId> found;
  for (const JobId job : residents) {
    auto place = try_step(home.pool, Step::SameClass, demand_of(view, job));
    if (!place) place = try_step(home.pool, Step::Oversubscribe, demand_of(view, job));
    if (!place) break;
    found.push_back(*place);
  }
  const bool all_found = found.size() == residents.size();
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if (all_found) {
      rehouse(view, plan, residents[i], {home.pool, found[i]}, Reason::Balance);
      continue;
    }
    if (i < found.size()) here.remove(found[i], demand_of(view, residents[i]));
    here.add(home.unit, demand_of(view, residents[i]));
  }
  return all_found;
}

/// Classes below what they deserve get empty servers, and if there are none the least loaded ones
/// of classes that have more than they deserve; a class with jobs keeps at least one.
void Gandiva::rebalance_pool(const View& view, Plan& plan, PoolId pool) {
  PoolRow& here = pools_[pool.value];
  std::map<AffinityClass, std::int64_t> demand = here.queued;
  for (const auto& [affinity, load] : here.servers.classes()) demand[affinity] += load.alloc;
  const auto shares = deserved(demand, here.servers.gpus());
  const auto gpus_of = [&](AffinityClass affinity) {
    const auto load = here.servers.classes().find(affinity);
    return load == here.servers.classes().end() ? std::int64_t{0} : load->second.gpus;
  };
  std::vector<std::tuple<std::int64_t, AffinityClass>> below;
  for (const auto& [affinity, share] : shares) {
    if (gpus_of(affinity) < share) below.emplace_back(gpus_of(affinity) - share, affinity);
  }
  std::ranges::sort(below);
  for (const auto& [deficit, affinity] : below) {
    relieve(view, plan, pool, affinity);
    for (const auto& [other, share] : shares) {
      while (other != affinity && gpus_of(affinity) < shares.at(affinity)) {
        const auto least = here.servers.least_loaded(other);
        if (!least || here.servers[*least].is_set()) break;
        const bool surplus = gpus_of(other) - here.servers[*least].gpus >= share &&
                             here.servers.classes().at(other).units > 1;
        if (!surplus || !empty_a_server(view, plan, {pool, *least})) break;
        place_queue(view, affinity);
        relieve(view, plan, pool, affinity);
      }
    }
  }
}

}  // namespace berth::gandiva
