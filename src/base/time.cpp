#include "base/time.h"

#include <cmath>

#include <fmt/format.h>

#include "base/check.h"

namespace berth {

Duration seconds_to_duration(double seconds) noexcept {
  return Duration{static_cast<std::int64_t>(std::llround(seconds * 1e6))};
}

Duration seconds_to_duration_up(double seconds) noexcept {
  return Duration{static_cast<std::int64_t>(std::ceil(seconds * 1e6))};
}

std::string human_duration(double seconds) {
  const double size = std::abs(seconds);
  if (size < 1e-9) return "0 s";
  if (size < 1) return fmt::format("{:.3g} s", seconds);
  if (size < 120) return fmt::format("{:.1f} s", seconds);
  if (size < 7200) return fmt::format("{:.1f} min", seconds / 60);
  if (size < 2 * 86400) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} d", seconds / 86400);
}

Rate Rate::from(double speed) noexcept {
  // Fixed point with 32 binary places: sums and comparisons of rates are exact on every machine.
  return Rate{static_cast<std::uint64_t>(std::llround(speed * 4294967296.0))};
}

__extension__ using Wide = unsigned __int128;

Duration Rate::work_in(Duration elapsed) const noexcept {
  if (*this == one()) return elapsed;
  const Wide product = static_cast<Wide>(static_cast<std::uint64_t>(elapsed.count())) * q32_;
  // 128 bits hold any duration times any rate. Work is rounded down and time (below) up, so a job
  // never ends before its work is done.
  return Duration{static_cast<std::int64_t>(product >> 32)};
}

Duration Rate::time_for(Duration work) const noexcept {
  if (*this == one()) return work;
  BERTH_CHECK(q32_ != 0, "a job that stands still has no finish time");
  const Wide scaled = static_cast<Wide>(static_cast<std::uint64_t>(work.count())) << 32;
  return Duration{static_cast<std::int64_t>((scaled + q32_ - 1) / q32_)};
}

}  // namespace berth
