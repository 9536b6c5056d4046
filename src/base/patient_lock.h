// The lock that says "only one of us". A process that is being made when its parent is killed has
// a copy of everything the parent had open, locks included, until it becomes another program: so
// whoever starts right after a kill may find the lock of somebody who is gone. Such a copy lives
// for milliseconds; who really works there does not leave meanwhile.
#pragma once

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace berth {

inline constexpr std::chrono::milliseconds kLockPatience{1'000};

/// Asks until it is so, or patience ends; the last answer, with errno as it left it.
template <class Ask>
[[nodiscard]] bool within_patience(Ask ask) {
  const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
  for (;;) {
    if (ask()) return true;
    const int cause = errno;
    if (std::chrono::steady_clock::now() >= deadline) {
      errno = cause;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

/// False: somebody else has it (errno is EWOULDBLOCK), or it cannot be had at all.
[[nodiscard]] inline bool lock_for_good(int file) {
  bool is_had = false;
  static_cast<void>(within_patience([&] {
    is_had = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    return is_had || errno != EWOULDBLOCK;
  }));
  return is_had;
}

}  // namespace berth
