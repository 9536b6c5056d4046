// Named places where a process may be made to die: tests kill the daemon at every one of them.
// Compiled in always; a point that nobody watches costs one load and a branch.
//   BERTH_CRASH_POINT=NAME:COUNT   SIGKILL when NAME is passed the COUNT-th time; "*" is any point
//   BERTH_CRASH_COUNT=FILE         adds a line with its name to FILE for each point passed
// Inside one process a test sets a hook instead; it may record, or throw.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

namespace berth {

namespace detail {
extern std::atomic<int> crash_watch;  // 0: nobody watches
void pass_crash_point(std::string_view name);
}  // namespace detail

inline void crash_point(std::string_view name) {
  if (detail::crash_watch.load(std::memory_order_relaxed) != 0) [[unlikely]]
    detail::pass_crash_point(name);
}

/// Called with the name of each point passed by any thread while it lives. One at a time.
class CrashHook {
 public:
  explicit CrashHook(std::function<void(std::string_view)> hook);
  ~CrashHook();
  CrashHook(const CrashHook&) = delete;
  CrashHook& operator=(const CrashHook&) = delete;
};

}  // namespace berth
