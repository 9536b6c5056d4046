#include "api/unix_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/patient_lock.h"

namespace berth::api {

namespace {

tl::unexpected<Error> failed(const std::string& path, std::string_view what) {
  return fail(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

tl::unexpected<Error> taken(const std::string& path) {
  return fail(
      fmt::format("{}: another scheduler listens there (stop it or choose another socket)", path));
}

int connect_to(const FileHandle& socket, const sockaddr_un& address) {
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

/// Makes room at the path: removes a socket nobody listens on.
Result<void> clear(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return failed(path, "cannot be looked at");
  }
  if (!S_ISSOCK(status.st_mode))
    return fail(fmt::format("{}: is there and is no socket (remove it yourself)", path));
  const FileHandle probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // EAGAIN: its queue is full, so somebody is there.
  if (connect_to(probe, address) == 0 || errno == EAGAIN) return taken(path);
  if (errno != ECONNREFUSED && errno != ENOENT) return failed(path, "cannot be tried");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return failed(path, "cannot remove the socket left behind");
  return {};
}

}  // namespace

Result<void> UnixListener::check(const std::string& path) {
  constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.front() != '/')
    return fail(fmt::format("'{}': the path of a socket is absolute", path));
  if (path.size() > kMost) {
    return fail(
        fmt::format("{}: {} bytes, a socket's path has at most {}", path, path.size(), kMost));
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode))
    return fail(fmt::format("{}: is there and is no socket (remove it yourself)", path));
  return {};
}

Result<UnixListener> UnixListener::open(const std::string& path) {
  BERTH_TRY_VOID(check(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());

  UnixListener listener;
  listener.path_ = path;
  const std::string lock_path = path + ".lock";
  listener.lock_ = FileHandle(
      ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!listener.lock_.is_open()) return failed(lock_path, "cannot be made");
  if (!lock_for_good(listener.lock_.get())) return taken(path);
  Result<void> cleared;
  static_cast<void>(within_patience([&] {  // the socket of one that is gone, for the same reason
    cleared = clear(path, address);
    return cleared.has_value();
  }));
  BERTH_TRY_VOID(std::move(cleared));

  listener.socket_ = FileHandle(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket_.is_open()) return failed(path, "no socket");
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener.socket_.get(), plain, sizeof address) != 0)
    return failed(path, "cannot be bound");
  struct stat status {};
  if (::chmod(path.c_str(), 0666) != 0 || ::lstat(path.c_str(), &status) != 0)
    return failed(path, "cannot be opened to everybody");
  listener.device_ = status.st_dev;
  listener.inode_ = status.st_ino;
  if (::listen(listener.socket_.get(), SOMAXCONN) != 0) return failed(path, "cannot listen");
  return listener;
}

UnixListener::~UnixListener() {
  if (!socket_.is_open()) return;
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    ::unlink(path_.c_str());
}

}  // namespace berth::api
