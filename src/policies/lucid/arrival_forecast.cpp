#include "policies/lucid/arrival_forecast.h"

#include <algorithm>
#include <cmath>

namespace berth {

namespace {
constexpr Duration kHour = std::chrono::hours{1};

std::int64_t hour_of(Time time) noexcept { return time.time_since_epoch() / kHour; }
}  // namespace

void ArrivalForecast::move_to(std::int64_t hour) {
  const std::int64_t from = std::max(hour_ + 1, hour - kHours + 1);
  for (std::int64_t each = from; each <= hour; ++each)
    by_hour_[static_cast<std::size_t>(each % kHours)] = 0;
  hour_ = std::max(hour_, hour);
}

void ArrivalForecast::add(Time arrival) {
  const std::int64_t hour = hour_of(arrival);
  if (first_hour_ < 0) first_hour_ = hour;
  move_to(hour);
  ++by_hour_[static_cast<std::size_t>(hour % kHours)];
}

double ArrivalForecast::count(std::int64_t hour) const noexcept {
  if (hour < std::max<std::int64_t>(0, hour_ - kHours + 1) || hour > hour_) return 0;
  return by_hour_[static_cast<std::size_t>(hour % kHours)];
}

/// Within an hour of the clock arrivals are taken as even.
double ArrivalForecast::between(double from_hour) const noexcept {
  const double whole = std::floor(from_hour);
  const double part = from_hour - whole;
  const auto hour = static_cast<std::int64_t>(whole);
  return (1 - part) * count(hour) + part * count(hour + 1);
}

double ArrivalForecast::next_hour(Time now) {
  if (first_hour_ < 0) return 0;
  move_to(hour_of(now));
  const double here = to_seconds(now) / 3600;
  const double part = here - std::floor(here);
  // of the present hour only what has passed was counted: no share of it belongs to the future
  const double last = (1 - part) * count(hour_ - 1) + count(hour_);
  double sum = 0;
  std::int64_t days = 0;
  while (days < kDays && hour_ - (days + 1) * kHoursPerDay >= first_hour_) {
    ++days;
    sum += between(here - static_cast<double>(days * kHoursPerDay));
  }
  return days == 0 ? last : (last + sum / static_cast<double>(days)) / 2;
}

}  // namespace berth
