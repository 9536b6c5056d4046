#include "exec/shim/steps.h"

#include <cerrno>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "step/grant.h"

namespace berth {

namespace {

/// Before the directory is its user's, so that nobody is there yet to put something in its place.
Result<void> put_grant(int directory, const std::string& path, const std::string& grant) {
  ::unlinkat(directory, kGrantFile, 0);
  const Fd file(
      ::openat(directory, kGrantFile, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
  if (!file.is_open() || ::fchmod(file.get(), 0444) != 0 || !write_all(file.get(), grant))
    return fail_with_errno(path, "put on record what the job holds");
  return {};
}

}  // namespace

Result<void> make_steps_directory(const std::string& path, const LaunchOrder& order) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_with_errno(path, "make the directory of steps");
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.is_open()) return fail_with_errno(path, "open the directory of steps");
  BERTH_TRY_VOID(put_grant(directory.get(), path, order.grant));
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
