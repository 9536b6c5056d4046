#include "training/socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace berth {

namespace {

tl::unexpected<Error> failed(const std::string& path, const char* what) {
  return fail(fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Descriptor> listen_on(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(fmt::format("{}: a socket's path has at most {} bytes (choose a shorter directory)",
                            path, sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) return fail(fmt::format("{}: is there and no socket", path));
    ::unlink(path.c_str());
  }
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.is_open()) return failed(path, "make a socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed(path, "bind");
  // Jobs run as their users. Who may speak for which is decided by credentials and tokens.
  if (::chmod(path.c_str(), 0666) != 0) return failed(path, "set the mode");
  if (::listen(socket.get(), 128) != 0) return failed(path, "listen");
  return socket;
}

std::optional<Accepted> accept_from(const Descriptor& listener) {
  Descriptor socket{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket.is_open()) return std::nullopt;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return Accepted{.socket = std::move(socket), .uid = peer.uid};
}

}  // namespace berth
