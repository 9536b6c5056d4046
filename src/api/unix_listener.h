// A listening Unix socket at a path. The path may hold a socket that a killed server left behind;
// it must not hold one that is alive, nor any other file. A lock beside it (PATH.lock) is held as
// long as we listen, so that of two servers starting at once one gives way.
#pragma once

#include <sys/types.h>

#include <string>

#include "api/owned_file.h"
#include "base/result.h"

namespace berth::api {

class UnixListener {
 public:
  /// That a socket can have this path at all, and that nothing else is there.
  [[nodiscard]] static Result<void> check(const std::string& path);
  /// Everybody may connect (mode 0666): who they are is asked of the kernel.
  [[nodiscard]] static Result<UnixListener> open(const std::string& path);
  UnixListener(UnixListener&&) = default;
  UnixListener& operator=(UnixListener&&) = default;
  ~UnixListener();  // removes the path, if it is still ours

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  UnixListener() = default;
  std::string path_;
  FileHandle lock_;
  FileHandle socket_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace berth::api
