#include "policies/gandiva/migration.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/int128.h"

namespace berth::gandiva {

namespace {

constexpr double kBadCompany = 0.9;  // of the best rate seen

}  // namespace

bool is_worth_moving(double speed_here, double speed_there, double horizon, double cost) noexcept {
  return (speed_there - speed_here) * horizon > speed_there * cost;
}

std::map<AffinityClass, std::int64_t> deserved(const std::map<AffinityClass, std::int64_t>& demand,
                                               std::int64_t gpus) {
  std::int64_t total = 0;
  for (const auto& [affinity, wanted] : demand) total += wanted;
  std::map<AffinityClass, std::int64_t> shares;
  for (const auto& [affinity, wanted] : demand) {
    const Int128 share = total == 0 ? Int128{0} : Int128{gpus} * wanted / total;
    shares[affinity] = std::min(wanted, static_cast<std::int64_t>(share));
  }
  return shares;
}

bool Migration::may_move(const Pass& pass, JobId job) const {
  const auto home = housing_.home_of(job);
  if (!home || is_grown(pass.view, pass.plan, job)) return false;
  if (moved_[job] && pass.view.now - *moved_[job] < options_.migrate_cooldown) return false;
  return !housing_.ring(*home).seat_of(job)->guest;
}

/// Room is taken at its new home and given back at the old one.
void Migration::rehouse(Pass& pass, JobId job, Home to, Reason reason) {
  turns_.suspend(pass.plan, job, reason);  // started elsewhere in this instant, it has migrated
  housing_.rehouse(job, pass.view.gpus(job), to);
  housing_.set_start_cost(job, options_.migration_cost);
  moved_[job] = pass.view.now;
}

/// Room is taken at its new home.
void Migration::migrate(Pass& pass, JobId job, Home to, Reason reason) {
  housing_.give_room(*housing_.home_of(job), housing_.demand_of(pass.view, job));
  rehouse(pass, job, to, reason);
}

/// A job whose leaving lowers the unit and that fits into `room`; suspended ones first.
std::optional<JobId> Migration::job_that_lowers(const Pass& pass, Home from,
                                                std::int32_t room) const {
  const Servers::Unit& unit = housing_.unit(from);
  const auto seats = housing_.ring(from).seats();
  for (std::size_t i = seats.size(); i-- > 0;) {
    const JobId job = seats[i].job;
    const std::int32_t gpus = housing_.demand_of(pass.view, job).gpus;
    const std::int32_t height = (unit.alloc - gpus + unit.gpus - 1) / unit.gpus;
    if (gpus <= room && height < unit.height() && may_move(pass, job)) return job;
  }
  return std::nullopt;
}

void Migration::pull_after_departures(Pass& pass) {
  if (options_.migration == Mechanism::Off) return;
  for (const auto& [home, affinity] : housing_.left()) {
    const Servers& servers = housing_.servers(home.pool);
    const Servers::Unit& unit = housing_.unit(home);
    while (unit.in_use && unit.free() > 0) {
      const auto highest = servers.highest(affinity);
      if (!highest || *highest == home.unit || servers[*highest].height() <= 1) break;
      const auto job = job_that_lowers(pass, {home.pool, *highest}, unit.free());
      if (!job) break;
      housing_.take_room(home, housing_.demand_of(pass.view, *job));
      migrate(pass, *job, home, Reason::Balance);
    }
  }
}

void Migration::on_tick(Pass& pass, std::span<const Home> changed) {
  if (options_.migration == Mechanism::Off || changed.empty()) return;
  for (const Home home : changed) leave_bad_company(pass, home);
  for (std::uint32_t pool = 0; pool < housing_.pools(); ++pool) defragment_pool(pass, PoolId{pool});
}

/// It runs clearly slower than it has run before, and moving to an empty server pays.
bool Migration::is_in_bad_company(const View& view, JobId job) const {
  if (!view.jobs.is_running(job) || view.jobs.basis[job] == RateBasis::Awaited) return false;
  const SeenRate rate = rate_now(view, job);
  const SeenRate& best = observations_.of(job).best;
  return are_alike(rate, best) && rate.value < kBadCompany * best.value &&
         is_worth_moving(rate.value, best.value, to_seconds(options_.horizon),
                         to_seconds(options_.migration_cost));
}

void Migration::leave_bad_company(Pass& pass, Home home) {
  const Ring& ring = housing_.ring(home);
  if (ring.seats().size() <= 1) return;
  std::vector<JobId> unhappy;
  for (const Ring::Seat& seat : ring.running())
    if (is_in_bad_company(pass.view, seat.job) && may_move(pass, seat.job))
      unhappy.push_back(seat.job);
  std::ranges::sort(unhappy);
  for (const JobId job : unhappy) {
    const Demand& demand = housing_.demand_of(pass.view, job);
    const auto found = housing_.take_room(home.pool, Step::Empty, demand);
    if (!found) return;
    migrate(pass, job, {home.pool, *found}, Reason::Interference);
  }
}

/// Servers that are loose enough to give jobs away, with those that may move.
std::vector<Occupied> Migration::loose_servers(const Pass& pass, PoolId pool) const {
  const Servers& servers = housing_.servers(pool);
  std::vector<UnitId> loose;
  servers.append_loose(options_.defrag_threshold, loose);
  std::vector<Occupied> occupied;
  for (const UnitId id : loose) {
    const Servers::Unit& unit = servers[id];
    if (unit.free() == 0) continue;
    occupied.push_back({.server = id, .gpus = unit.gpus, .free = unit.free(), .movable = {}});
    for (const Ring::Seat& seat : housing_.ring({pool, id}).seats()) {
      if (may_move(pass, seat.job))
        occupied.back().movable.emplace_back(housing_.demand_of(pass.view, seat.job).gpus,
                                             seat.job);
    }
  }
  return occupied;
}

/// Servers that jobs of the loose ones may go to. A move changes the free GPUs of two servers and
/// looks for the lowest of one number, so that of each number as many as `moves` can change, and
/// two more, are all that it can ever meet.
void Migration::append_targets(PoolId pool, std::size_t moves,
                               std::vector<Occupied>& occupied) const {
  const Servers& servers = housing_.servers(pool);
  for (std::int32_t free = servers.largest_server() - 1; free > 0; --free) {
    std::size_t left = 2 * moves + 2;
    for (const UnitId id : servers.with_free(free)) {
      if (left-- == 0) break;
      const std::int32_t gpus = servers[id].gpus;
      const bool is_listed = free >= options_.defrag_threshold * gpus;
      if (!is_listed) occupied.push_back({.server = id, .gpus = gpus, .free = free, .movable = {}});
    }
  }
}

/// Only if one of the servers that are loose by the measure of the largest has a job to give.
void Migration::defragment_pool(Pass& pass, PoolId pool) {
  std::vector<Occupied> occupied = loose_servers(pass, pool);
  const std::int32_t largest = housing_.servers(pool).largest_server();
  const auto loose = static_cast<std::int32_t>(std::floor(options_.defrag_threshold * largest));
  const std::int32_t least = std::min(loose, largest - 1);
  std::size_t moves = 0;
  bool any_loose = false;
  for (const Occupied& server : occupied) {
    moves += server.movable.size();
    any_loose = any_loose || (!server.movable.empty() && server.free >= least);
  }
  if (!any_loose) return;
  append_targets(pool, moves, occupied);
  for (const Move& move : defragment(std::move(occupied), options_.defrag_threshold)) {
    const Home to{pool, move.to};
    housing_.take_room(to, housing_.demand_of(pass.view, move.job));
    migrate(pass, move.job, to, Reason::Defragment);
  }
}

void Migration::rebalance(Pass& pass) {
  if (options_.migration == Mechanism::Off) return;
  for (std::uint32_t pool = 0; pool < housing_.pools(); ++pool) rebalance_pool(pass, PoolId{pool});
}

/// Residents of the class's high units go to empty servers.
void Migration::relieve(Pass& pass, PoolId pool, AffinityClass affinity) {
  while (const auto highest = housing_.servers(pool).highest(affinity)) {
    const Home source{pool, *highest};
    if (housing_.unit(source).height() <= 1) return;
    const auto job = job_that_lowers(pass, source, housing_.unit(source).gpus);
    if (!job) return;
    const Demand& demand = housing_.demand_of(pass.view, *job);
    auto found = housing_.take_room(pool, Step::SameClass, demand);
    if (!found) found = housing_.take_room(pool, Step::Empty, demand);
    if (!found) return;
    migrate(pass, *job, {pool, *found}, Reason::Balance);
  }
}

/// All residents of the server find a place with their own classes, or nothing happens.
bool Migration::empty_a_server(Pass& pass, Home home) {
  std::vector<JobId> residents;
  for (const Ring::Seat& seat : housing_.ring(home).seats()) {
    if (!may_move(pass, seat.job)) return false;
    residents.push_back(seat.job);
  }
  const auto demand = [&](JobId job) { return housing_.demand_of(pass.view, job); };
  for (const JobId job : residents) housing_.give_room(home, demand(job));
  std::vector<Home> found;
  for (const JobId job : residents) {
    auto place = housing_.take_room(home.pool, Step::SameClass, demand(job));
    if (!place) place = housing_.take_room(home.pool, Step::Oversubscribe, demand(job));
    if (!place) break;
    found.push_back({home.pool, *place});
  }
  const bool all_found = found.size() == residents.size();
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if (all_found) {
      rehouse(pass, residents[i], found[i], Reason::Balance);
      continue;
    }
    if (i < found.size()) housing_.give_room(found[i], demand(residents[i]));
    housing_.take_room(home, demand(residents[i]));
  }
  return all_found;
}

