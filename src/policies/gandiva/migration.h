// Migration: to where a job has left, away from neighbours that slow a job down, off loosely used
// servers, and between the affinity classes of a pool. A job that has moved stays for a while;
// packed and grown jobs do not move.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "policies/gandiva/defragment.h"
#include "policies/gandiva/housing.h"
#include "policies/gandiva/observations.h"
#include "policies/gandiva/turns.h"
#include "policies/kit/pass.h"

namespace berth::gandiva {

/// Does what the job gains until `horizon` exceed what it loses while it moves? Seconds.
[[nodiscard]] bool is_worth_moving(double speed_here, double speed_there, double horizon,
                                   double cost) noexcept;

/// What each class deserves of `gpus`: its share by demand, never more than its demand.
[[nodiscard]] std::map<AffinityClass, std::int64_t> deserved(
    const std::map<AffinityClass, std::int64_t>& demand, std::int64_t gpus);

/// None of these does anything if migration is off.
class Migration {
 public:
  Migration(const Options& options, Housing& housing, Turns& turns,
            const Observations& observations)
      : options_(options), housing_(housing), turns_(turns), observations_(observations) {}
  void begin(const View& view) { moved_.resize(view.jobs.size()); }

  /// Where a job has left in this instant, one of the highest unit of the same class moves in.
  void pull_after_departures(Pass& pass);
  /// Looks at what has changed since the last tick.
  void on_tick(Pass& pass, std::span<const Home> changed);
  /// Classes below what they deserve get empty servers, and if there are none the least loaded ones
  /// of classes that have more than they deserve; a class with jobs keeps at least one.
  void rebalance(Pass& pass);

 private:
  [[nodiscard]] bool may_move(const Pass& pass, JobId job) const;
  void rehouse(Pass& pass, JobId job, Home to, Reason reason);
  void migrate(Pass& pass, JobId job, Home to, Reason reason);
  [[nodiscard]] std::optional<JobId> job_that_lowers(const Pass& pass, Home from,
                                                     std::int32_t room) const;
  void leave_bad_company(Pass& pass, Home home);
  [[nodiscard]] bool is_in_bad_company(const View& view, JobId job) const;
  [[nodiscard]] std::vector<Occupied> loose_servers(const Pass& pass, PoolId pool) const;
  void append_targets(PoolId pool, std::size_t moves, std::vector<Occupied>& occupied) const;
  void defragment_pool(Pass& pass, PoolId pool);
  void rebalance_pool(Pass& pass, PoolId pool);
  void relieve(Pass& pass, PoolId pool, AffinityClass affinity);
  [[nodiscard]] bool empty_a_server(Pass& pass, Home home);

  const Options& options_;
  Housing& housing_;
  Turns& turns_;
  const Observations& observations_;
  Column<JobId, std::optional<Time>> moved_;  // its last migration
};

}  // namespace berth::gandiva
