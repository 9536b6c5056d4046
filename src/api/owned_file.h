// Opens a file with the rights of the user whose job wrote it, never with those of the scheduler.
// The path is the user's choice and the scheduler may be root: opened as root, an output named
// /etc/shadow would be a hole. The thread takes the owner's file-system identity (fsuid, fsgid and
// groups) for the one open() and gives it back; other threads do not notice. A scheduler that is
// not root runs every job as itself, so its own rights are the owner's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/service.h"

namespace berth::api {

/// A descriptor that closes itself.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) noexcept : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileHandle();
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  /// The caller closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

struct FileOwner {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};
/// By name, with the groups the system's database gives; nothing if there is no such user.
[[nodiscard]] std::optional<FileOwner> file_owner(const std::string& user);

/// Regular files only: a FIFO would block, a device would act. Links are followed with the owner's
/// rights, except those of /proc that lead to what this process has open. NotFound: no such file
/// yet. Waits for the disk and possibly for the user database.
[[nodiscard]] Answer<FileHandle> open_as_owner(const std::string& path, const std::string& user);

}  // namespace berth::api
