#include "exec/shim/steps.h"

#include <cerrno>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace berth {

Result<void> make_steps_directory(const std::string& path, const LaunchOrder& order) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_with_errno(path, "make the directory of steps");
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.is_open()) return fail_with_errno(path, "open the directory of steps");
  if (::geteuid() == 0 && ::fchown(directory.get(), order.uid, order.gid) != 0)
    return fail_with_errno(path, "give the directory of steps to its user");
  return {};
}

bool is_step_running(const std::string& path) {
  DIR* listing = ::opendir(path.c_str());
  if (listing == nullptr) return false;
  bool is_running = false;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name(entry->d_name);
    if (!name.ends_with(".lock") || name.front() < '0' || name.front() > '9') continue;
    // Never waited for, whatever the job's user has put there.
    const Fd file(
        ::openat(::dirfd(listing), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    is_running = file.is_open() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
    if (is_running) break;
  }
  ::closedir(listing);
  return is_running;
}

}  // namespace berth
