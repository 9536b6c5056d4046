// Time in slots of equal length, on a grid that begins at time zero. Slot 0 is the one in which the
// clock was started, so that slot numbers are never negative.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace berth::oasis {

class SlotClock {
 public:
  explicit SlotClock(Duration slot) : slot_(slot) {}

  [[nodiscard]] bool is_started() const noexcept { return base_ != kNever; }
  void start(Time now) noexcept {
    const Duration since = now.time_since_epoch();
    const std::int64_t before = since.count() < 0 && since % slot_ != Duration::zero() ? 1 : 0;
    base_ = Time{slot_ * (since / slot_ - before)};
  }
  [[nodiscard]] Duration length() const noexcept { return slot_; }
  [[nodiscard]] std::int64_t at(Time now) const noexcept { return (now - base_) / slot_; }
  /// The first slot of which nothing is over.
  [[nodiscard]] std::int64_t first_whole(Time now) const noexcept {
    return at(now) + ((now - base_) % slot_ == Duration::zero() ? 0 : 1);
  }
  [[nodiscard]] Time begin(std::int64_t slot) const noexcept { return base_ + slot_ * slot; }
  [[nodiscard]] double slots(Duration duration) const noexcept {
    return to_seconds(duration) / to_seconds(slot_);
  }

 private:
  Duration slot_;
  Time base_ = kNever;
};

}  // namespace berth::oasis
