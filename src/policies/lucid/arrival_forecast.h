// How many jobs the coming hour will bring: the mean of what came in the last hour and of what came
// at this hour of the day in the past week. Only full days behind count; before the first there is
// only the last hour. Constant space.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/time.h"

namespace berth::lucid {

class ArrivalForecast {
 public:
  void add(Time arrival) {
    const std::int64_t hour = hour_of(arrival);
    if (first_hour_ < 0) first_hour_ = hour;
    move_to(hour);
    ++by_hour_[static_cast<std::size_t>(hour % kHours)];
  }
  /// Expected arrivals in the hour after `now`; `now` is not before the last arrival.
  [[nodiscard]] double next_hour(Time now) {
    if (first_hour_ < 0) return 0;
    move_to(hour_of(now));
    const double here = to_seconds(now) / 3600;
    const double part = here - std::floor(here);
    // Of the present hour only what has passed was counted: no share of it belongs to the future.
    const double last = (1 - part) * count(hour_ - 1) + count(hour_);
    double sum = 0;
    std::int64_t days = 0;
    while (days < kDays && hour_ - (days + 1) * kHoursPerDay >= first_hour_) {
      ++days;
      sum += in_hour_from(here - static_cast<double>(days * kHoursPerDay));
    }
    return days == 0 ? last : (last + sum / static_cast<double>(days)) / 2;
  }

 private:
  static constexpr std::int64_t kHoursPerDay = 24;
  static constexpr std::int64_t kDays = 7;
  static constexpr std::int64_t kHours = kHoursPerDay * (kDays + 1);

  [[nodiscard]] static std::int64_t hour_of(Time time) noexcept {
    return time.time_since_epoch() / Duration{std::chrono::hours{1}};
  }
  void move_to(std::int64_t hour) {
    for (std::int64_t each = std::max(hour_ + 1, hour - kHours + 1); each <= hour; ++each)
      by_hour_[static_cast<std::size_t>(each % kHours)] = 0;
    hour_ = std::max(hour_, hour);
  }
  [[nodiscard]] double count(std::int64_t hour) const noexcept {
    if (hour < std::max<std::int64_t>(0, hour_ - kHours + 1) || hour > hour_) return 0;
    return by_hour_[static_cast<std::size_t>(hour % kHours)];
  }
  /// Within an hour of the clock arrivals are taken as even.
  [[nodiscard]] double in_hour_from(double from) const noexcept {
    const double part = from - std::floor(from);
    const auto hour = static_cast<std::int64_t>(std::floor(from));
    return (1 - part) * count(hour) + part * count(hour + 1);
  }

  std::array<std::uint32_t, kHours> by_hour_{};  // a ring
  std::int64_t first_hour_ = -1;                 // of the first arrival
  std::int64_t hour_ = 0;                        // the newest in the ring
};

}  // namespace berth::lucid
