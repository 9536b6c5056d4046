#include "step/local_socket.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::step {

namespace {

struct Place {
  Fd directory{};
  sockaddr_un address{};
};

/// Not open: errno says why.
Place place_of(const std::string& directory, const std::string& name) {
  Place place;
  place.directory.reset(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  place.address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(place.directory.get()) + "/" + name;
  if (place.directory.is_open() && path.size() >= sizeof place.address.sun_path) {
    place.directory.reset();
    errno = ENAMETOOLONG;
  }
  if (place.directory.is_open()) std::memcpy(place.address.sun_path, path.c_str(), path.size() + 1);
  return place;
}

const sockaddr* as_address(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

tl::unexpected<Error> fail_by_errno(const std::string& what) {
  const int reason = errno;
  return fail("cannot " + what + ": " + std::strerror(reason));
}

void make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

Result<Fd> listen_at(const std::string& directory, const std::string& name) {
  const std::string what = "listen at " + directory + "/" + name;
  const Place place = place_of(directory, name);
  if (!place.directory.is_open()) return fail_by_errno(what);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return fail_by_errno(what);
  ::unlinkat(place.directory.get(), name.c_str(), 0);
  const mode_t before = ::umask(0177);
  const bool is_bound = ::bind(socket.get(), as_address(place.address), sizeof place.address) == 0;
  ::umask(before);
  if (!is_bound || ::listen(socket.get(), 4) != 0) return fail_by_errno(what);
  return socket;
}

tl::expected<Fd, int> connect_at(const std::string& directory, const std::string& name) {
  const Place place = place_of(directory, name);
  if (!place.directory.is_open()) return tl::unexpected<int>(errno);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return tl::unexpected<int>(errno);
  if (::connect(socket.get(), as_address(place.address), sizeof place.address) != 0)
    return tl::unexpected<int>(errno);
  return socket;
}

void remove_at(const std::string& directory, const std::string& name) {
  ::unlink((directory + "/" + name).c_str());
}

bool is_same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace berth::step
