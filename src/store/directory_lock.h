// One scheduler per directory. The lock goes with the process, however it ends. On file systems
// where locks do not reach other machines the store's generation is the second line of defence.
#pragma once

#include <string>

#include "base/result.h"

namespace berth {

class DirectoryLock {
 public:
  /// Makes the directory if it is not there, readable by its owner only: jobs hold secrets.
  [[nodiscard]] static Result<DirectoryLock> take(const std::string& directory);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace berth
