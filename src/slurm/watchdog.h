// When the queue is handed back to Slurm because Berth is gone. It judges by whether the heartbeat
// changes, measured by a clock that only runs forward: what time the heartbeat says, and that the
// wall clock was set, does not matter. Time in which the watchdog itself did not run (the machine
// slept, the process was stopped) is not counted, for Berth had none either. Nobody is asked twice
// while one attempt is fresh, and nothing is done once Berth is back.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace berth::slurm {

class Watchdog {
 public:
  using Span = std::chrono::milliseconds;
  enum class Verdict : std::uint8_t {
    Alive,     // the heartbeat has changed
    Silent,    // not yet long enough
    HandBack,  // do it now (again)
    Gone,      // it was done a while ago
    Back,      // the first sign of life after that
  };

  /// `again`: how long after a hand-back the queue is looked at once more, because something may
  /// have been held meanwhile.
  Watchdog(Span after, Span again) : after_(after), again_(again) {}

  /// `beat`: what the heartbeat says, nothing if it is not there; `now` of a steady clock.
  [[nodiscard]] Verdict look(std::optional<std::int64_t> beat, Span now);
  [[nodiscard]] Span silence() const noexcept { return silence_; }

 private:
  static constexpr Span kLongestGap{30'000};  // more between two looks: we did not run

  const Span after_, again_;
  bool has_looked_ = false;
  std::optional<std::int64_t> beat_;
  Span looked_{}, silence_{};
  std::optional<Span> handed_back_;  // silence at the time
};

}  // namespace berth::slurm
