// When a policy of rounds looks again: at the next multiple of its interval after something
// happened. While nothing happens and looking changes nothing it looks ever less often.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rounds.h"

namespace berth::goodput {

class RoundClock {
 public:
  explicit RoundClock(Duration interval) : rounds_(interval) {}

  /// Something happened: look at the next multiple of the interval, now if this is one.
  void stir(Time now) {
    pause_ = 1;
    rounds_.stir(now);
  }
  [[nodiscard]] bool is_due(Time now) const noexcept { return rounds_.is_due(now); }
  /// A look is over.
  void rest(Time now, bool changed, std::int64_t longest_pause) {
    pause_ = changed ? 1 : std::min(pause_ * 2, longest_pause);
    const Grid steps{std::max(rounds_.grid().period(), Duration{std::chrono::seconds{1}})};
    rounds_.hold_until(now, steps.begin(steps.at(now) + pause_));
  }
  [[nodiscard]] Time next() const noexcept { return rounds_.next(); }

 private:
  Rounds rounds_;
  std::int64_t pause_ = 1;
};

}  // namespace berth::goodput
