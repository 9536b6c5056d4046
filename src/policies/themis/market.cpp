#include "policies/themis/market.h"

namespace berth::themis {

void Market::enter(AppId app, const Demand& demand) {
  if (app.value >= seats_.size()) seats_.resize(app.value + 1);
  std::vector<AppId>& list = by_unit_[demand.unit];
  seats_[app] = {demand, static_cast<std::uint32_t>(list.size())};
  list.push_back(app);
  if (demand.is_waiting()) {
    waiting_.emplace(demand.since, app);
  } else {
    hungry_.emplace(-demand.rho, app);
  }
  if (demand.is_starving) starving_.emplace(demand.since, app);
}

void Market::leave(AppId app) {
  const Demand demand = this->demand(app);
  if (demand.unit == 0) return;
  // The last of its list takes its place there: O(1), and draws depend on nothing but the history.
  const auto list = by_unit_.find(demand.unit);
  const AppId last = list->second.back();
  list->second[seats_[app].at] = last;
  seats_[last].at = seats_[app].at;
  list->second.pop_back();
  if (list->second.empty()) by_unit_.erase(list);
  waiting_.erase({demand.since, app});
  hungry_.erase({-demand.rho, app});
  starving_.erase({demand.since, app});
  seats_[app] = Seat{};
}

void Market::set_starving(AppId app) {
  Demand& demand = seats_[app].demand;
  if (demand.is_starving) return;
  demand.is_starving = true;
  starving_.emplace(demand.since, app);
}

std::optional<AppId> Market::draw(std::int32_t most, Rng& rng) const {
  std::uint64_t all = 0;
  for (const auto& [unit, apps] : by_unit_) {
    if (unit > most) break;
    all += apps.size();
  }
  if (all == 0) return std::nullopt;
  std::uint64_t at = rng.below(all);
  for (const auto& [unit, apps] : by_unit_) {
    if (at < apps.size()) return apps[at];
    at -= apps.size();
  }
  return std::nullopt;
}

}  // namespace berth::themis
