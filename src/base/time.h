// Integer time. One tick is a microsecond; a simulated run starts at Time{} (the trace's own zero).
// Integer ticks do not drift and compare exactly. Whatever a model computes in seconds is rounded
// up to the next tick, so that the condition it stands for holds when its event fires.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace berth {

struct EngineClock {  // a tag: nothing ever asks it what time it is
  using rep = std::int64_t;
  using period = std::micro;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<EngineClock, duration>;
  static constexpr bool is_steady = true;
};

using Duration = EngineClock::duration;
using Time = EngineClock::time_point;

inline constexpr Time kTimeZero{};
inline constexpr Time kNever{Duration{std::numeric_limits<std::int64_t>::max()}};
inline constexpr Duration kForever{std::numeric_limits<std::int64_t>::max() / 4};

/// The largest time the product accepts from input (about 3,170 years): sums of two never overflow.
inline constexpr double kMaxInputSeconds = 1e11;

[[nodiscard]] constexpr double to_seconds(Duration duration) noexcept {
  return static_cast<double>(duration.count()) * 1e-6;
}
[[nodiscard]] constexpr double to_seconds(Time time) noexcept {
  return to_seconds(time.time_since_epoch());
}

/// Rounds to the nearest tick: for numbers that people and files give.
[[nodiscard]] Duration seconds_to_duration(double seconds) noexcept;
/// Rounds up to the next tick: for numbers that a model computes.
[[nodiscard]] Duration seconds_to_duration_up(double seconds) noexcept;
[[nodiscard]] inline Time seconds_to_time(double seconds) noexcept {
  return Time{seconds_to_duration(seconds)};
}

/// A span for people: "12 s", "3.4 min", "2.1 h", "5.0 d".
[[nodiscard]] std::string human_duration(double seconds);

/// Speed relative to the reference placement as a 32.32 fixed-point number, so that progress is
/// integer arithmetic: exact at rate 1, and the same on every machine.
class Rate {
 public:
  constexpr Rate() = default;
  [[nodiscard]] static Rate from(double speed) noexcept;
  [[nodiscard]] static constexpr Rate one() noexcept { return Rate{std::uint64_t{1} << 32}; }

  [[nodiscard]] constexpr bool is_zero() const noexcept { return q32_ == 0; }
  [[nodiscard]] constexpr double value() const noexcept {
    return static_cast<double>(q32_) / 4294967296.0;
  }
  [[nodiscard]] constexpr std::uint64_t raw() const noexcept { return q32_; }
  [[nodiscard]] static constexpr Rate from_raw(std::uint64_t q32) noexcept { return Rate{q32}; }
  /// Work done in `elapsed` at this rate, rounded down.
  [[nodiscard]] Duration work_in(Duration elapsed) const noexcept;
  /// Time needed for `work` at this rate, rounded up; the rate must not be zero.
  [[nodiscard]] Duration time_for(Duration work) const noexcept;

  friend constexpr auto operator<=>(Rate, Rate) = default;

 private:
  explicit constexpr Rate(std::uint64_t q32) : q32_(q32) {}
  std::uint64_t q32_ = 0;
};

}  // namespace berth
