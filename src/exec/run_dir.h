// The files of attempts, and how they are made durable. All that scheduler and shims share lies in
// one directory: order.ID, attempt.ID (the claim), script.ID, cores.ID, tmp.ID (where its own
// temporary directory is), exit.ID. It belongs to the
// scheduler; others may pass through it (mode 0711) to run their own script, and read nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/record.h"

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

class RunDir {
 public:
  explicit RunDir(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string order(AttemptId attempt) const { return file("order.", attempt); }
  [[nodiscard]] std::string claim(AttemptId attempt) const { return file("attempt.", attempt); }
  [[nodiscard]] std::string script(AttemptId attempt) const { return file("script.", attempt); }
  [[nodiscard]] std::string cores(AttemptId attempt) const { return file("cores.", attempt); }
  [[nodiscard]] std::string tmp(AttemptId attempt) const { return file("tmp.", attempt); }
  [[nodiscard]] std::string exit(AttemptId attempt) const { return file("exit.", attempt); }

  /// Makes it with its mode where it is missing.
  [[nodiscard]] Result<void> make() const;
  /// Names made or removed so far are durable.
  [[nodiscard]] Result<void> sync() const;

 private:
  [[nodiscard]] std::string file(const char* kind, AttemptId attempt) const;

  std::string path_;
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
