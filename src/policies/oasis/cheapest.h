// The cheapest schedule of a job for every finish slot at once, and the finish slot that pays best.
//
// Work is counted in units; `workers_for[d]` says how many workers train d of them in one slot.
// Where a unit is one worker for one slot and there are no parameter servers, slot costs are convex
// and the cheapest units of all slots are the cheapest schedule: one slot more inserts its units
// and drops the dearest, O(T log T) for all T finish slots together. Otherwise a table over slots
// and units finds it, O(T x units x units per slot). Both take earlier slots among equal ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "policies/oasis/price_book.h"

namespace berth::oasis {

/// Servers for workers and, unless there are none, for parameter servers.
struct Market {
  const PriceBook* workers = nullptr;
  const PriceBook* helpers = nullptr;
};

struct Demand {
  std::int64_t units = 0;
  std::vector<std::int64_t> workers_for;  // [0] = 0, never falling
  Amounts worker;                         // what one takes
  std::vector<std::uint32_t> servers;     // it may use; empty = all
  Amounts helper;                         // what a parameter server takes; empty = there are none
  double workers_per_helper = 1;

  [[nodiscard]] bool is_linear() const noexcept;
  [[nodiscard]] std::int64_t helpers_for(std::int64_t workers) const noexcept;
};

/// u worker-slots per unit, at most so many workers at once.
[[nodiscard]] std::vector<std::int64_t> linear_workers(double slots_per_unit,
                                                       std::int64_t max_workers);

/// Slots in which the job may run, and what finishing in one of them is worth; never rising.
struct Finish {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::function<double(std::int64_t slot)> worth;
};

struct Schedule {
  std::int64_t finish = 0;  // slot
  double cost = 0;
  double worth = 0;
  std::vector<Hold> workers;  // by slot, then server
  std::vector<Hold> helpers;
  [[nodiscard]] double payoff() const noexcept { return worth - cost; }
};

/// Of the largest payoff, ties to the earlier finish; nothing if the work fits in no slot that is
/// worth anything. The payoff may be negative.
[[nodiscard]] std::optional<Schedule> best_schedule(const Market& market, const Demand& demand,
                                                    const Finish& finish);
/// The two ways, for those who compare them.
[[nodiscard]] std::optional<Schedule> best_by_units(const Market& market, const Demand& demand,
                                                    const Finish& finish);
[[nodiscard]] std::optional<Schedule> best_by_table(const Market& market, const Demand& demand,
                                                    const Finish& finish);
/// cost[t][d] of training exactly d units in the slots up to t, infinite if they do not fit.
[[nodiscard]] std::vector<std::vector<double>> cost_table(const Market& market,
                                                          const Demand& demand, std::int64_t first,
                                                          std::int64_t end);

}  // namespace berth::oasis
