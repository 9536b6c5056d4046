#include "policies/oasis/cheapest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace berth::oasis {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // 3 x 1/3 is one worker, not two

/// Servers of one slot with room, cheapest first.
struct Supply {
  double unit_cost = 0;
  std::uint32_t server = 0;
  std::int64_t room = 0;
};

std::vector<Supply> supplies(const PriceBook& book, std::int64_t slot, const Amounts& need,
                             const std::vector<std::uint32_t>& servers) {
  std::vector<Supply> all;
  const auto add = [&](std::uint32_t server) {
    if (const std::int64_t room = book.room(server, slot, need); room > 0)
      all.push_back({book.unit_cost(server, slot, need), server, room});
  };
  if (servers.empty()) {
    for (std::uint32_t s = 0; s < book.servers(); ++s) add(s);
  } else {
    for (const std::uint32_t s : servers) add(s);
  }
  std::ranges::sort(all, {}, [](const Supply& o) { return std::tuple(o.unit_cost, o.server); });
  return all;
}

/// Takes so many units from the cheapest supplies; infinite if there are not enough.
template <class Take>
double take_cheapest(const std::vector<Supply>& all, std::int64_t units, Take take) {
  double cost = 0;
  for (const Supply& supply : all) {
    if (units == 0) break;
    const std::int64_t some = std::min(units, supply.room);
    take(supply.server, some);
    cost += supply.unit_cost * static_cast<double>(some);
    units -= some;
  }
  return units == 0 ? cost : kInfinite;
}

constexpr auto kTakeNothing = [](std::uint32_t, std::int64_t) {};

/// Cost of d units in this slot, for every d; rises until it is infinite.
std::vector<double> slot_costs(const Market& market, const Demand& demand, std::int64_t slot) {
  const auto workers = supplies(*market.workers, slot, demand.worker, demand.servers);
  std::vector<Supply> helpers;
  if (!demand.helper.empty()) helpers = supplies(*market.helpers, slot, demand.helper, {});
  std::vector<double> costs{0.0};
  for (std::size_t d = 1; d < demand.workers_for.size(); ++d) {
    const std::int64_t y = demand.workers_for[d];
    const double cost = take_cheapest(workers, y, kTakeNothing) +
                        take_cheapest(helpers, demand.helpers_for(y), kTakeNothing);
    if (cost == kInfinite) break;
    costs.push_back(cost);
  }
  return costs;
}

/// One slot of the table: the cheapest split of d units between this slot and those before, ties to
/// fewer units here. `chosen` remembers the split.
void extend(std::vector<double>& table, const std::vector<double>& slot_cost,
            std::vector<std::uint32_t>& chosen) {
  chosen.assign(table.size(), 0);
  const std::size_t most = slot_cost.size() - 1;
  for (std::size_t d = table.size() - 1; d > 0; --d) {  // downwards: below d is still the old row
    for (std::size_t here = 1; here <= std::min(d, most); ++here) {
      const double cost = table[d - here] + slot_cost[here];
      if (cost < table[d]) {
        table[d] = cost;
        chosen[d] = static_cast<std::uint32_t>(here);
      }
    }
  }
}

std::vector<double> empty_table(const Demand& demand) {
  std::vector<double> table(static_cast<std::size_t>(demand.units) + 1, kInfinite);
  table[0] = 0;
  return table;
}

/// A finish slot that might be better than the best one known: later ones are worth no more and
/// cost at least nothing.
bool may_improve(double worth, const std::optional<Schedule>& best) {
  return worth > 0 && (!best || worth > best->payoff());
}

void offer_finish(std::optional<Schedule>& best, std::int64_t slot, double cost, double worth) {
  if (cost == kInfinite || (best && worth - cost <= best->payoff())) return;
  best = Schedule{.finish = slot, .cost = cost, .worth = worth, .workers = {}, .helpers = {}};
}

/// Some units of one price in one slot.
struct Stretch {
  double unit_cost = 0;
  std::int64_t slot = 0;
  std::uint32_t server = 0;
  std::int64_t units = 0;
  friend bool operator<(const Stretch& a, const Stretch& b) noexcept {
    return std::tie(a.unit_cost, a.slot, a.server) < std::tie(b.unit_cost, b.slot, b.server);
  }
};

/// The cheapest `units` units of the slots added so far; the dearest is on top.
class CheapestUnits {
 public:
  CheapestUnits(const Market& market, const Demand& demand) : market_(market), demand_(demand) {}

  void add_slot(std::int64_t slot) {
    std::int64_t open = std::min<std::int64_t>(
        demand_.units, static_cast<std::int64_t>(demand_.workers_for.size()) - 1);
    for (const Supply& o : supplies(*market_.workers, slot, demand_.worker, demand_.servers)) {
      if (open == 0) break;
      const std::int64_t some = std::min(open, o.room);
      open -= some;
      push({o.unit_cost, slot, o.server, some});
    }
    drop_surplus();
  }
  [[nodiscard]] double cost() const noexcept { return units_ == demand_.units ? cost_ : kInfinite; }
  [[nodiscard]] std::vector<Hold> holds() const {
    std::vector<Hold> holds;
    for (const Stretch& s : heap_) holds.push_back({s.slot, s.server, s.units});
    std::ranges::sort(holds, {}, [](const Hold& h) { return std::tuple(h.slot, h.server); });
    return holds;
  }

