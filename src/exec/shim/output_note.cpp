#include "exec/shim/output_note.h"

#include <array>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/shim/identity.h"
#include "model/output_pattern.h"

namespace berth {

namespace {

constexpr int kPatience = 100;  // looks, 5 ms apart

/// In a process of its own, because nobody becomes root again.
[[noreturn]] void append_as_user(const LaunchOrder& order, const std::string& path,
                                 const std::string& line) {
  if (!become_user({.uid = order.uid, .gid = order.gid, .groups = order.groups})) ::_exit(1);
  // What is gone or a pipe that nobody reads stays as it is.
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  const bool is_written = file >= 0 && ::write(file, line.data(), line.size()) > 0;
  ::_exit(is_written ? 0 : 1);
}

}  // namespace

void note_in_output(const LaunchOrder& order, const std::string& line) {
  const std::string& pattern = order.error.empty() ? order.output : order.error;
  if (pattern.empty()) return;
  const std::string path = path_of_task(pattern, 0);
  const std::string text = line + "\n";
  const pid_t child = ::fork();
  if (child == 0) append_as_user(order, path, text);
  const timespec moment{0, 5'000'000};
  for (int look = 0; child > 0 && ::waitpid(child, nullptr, WNOHANG) == 0; ++look) {
    if (look == kPatience) {
      ::kill(child, SIGKILL);  // whenever it goes, it is reaped with the orphans
      return;
    }
    ::nanosleep(&moment, nullptr);
  }
}

std::string time_limit_note(const LaunchOrder& order, const std::string& node) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::array<char, 32> at{};
  ::localtime_r(&now, &local);
  std::strftime(at.data(), at.size(), "%Y-%m-%dT%H:%M:%S", &local);
  return "berth: error: *** JOB " + std::to_string(order.job) + " ON " + node + " CANCELLED AT " +
         at.data() + " DUE TO TIME LIMIT ***";
}

std::string memory_note(const LaunchOrder& order, const std::string& node) {
  return "berth: error: *** JOB " + std::to_string(order.job) + " ON " + node +
         " Detected oom_kill event: OUT OF MEMORY" +
         (order.memory_mib > 0 ? ", its limit is " + std::to_string(order.memory_mib) + " MiB"
                               : "") +
         " ***";
}

}  // namespace berth
