// Files by their descriptors: closed with their owner, written whole, read whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

/// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

/// "PATH: cannot do: No such file or directory", from errno.
[[nodiscard]] tl::unexpected<Error> fail_with_errno(const std::string& path, const char* attempted);

/// A new file under its name, whole or not at all for whoever looks. Not synced: what is put here
/// is of no use to anybody after a power loss, for then its reader is gone as well.
[[nodiscard]] Result<void> put_file(const std::string& path, std::string_view bytes);
/// Nothing if there is none. A file above 64 MiB is an error.
[[nodiscard]] Result<std::optional<std::string>> get_file(const std::string& path);
[[nodiscard]] bool write_all(int fd, std::string_view bytes) noexcept;

}  // namespace berth
