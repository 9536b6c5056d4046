// A lock file that one process may hold, taken with some patience. A child that is forked just
// before its parent is killed holds a copy of the parent's locks until it calls exec: a process that
// starts right after the kill may find a lock whose owner is dead. Such a copy lives for
// milliseconds, a real owner stays: so a lock that is taken is tried again for a moment.
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
