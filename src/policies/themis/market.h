// Who wants GPUs of one pool: apps without any in the order in which they lost their last one, apps
// that have some by their rho, and all of them by the smallest number that helps, so that one that
// fits is drawn at random in O(distinct sizes). Every change is O(log apps).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/rng.h"
#include "base/time.h"

namespace berth::themis {

using AppId = Id<struct AppTag>;

/// An app's place in one market.
struct Seat {
  std::int32_t unit = 0;     // smallest number of GPUs that helps it; 0 = wants nothing here
  Time since = kNever;       // without GPUs since then; kNever: has some
  double rho = 0;            // when it was last looked at, if it has some
  std::uint32_t at = 0;      // among those of its unit
  bool is_starving = false;  // GPUs are held back for it

  [[nodiscard]] bool is_in() const noexcept { return unit > 0; }
  [[nodiscard]] bool is_waiting() const noexcept { return since != kNever; }
};

class Market {
 public:
  void enter(AppId app, Seat& seat, const Seat& wanted);
  /// `seats` finds the seat of the app that takes the freed place among those of its unit.
  template <class SeatOf>
  void leave(AppId app, Seat& seat, const SeatOf& seat_of);

  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size() + hungry_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// The smallest number of GPUs that helps anybody; the market is not empty.
  [[nodiscard]] std::int32_t smallest() const noexcept { return by_unit_.begin()->first; }
  /// By the time since when they have nothing.
  [[nodiscard]] const std::set<std::pair<Time, AppId>>& waiting() const noexcept {
    return waiting_;
  }
  /// Those with GPUs, the largest rho first as it was last known.
  [[nodiscard]] const std::set<std::pair<double, AppId>>& hungry() const noexcept {
    return hungry_;
  }
  [[nodiscard]] std::optional<AppId> first_starving() const noexcept {
    return starving_.empty() ? std::nullopt : std::optional{starving_.begin()->second};
  }
  void set_starving(AppId app, Seat& seat);
  /// Anybody whom `most` GPUs help, each with the same chance.
  [[nodiscard]] std::optional<AppId> draw(std::int32_t most, Rng& rng) const;

 private:
  std::set<std::pair<Time, AppId>> waiting_;
  std::set<std::pair<double, AppId>> hungry_;  // by -rho
  std::set<std::pair<Time, AppId>> starving_;
  std::map<std::int32_t, std::vector<AppId>> by_unit_;  // no list is empty
};

template <class SeatOf>
void Market::leave(AppId app, Seat& seat, const SeatOf& seat_of) {
  if (!seat.is_in()) return;
  const auto list = by_unit_.find(seat.unit);
  const AppId last = list->second.back();
  list->second[seat.at] = last;
  seat_of(last).at = seat.at;
  list->second.pop_back();
  if (list->second.empty()) by_unit_.erase(list);
  waiting_.erase({seat.since, app});
  hungry_.erase({-seat.rho, app});
  starving_.erase({seat.since, app});
  seat = Seat{};
}

}  // namespace berth::themis
