// When a policy of rounds looks again: at the next multiple of its interval after something
// happened. While nothing happens and looking changes nothing it looks ever less often.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace berth {

class RoundClock {
 public:
  explicit RoundClock(Duration interval) : interval_(interval) {}

  /// Something happened: look at the next multiple of the interval, now if this is one.
  void stir(Time now) {
    pause_ = 1;
    const auto since = now.time_since_epoch();
    const auto rounds = interval_ > Duration::zero() ? (since + interval_ - Duration{1}) / interval_
                                                     : std::int64_t{0};
    next_ = std::min(next_, interval_ > Duration::zero() ? Time{rounds * interval_} : now);
  }
  [[nodiscard]] bool is_due(Time now) const noexcept { return now >= next_; }
  /// A look is over.
  void rest(Time now, bool changed, std::int64_t longest_pause) {
    pause_ = changed ? 1 : std::min(pause_ * 2, longest_pause);
    const Duration step = std::max(interval_, Duration{std::chrono::seconds{1}});
    next_ = Time{(now.time_since_epoch() / step + pause_) * step};
  }
  [[nodiscard]] Time next() const noexcept { return next_; }

 private:
  Duration interval_;
  Time next_ = kNever;
  std::int64_t pause_ = 1;
};

}  // namespace berth
