#include "policies/themis/market.h"

namespace berth::themis {

void Market::enter(AppId app, Seat& seat, const Seat& wanted) {
  seat = wanted;
  std::vector<AppId>& list = by_unit_[seat.unit];
  seat.at = static_cast<std::uint32_t>(list.size());
  list.push_back(app);
  if (seat.is_waiting()) {
    waiting_.emplace(seat.since, app);
  } else {
    hungry_.emplace(-seat.rho, app);
  }
  if (seat.is_starving) starving_.emplace(seat.since, app);
}

void Market::set_starving(AppId app, Seat& seat) {
  seat.is_starving = true;
  starving_.emplace(seat.since, app);
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
