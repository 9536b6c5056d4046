// Points are switched on by the environment or by a hook of a test. As long as nobody watches, a
// point costs one relaxed load; the first point passed finds out.

#include "base/crash_point.h"

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"

namespace berth {

namespace {

using Hook = std::function<void(std::string_view)>;

/// What the environment asks for, read when the first point is passed.
struct Watch {
  std::string name;         // empty: no point kills
  std::uint64_t count = 1;  // passes left until it does
  int counted = -1;         // file of names
  std::shared_ptr<const Hook> hook;
  std::mutex mutex;

  Watch() {
    if (const char* wanted = std::getenv("BERTH_CRASH_POINT")) read_point(wanted);
    if (const char* path = std::getenv("BERTH_CRASH_COUNT"))
      counted = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }
  void read_point(std::string_view wanted) {
    // The last colon: everything before it is the name of the point.
    const auto colon = wanted.rfind(':');
    name = wanted.substr(0, colon);
    if (colon == std::string_view::npos) return;
    const std::string_view digits = wanted.substr(colon + 1);
    const auto end = digits.data() + digits.size();
    const bool is_number = std::from_chars(digits.data(), end, count).ptr == end;
    BERTH_CHECK(is_number && count > 0, "BERTH_CRASH_POINT is NAME:COUNT");
  }
  [[nodiscard]] bool is_needed() const { return !name.empty() || counted >= 0 || hook; }
};

Watch& watch() {
  // A singleton on purpose: the environment is read once, and production code passes thousands of
  // points that must cost one relaxed load.
  static Watch only;
  return only;
}

void note(int file, std::string_view name) {
  const std::string line = std::string(name) + '\n';
  // One write per line: O_APPEND keeps lines of several processes whole.
  const bool is_written =
      ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  BERTH_CHECK(is_written, "BERTH_CRASH_COUNT can be written");
}

}  // namespace

namespace detail {

std::atomic<int> crash_watch{1};  // the first point looks whether somebody does

void pass_crash_point(std::string_view name) {
  std::shared_ptr<const Hook> hook;
  {
    Watch& w = watch();
    const std::lock_guard lock(w.mutex);
    if (!w.is_needed()) return crash_watch.store(0, std::memory_order_relaxed);
    if (w.counted >= 0) note(w.counted, name);
    if ((w.name == "*" || w.name == name) && --w.count == 0) {
      ::kill(::getpid(), SIGKILL);
      for (;;) ::pause();  // the signal is on its way; nothing may happen after the point
    }
    // Copied under the lock and called outside: a hook may itself pass crash points.
    hook = w.hook;
  }
  if (hook) (*hook)(name);
}

}  // namespace detail

CrashHook::CrashHook(std::function<void(std::string_view)> hook) {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  BERTH_CHECK(!w.hook, "one crash hook at a time");
  w.hook = std::make_shared<const Hook>(std::move(hook));
  detail::crash_watch.store(1, std::memory_order_relaxed);
}

CrashHook::~CrashHook() {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  w.hook.reset();
}

}  // namespace berth
