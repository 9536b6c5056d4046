#include "slurm/heartbeat.h"

#include <array>
#include <charconv>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.h"

namespace berth::slurm {

Result<void> beat(const std::string& path, std::int64_t unix_seconds) {
  const std::string temporary = path + ".new";
  const Fd file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.is_open()) return fail_with_errno(temporary, "create it");
  // Whatever the umask says.
  if (::fchmod(file.get(), 0644) != 0 ||
      !write_all(file.get(), fmt::format("{}\n", unix_seconds)) ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = fail_with_errno(path, "write it");
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

std::optional<std::int64_t> last_beat(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  std::array<char, 64> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got <= 0) return std::nullopt;
  std::int64_t at = 0;
  const char* end = text.data() + got;
  const auto read = std::from_chars(text.data(), end, at);
  if (read.ec != std::errc{} || (read.ptr != end && *read.ptr != '\n')) return std::nullopt;
  return at;
}

}  // namespace berth::slurm
