#include "store/directory_lock.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/patient_lock.h"

namespace berth {

namespace {

/// Who holds it, as far as the file says.
std::string holder(int file) {
  char text[32] = {};
  const auto got = ::pread(file, text, sizeof text - 1, 0);
  std::string pid(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!pid.empty() && (pid.back() < '0' || pid.back() > '9')) pid.pop_back();
  return pid.empty() ? "" : fmt::format(" (process {})", pid);
}

Result<void> make_directory(const std::string& directory) {
  std::error_code error;
  const auto parent = std::filesystem::path(directory).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  // Private from its first moment: the journal holds scripts and environments.
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(fmt::format("{}: cannot make the directory: {} (choose one that can be written)",
                            directory, std::strerror(errno)));
  return {};
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const std::string& directory) {
  BERTH_TRY_VOID(make_directory(directory));
  const std::string path = directory + "/lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(fmt::format("{}: cannot be opened: {} (the directory must be writable)", path,
                            std::strerror(errno)));
  DirectoryLock lock(file);
  if (!lock_for_good(file)) {
    if (errno != EWOULDBLOCK)
      return fail(fmt::format("{}: cannot be locked: {}", path, std::strerror(errno)));
    return fail(fmt::format(
        "{}: another scheduler{} works on this directory (stop it, or choose another directory)",
        directory, holder(file)));
  }
  // The number is for messages only: a disk too full to take it is found out by the first commit.
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) == 0) static_cast<void>(::pwrite(file, pid.data(), pid.size(), 0));
  return lock;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)) {}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace berth
