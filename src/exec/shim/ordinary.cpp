#include "exec/shim/ordinary.h"

#include <algorithm>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/run_dir.h"

namespace berth {

namespace {

void set_file_limits(const FileLimits& limits) {
  rlimit wanted{.rlim_cur = limits.soft, .rlim_max = limits.hard};
  if (limits.hard == 0 || ::setrlimit(RLIMIT_NOFILE, &wanted) == 0) return;
  // In a container without the right to raise it: as much of it as there is.
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0) return;
  wanted.rlim_max = std::min(wanted.rlim_max, now.rlim_max);
  wanted.rlim_cur = std::min(wanted.rlim_cur, wanted.rlim_max);
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &wanted));
}

}  // namespace

void become_ordinary(const LaunchOrder& order) {
  if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score.is_open())
    static_cast<void>(write_all(score.get(), "0"));
  set_file_limits(order.files);
  if (::geteuid() != 0) return;
  const sched_param plain{};
  static_cast<void>(::sched_setscheduler(0, SCHED_OTHER, &plain));
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, 0));
  constexpr int kProcess = 1, kByNice = 0;  // IOPRIO_WHO_PROCESS, IOPRIO_CLASS_NONE
  static_cast<void>(::syscall(SYS_ioprio_set, kProcess, 0, kByNice));
}

}  // namespace berth