 private:
  void push(const Stretch& stretch) {
    heap_.push_back(stretch);
    std::ranges::push_heap(heap_, std::less{});
    units_ += stretch.units;
    cost_ += stretch.unit_cost * static_cast<double>(stretch.units);
  }
  void drop_surplus() {
    while (units_ > demand_.units) {
      std::ranges::pop_heap(heap_, std::less{});
      Stretch top = heap_.back();
      heap_.pop_back();
      units_ -= top.units;
      cost_ -= top.unit_cost * static_cast<double>(top.units);
      top.units -= std::min(top.units, units_ + top.units - demand_.units);
      if (top.units > 0) push(top);
    }
  }

  const Market& market_;
  const Demand& demand_;
  std::vector<Stretch> heap_;
  std::int64_t units_ = 0;
  double cost_ = 0;
};

}  // namespace

bool Demand::is_linear() const noexcept {
  if (!helper.empty()) return false;
  for (std::size_t d = 0; d < workers_for.size(); ++d) {
    if (workers_for[d] != static_cast<std::int64_t>(d)) return false;
  }
  return true;
}

std::int64_t Demand::helpers_for(std::int64_t workers) const noexcept {
  if (helper.empty()) return 0;
  const double exact = static_cast<double>(workers) / workers_per_helper;
  return std::min(workers, static_cast<std::int64_t>(std::ceil(exact - kRounding)));
}

std::vector<std::int64_t> linear_workers(double slots_per_unit, std::int64_t max_workers) {
  std::vector<std::int64_t> workers{0};
  for (std::int64_t d = 1;; ++d) {
    const double exact = static_cast<double>(d) * slots_per_unit;
    const auto y = static_cast<std::int64_t>(std::ceil(exact - kRounding));
    if (y > max_workers) return workers;
    workers.push_back(y);
  }
}

std::vector<std::vector<double>> cost_table(const Market& market, const Demand& demand,
                                            std::int64_t first, std::int64_t end) {
  std::vector<std::vector<double>> rows;
  std::vector<double> table = empty_table(demand);
  std::vector<std::uint32_t> chosen;
  for (std::int64_t slot = first; slot < end; ++slot) {
    extend(table, slot_costs(market, demand, slot), chosen);
    rows.push_back(table);
  }
  return rows;
}

std::optional<Schedule> best_by_table(const Market& market, const Demand& demand,
                                      const Finish& finish) {
  std::optional<Schedule> best;
  std::vector<double> table = empty_table(demand);
  std::vector<std::vector<std::uint32_t>> chosen;
  for (std::int64_t slot = finish.first; slot < finish.end; ++slot) {
    const double worth = finish.worth(slot);
    if (!may_improve(worth, best)) break;
    extend(table, slot_costs(market, demand, slot), chosen.emplace_back());
    offer_finish(best, slot, table.back(), worth);
  }
  if (!best) return std::nullopt;
  // Backwards from the finish: what is chosen in a slot leaves so many units to those before it.
  std::int64_t left = demand.units;
  for (std::int64_t slot = best->finish; slot >= finish.first; --slot) {
    const auto& row = chosen[static_cast<std::size_t>(slot - finish.first)];
    const std::uint32_t here = row[static_cast<std::size_t>(left)];
    const std::int64_t y = demand.workers_for[here];
    const auto into = [slot](std::vector<Hold>& holds) {
      return [slot, &holds](std::uint32_t server, std::int64_t units) {
        holds.push_back({slot, server, units});
      };
    };
    take_cheapest(supplies(*market.workers, slot, demand.worker, demand.servers), y,
                  into(best->workers));
    if (!demand.helper.empty())
      take_cheapest(supplies(*market.helpers, slot, demand.helper, {}), demand.helpers_for(y),
                    into(best->helpers));
    left -= here;
  }
  const auto by_place = [](const Hold& h) { return std::tuple(h.slot, h.server); };
  std::ranges::sort(best->workers, {}, by_place);
  std::ranges::sort(best->helpers, {}, by_place);
  return best;
}

std::optional<Schedule> best_by_units(const Market& market, const Demand& demand,
                                      const Finish& finish) {
  std::optional<Schedule> best;
  CheapestUnits units{market, demand};
  for (std::int64_t slot = finish.first; slot < finish.end; ++slot) {
    const double worth = finish.worth(slot);
    if (!may_improve(worth, best)) break;
    units.add_slot(slot);
    offer_finish(best, slot, units.cost(), worth);
  }
  if (!best) return std::nullopt;
  CheapestUnits again{market, demand};  // the units of the finish slot that was chosen
  for (std::int64_t slot = finish.first; slot <= best->finish; ++slot) again.add_slot(slot);
  best->workers = again.holds();
  return best;
}

std::optional<Schedule> best_schedule(const Market& market, const Demand& demand,
                                      const Finish& finish) {
  return demand.is_linear() ? best_by_units(market, demand, finish)
                            : best_by_table(market, demand, finish);
}

}  // namespace berth::oasis
