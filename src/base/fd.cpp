#include "base/fd.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace berth {

namespace {
constexpr std::size_t kMaxFile = std::size_t{64} << 20U;
}

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

tl::unexpected<Error> fail_with_errno(const std::string& path, const char* attempted) {
  const int number = errno;
  return fail(path + ": cannot " + attempted + ": " + std::strerror(number));
}

bool write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

Result<void> put_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  const Fd file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return fail_with_errno(temporary, "create it");
  const bool is_written =
      write_all(file.get(), bytes) && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (is_written) return {};
  auto error = fail_with_errno(path, "write it");
  ::unlink(temporary.c_str());
  return error;
}

Result<std::optional<std::string>> get_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return std::nullopt;
    return fail_with_errno(path, "open it");
  }
  std::string bytes;
  char part[16384];
  for (;;) {
    const ssize_t got = ::read(file.get(), part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_with_errno(path, "read it");
    if (got == 0) return bytes;
    bytes.append(part, static_cast<std::size_t>(got));
    if (bytes.size() > kMaxFile) return fail(path + ": is too large");
  }
}

}  // namespace berth
