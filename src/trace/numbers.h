// Numbers and times as trace files spell them, read into integer ticks without rounding where the
// decimal allows it. A Parsed<T> is a value, or the rule it broke as words that follow a column's
// name: "gpus" + " " + "is not a number". Locale and errno play no part.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace berth {

template <class T>
struct Parsed {
  T value{};
  std::string_view broken_rule;  // empty = the value is good

  [[nodiscard]] bool is_good() const noexcept { return broken_rule.empty(); }
};

inline constexpr std::int64_t kTicksPerSecond = 1'000'000;
inline constexpr std::int64_t kTicksPerMillisecond = 1'000;
inline constexpr std::int64_t kTicksPerMinute = 60 * kTicksPerSecond;

/// A length of time in units of `ticks_per_unit`; not negative, at most kMaxInputSeconds.
[[nodiscard]] Parsed<Duration> parse_span(std::string_view text, std::int64_t ticks_per_unit);
/// A point in time: a number as above, or an ISO 8601 date and time, UTC unless it names an offset.
[[nodiscard]] Parsed<Time> parse_instant(std::string_view text, std::int64_t ticks_per_unit);
/// Slurm's [DD-]HH:MM:SS[.fff] or MM:SS[.fff].
[[nodiscard]] Parsed<Duration> parse_slurm_span(std::string_view text);

/// A whole number; "4.0" and "1e3" are whole, "1.5" is not. The range is the caller's to word.
[[nodiscard]] Parsed<std::int64_t> parse_whole(std::string_view text);
/// Any finite number.
[[nodiscard]] Parsed<double> parse_real(std::string_view text);

}  // namespace berth
