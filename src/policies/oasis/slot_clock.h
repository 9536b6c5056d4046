// Time in slots of equal length, on a grid that begins at time zero. Slot 0 is the one in which the
// clock was started, so that slot numbers are never negative. A slot that was waited for is whole
// at the moment at which it is begun, even if the wake-up came late.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rounds.h"

namespace berth::oasis {

class SlotClock {
 public:
  explicit SlotClock(Duration slot) : rounds_(slot) {}

  [[nodiscard]] bool is_started() const noexcept { return first_.has_value(); }
  void start(Time now) noexcept { first_ = grid().at(now); }
  /// A slot that was waited for begins with this moment.
  void begin_slot(Time now) noexcept { rounds_.hold_until(now, kNever); }

  [[nodiscard]] Duration length() const noexcept { return grid().period(); }
  [[nodiscard]] std::int64_t at(Time now) const noexcept { return grid().at(now) - *first_; }
  /// The first slot of which nothing is over.
  [[nodiscard]] std::int64_t first_whole(Time now) const noexcept {
    return grid().at(rounds_.coming(now)) - *first_;
  }
  [[nodiscard]] Time begin(std::int64_t slot) const noexcept {
    return grid().begin(*first_ + slot);
  }
  [[nodiscard]] double slots(Duration duration) const noexcept {
    return to_seconds(duration) / to_seconds(length());
  }

 private:
  [[nodiscard]] const Grid& grid() const noexcept { return rounds_.grid(); }

  Rounds rounds_;
  std::optional<std::int64_t> first_;  // slot of the grid that is slot 0
};

}  // namespace berth::oasis
