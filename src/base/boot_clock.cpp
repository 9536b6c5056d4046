#include "base/boot_clock.h"

#include <ctime>

#include <fcntl.h>
#include <unistd.h>

namespace berth {

std::int64_t boot_clock_micros() noexcept {
  timespec now{};
  // Unlike CLOCK_MONOTONIC this clock counts while the machine sleeps, and setting the wall clock
  // does not move it: intervals survive both.
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

std::string boot_id() {
  const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[36];
  const ssize_t got = ::read(file, text, sizeof text);
  ::close(file);
  // A UUID has 36 characters; a short read is as good as no id, and callers treat it as unknown.
  return got == 36 ? std::string(text, sizeof text) : std::string{};
}

}  // namespace berth
