// How many jobs the coming hour will bring: the mean of what came in the last hour and of what came
// at this hour of the day in the past week. Only full days behind count; before the first there is
// only the last hour. Constant space.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"

namespace berth {

class ArrivalForecast {
 public:
  void add(Time arrival);
  /// Expected arrivals in the hour after `now`; `now` is not before the last arrival.
  [[nodiscard]] double next_hour(Time now);

 private:
  static constexpr std::int64_t kHoursPerDay = 24;
  static constexpr std::int64_t kDays = 7;
  static constexpr std::int64_t kHours = kHoursPerDay * (kDays + 1);
  void move_to(std::int64_t hour);
  [[nodiscard]] double count(std::int64_t hour) const noexcept;
  [[nodiscard]] double between(double from_hour) const noexcept;  // in the hour from then on

  std::array<std::uint32_t, kHours> by_hour_{};  // a ring
  std::int64_t first_hour_ = -1;                 // of the first arrival
  std::int64_t hour_ = 0;                        // the newest in the ring
};

}  // namespace berth
