#include "exec/shim/guard.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/cgroup.h"
#include "exec/process_table.h"

namespace berth {

namespace {

/// In lists of processes, and for whoever ends shims by their name: "berth-mind" instead of
/// "berth-shim".
void take_name(char* name) {
  ::prctl(PR_SET_NAME, "berth-mind");
  const std::size_t length = std::strlen(name);
  if (length >= 4 && std::strcmp(name + length - 4, "shim") == 0)
    std::memcpy(name + length - 4, "mind", 4);
}

/// Until the kernel says that nobody is below us.
void end_all() {
  for (long pause = 1'000'000;; pause = std::min(pause * 2, 100'000'000L)) {
    for (const ProcessRow& row : descendants_of(::getpid())) {
      send_signal(row, SIGKILL);
      thaw_group_of(row.pid);
    }
    pid_t gone = 0;
    while ((gone = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (gone < 0 && errno == ECHILD) return;
    const timespec moment{0, pause};
    ::nanosleep(&moment, nullptr);
  }
}

[[noreturn]] void guard(pid_t shim) {
  // No descriptor of ours may keep a pipe open that tells the scheduler of the shim's end.
  for (int fd = 0; fd < 64; ++fd) ::close(fd);
  static_cast<void>(::chdir("/"));
  int status = 0;
  while (::waitpid(shim, &status, 0) < 0 && errno == EINTR) {
  }
  // Also after an end of its own: a shim that came back without its job has left nobody.
  end_all();
  ::_exit(0);
}

}  // namespace

bool begin_guarded(char* name) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return false;
  const pid_t shim = ::fork();
  if (shim < 0) return false;
  if (shim == 0) return true;
  take_name(name);
  guard(shim);
}

}  // namespace berth