void Migration::rebalance_pool(Pass& pass, PoolId pool) {
  const Servers& servers = housing_.servers(pool);
  std::map<AffinityClass, std::int64_t> demand = housing_.queued(pool);
  for (const auto& [affinity, load] : servers.classes()) demand[affinity] += load.alloc;
  const auto shares = deserved(demand, servers.gpus());
  const auto gpus_of = [&](AffinityClass affinity) {
    const auto load = servers.classes().find(affinity);
    return load == servers.classes().end() ? std::int64_t{0} : load->second.gpus;
  };
  std::vector<std::tuple<std::int64_t, AffinityClass>> below;
  for (const auto& [affinity, share] : shares)
    if (gpus_of(affinity) < share) below.emplace_back(gpus_of(affinity) - share, affinity);
  std::ranges::sort(below);
  for (const auto& [deficit, affinity] : below) {
    relieve(pass, pool, affinity);
    for (const auto& [other, share] : shares) {
      while (other != affinity && gpus_of(affinity) < shares.at(affinity)) {
        const auto least = servers.least_loaded(other);
        if (!least || servers[*least].is_set()) break;
        const bool surplus =
            gpus_of(other) - servers[*least].gpus >= share && servers.classes().at(other).units > 1;
        if (!surplus || !empty_a_server(pass, {pool, *least})) break;
        housing_.place_queue(pass.view, affinity);
        relieve(pass, pool, affinity);
      }
    }
  }
}

}  // namespace berth::gandiva
