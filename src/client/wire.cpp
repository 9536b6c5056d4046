// Connections: Unix sockets and TCP, with a timeout on every read and write. Errors say what to do,
// and whether waiting may help.

#include "client/wire.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

namespace berth::client {

namespace {

std::string reason(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return "no answer in time";
  return std::strerror(error);
}

// MSG_NOSIGNAL: a peer that is gone is an error to report, not a signal that ends us.
class PlainWire final : public Wire {
 public:
  explicit PlainWire(int socket) : socket_(socket) {}
  ~PlainWire() override { ::close(socket_); }
  PlainWire(const PlainWire&) = delete;
  PlainWire& operator=(const PlainWire&) = delete;

  Result<void> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return fail(reason(errno));
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }
  Result<std::size_t> read(std::span<char> into) override {
    while (true) {
      const ssize_t got = ::recv(socket_, into.data(), into.size(), 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return fail(reason(errno));
    }
  }
  void interrupt() noexcept override { ::shutdown(socket_, SHUT_RDWR); }
  bool is_quiet() const noexcept override { return client::is_quiet(socket_); }

 private:
  int socket_;
};

// On the socket itself: every call below is then bounded, also those of OpenSSL.
void set_timeout(int socket, std::chrono::milliseconds timeout) {
  timeval span{};
  span.tv_sec = timeout.count() / 1'000;
  span.tv_usec = timeout.count() % 1'000 * 1'000;
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &span, sizeof span);
}

using Connected = tl::expected<int, NoWire>;

// Not worth waiting for.
tl::unexpected<NoWire> no_wire(std::string message) {
  return tl::unexpected<NoWire>(NoWire{.error = Error(std::move(message)), .may_come_back = false});
}

/// If not even the directory of the socket exists, no scheduler has ever run there.
bool may_come_back(const Endpoint& endpoint, int error) {
  if (error != ENOENT) return error == ECONNREFUSED || error == ECONNRESET;
  const std::string folder = std::filesystem::path(endpoint.socket).parent_path().string();
  std::error_code ignored;
  return std::filesystem::is_directory(folder.empty() ? "." : folder, ignored);
}

/// What to do about it, as far as the error tells.
tl::unexpected<NoWire> no_scheduler(const Endpoint& endpoint, int error) {
  const std::string where = endpoint.text();
  if (error == EACCES)
    return no_wire(fmt::format(
        "{}: you may not connect to this scheduler (permissions of the socket)", where));
  if (error != ENOENT && error != ECONNREFUSED && error != ECONNRESET)
    return no_wire(fmt::format("no scheduler at {}: {}", where, reason(error)));
  return tl::unexpected<NoWire>(
      NoWire{.error = Error(fmt::format("no scheduler at {}: start one with `berth serve`, or say "
                                        "where it is with BERTH_SOCKET or BERTH_URL",
                                        where)),
             .may_come_back = may_come_back(endpoint, error)});
}

// The length was checked when the endpoint was made.
Connected connect_unix(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  endpoint.socket.copy(address.sun_path, sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return no_wire(fmt::format("no socket: {}", std::strerror(errno)));
  set_timeout(socket, timeout);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    ::close(socket);
    return no_scheduler(endpoint, error);
  }
  return socket;
}

// Every address of the host in turn, as getaddrinfo orders them.
Connected connect_tcp(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(endpoint.host.c_str(), fmt::format("{}", endpoint.port).c_str(),
                                 &hints, &found);
  if (code != 0) return no_wire(fmt::format("{}: {}", endpoint.text(), ::gai_strerror(code)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int error = ECONNREFUSED;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (socket < 0) continue;
    set_timeout(socket, timeout);
    if (::connect(socket, one->ai_addr, one->ai_addrlen) == 0) {
      const int yes = 1;
      // Requests are small and each waits for its answer: delaying them would only add time.
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      return socket;
    }
    // With a send timeout connect() reports an expired one as EINPROGRESS.
    error = errno == EINPROGRESS ? ETIMEDOUT : errno;
    ::close(socket);
  }
  return no_scheduler(endpoint, error);
}

}  // namespace

bool is_quiet(int socket) noexcept {
  pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
  // Nothing to read on an idle connection is good: anything, also the end, means that the other
  // side has closed it or is out of step.
  return ::poll(&waiting, 1, 0) == 0;
}

tl::expected<std::unique_ptr<Wire>, NoWire> open_wire(const Endpoint& endpoint,
                                                      std::chrono::milliseconds timeout) {
  const Connected socket =
      endpoint.socket.empty() ? connect_tcp(endpoint, timeout) : connect_unix(endpoint, timeout);
  if (!socket) return tl::unexpected<NoWire>(socket.error());
  if (!endpoint.socket.empty() || !endpoint.is_tls) return std::make_unique<PlainWire>(*socket);
  auto wire = open_tls_wire(*socket, endpoint);
  if (!wire) return tl::unexpected<NoWire>(NoWire{wire.error(), false});
  return *std::move(wire);
}

}  // namespace berth::client
