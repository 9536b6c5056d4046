// The apps that want GPUs of one pool: those without any by how long they have had none, those with
// some by their rho, and all of them by the smallest number that helps, so that drawing one that
// fits at random costs O(distinct sizes). Every change is O(log apps).
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

/// What an app wants in one market.
struct Demand {
  std::int32_t unit = 0;     // smallest number of GPUs that helps it; 0 = wants nothing here
  Time since = kNever;       // without GPUs since then; kNever: has some
  double rho = 0;            // when it was last looked at, if it has some
  bool is_starving = false;  // GPUs are held back for it
  [[nodiscard]] bool is_waiting() const noexcept { return since != kNever; }
};

class Market {
 public:
  /// An app that is not in the market enters it; its unit is above zero.
  void enter(AppId app, const Demand& demand);
  /// Nothing happens if it is not in.
  void leave(AppId app);
  void set_starving(AppId app);
  [[nodiscard]] Demand demand(AppId app) const noexcept {
    return app.value < seats_.size() ? seats_[app].demand : Demand{};
  }

  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size() + hungry_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// The smallest number of GPUs that helps any app; the market is not empty.
  [[nodiscard]] std::int32_t smallest() const noexcept { return by_unit_.begin()->first; }
  /// Apps without GPUs, longest first.
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
  /// One of the apps that `most` GPUs help, each with the same chance.
  [[nodiscard]] std::optional<AppId> draw(std::int32_t most, Rng& rng) const;

 private:
  struct Seat {
    Demand demand;
    std::uint32_t at = 0;  // among those of its unit
  };
  Column<AppId, Seat> seats_;
  std::set<std::pair<Time, AppId>> waiting_;
  std::set<std::pair<double, AppId>> hungry_;  // by -rho
  std::set<std::pair<Time, AppId>> starving_;
  std::map<std::int32_t, std::vector<AppId>> by_unit_;  // no list is empty
};

}  // namespace berth::themis
