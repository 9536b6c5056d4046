#include "exec/run_dir.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/order_file.h"

namespace berth {

std::string RunDir::file(const char* kind, AttemptId attempt) const {
  return path_ + "/" + kind + attempt_name(attempt);
}

Result<void> RunDir::make() const {
  if (::mkdir(path_.c_str(), 0711) != 0 && errno != EEXIST)
    return fail_with_errno(path_, "make the directory");
  struct stat found {};
  if (::lstat(path_.c_str(), &found) != 0) return fail_with_errno(path_, "look at it");
  if (!S_ISDIR(found.st_mode)) return fail(path_ + ": is not a directory");
  if (found.st_uid != ::geteuid()) return fail(path_ + ": belongs to somebody else");
  if (::chmod(path_.c_str(), 0711) != 0) return fail_with_errno(path_, "set the mode");
  return {};
}

Result<void> RunDir::sync() const {
  const Fd directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return fail_with_errno(path_, "open the directory");
  if (::fsync(directory.get()) != 0) return fail_with_errno(path_, "sync the directory");
  return {};
}

}  // namespace berth
