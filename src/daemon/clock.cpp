#include "daemon/clock.h"

#include <ctime>

#include <algorithm>
#include <fstream>

namespace berth {

namespace {
std::int64_t micros_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}
}  // namespace

std::int64_t MachineClock::boot_micros() const { return micros_of(CLOCK_BOOTTIME); }
std::int64_t MachineClock::wall_micros() const { return micros_of(CLOCK_REALTIME); }
std::string MachineClock::boot_id() const {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(file, id);
  return id;
}

LiveClock::LiveClock(const ClockSource& source, Time last, const std::string& last_boot_id,
                     std::int64_t last_life_boot, Time last_life)
    : source_(&source), zero_at_(last), zero_boot_(source.boot_micros()) {
  if (last_boot_id.empty() || last_boot_id != source.boot_id()) return;
  const Duration since_life{std::max<std::int64_t>(0, zero_boot_ - last_life_boot)};
  zero_at_ = std::max(last, last_life + since_life);
}

Time LiveClock::now() const noexcept {
  return zero_at_ + Duration{std::max<std::int64_t>(0, source_->boot_micros() - zero_boot_)};
}

Duration LiveClock::until(Time time) const noexcept {
  return std::max(Duration::zero(), time - now());
}

}  // namespace berth
