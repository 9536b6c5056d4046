// Rounds on a grid of multiples of a period from time zero: when a policy that decides in rounds,
// terms, slots or quanta holds the next one.
//
// The clock of a live scheduler never stands on a multiple: a wake-up comes late by microseconds,
// on a busy machine by seconds, after a night in the bag by hours. So nothing here asks whether now
// is a multiple. A round is due once its grid point has come, and stands for the last grid point
// that has: however many passed unseen, one round is held. Where the clock is exact, a round is due
// on its grid point and at no other time.
//
// Settled, it asks for nothing; stir() when something has happened.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace berth {

/// Multiples of a period from time zero; period k is the one that begins at k periods.
class Grid {
 public:
  explicit constexpr Grid(Duration period) noexcept : period_(period) {}
  [[nodiscard]] constexpr Duration period() const noexcept { return period_; }
  /// False: every moment is a grid point.
  [[nodiscard]] constexpr bool has_period() const noexcept { return period_ > Duration::zero(); }

  /// The period in which the moment lies.
  [[nodiscard]] constexpr std::int64_t at(Time time) const noexcept {
    const Duration since = time.time_since_epoch();
    const std::int64_t whole = since / period_;
    return since < whole * period_ ? whole - 1 : whole;
  }
  /// The first period that begins then or later.
  [[nodiscard]] constexpr std::int64_t from(Time time) const noexcept {
    const std::int64_t here = at(time);
    return begin(here) < time ? here + 1 : here;
  }
  [[nodiscard]] constexpr Time begin(std::int64_t period) const noexcept {
    return Time{period * period_};
  }

  [[nodiscard]] constexpr Time at_or_before(Time time) const noexcept {
    return has_period() ? begin(at(time)) : time;
  }
  [[nodiscard]] constexpr Time at_or_after(Time time) const noexcept {
    return has_period() ? begin(from(time)) : time;
  }
  [[nodiscard]] constexpr Time after(Time time) const noexcept {
    return has_period() ? begin(at(time) + 1) : time + Duration{1};
  }

 private:
  Duration period_;
};

/// Whether a job that waits may have devices that are free before the next round is held.
enum class StartRule : std::uint8_t { InRounds, AtOnce };

class Rounds {
 public:
  /// With a period of zero or less a round is due whenever something has stirred.
  explicit constexpr Rounds(Duration period) noexcept : grid_(period) {}
  [[nodiscard]] constexpr const Grid& grid() const noexcept { return grid_; }

  /// Something has happened: there is a round on the first grid point at or after this moment, if
  /// none is to be held before.
  constexpr void stir(Time now) noexcept { next_ = std::min(next_, grid_.at_or_after(now)); }
  /// There is a round after this moment, if none is to be held before.
  constexpr void go_on(Time now) noexcept { next_ = std::min(next_, grid_.after(now)); }
  /// No round until something stirs.
  constexpr void settle() noexcept { next_ = kNever; }

  [[nodiscard]] constexpr bool is_due(Time now) const noexcept { return now >= next_; }
  [[nodiscard]] constexpr bool is_settled() const noexcept { return next_ == kNever; }
  /// A round is held now; the next one is on the next grid point.
  constexpr void hold(Time now) noexcept {
    held_ = now;
    next_ = grid_.after(now);
  }
  /// A round is held now; unless something stirs, the next one is at that time and not before.
  constexpr void hold_until(Time now, Time next) noexcept {
    held_ = now;
    next_ = std::max(next, now + Duration{1});
  }

  /// The grid point that is next to be dealt with: of the round that is due or held at this very
  /// moment, even if it came late; otherwise the first one at or after this moment.
  [[nodiscard]] constexpr Time coming(Time now) const noexcept {
    const bool is_here = is_due(now) || held_ == now;
    return is_here ? grid_.at_or_before(now) : grid_.at_or_after(now);
  }
  /// The number of the period that begins there.
  [[nodiscard]] constexpr std::int64_t number(Time now) const noexcept {
    return grid_.at(coming(now));
  }

  /// When the next round is; kNever if it is settled.
  [[nodiscard]] constexpr Time next() const noexcept { return next_; }
  /// What a policy answers when it is asked for its next wake-up.
  [[nodiscard]] constexpr std::optional<Time> wakeup(Time now) const noexcept {
    if (is_settled()) return std::nullopt;
    return std::max(next_, now + Duration{1});
  }

 private:
  Grid grid_;
  Time next_ = kNever;
  std::optional<Time> held_;
};

}  // namespace berth
