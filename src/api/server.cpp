#include "api/server.h"

#include "api/server_core.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <thread>

#include <fmt/format.h>

#include "api/unix_listener.h"

namespace berth::api {

namespace {

using asio::ip::tcp;
using boost::system::error_code;
using Unix = asio::local::stream_protocol;

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    "Content-Length: 73\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    R"({"error":{"code":"unavailable","messages":["too many open connections"]}})";
static_assert(kFull.substr(kFull.find("{")).size() == 73);

/// Says so if it fits into the socket at once, and leaves.
void turn_away(Socket& socket) {
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kFull.data(), kFull.size()), ignored);
  socket.close(ignored);
}

std::optional<Peer> peer_of(Unix::socket& socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return std::nullopt;
  return Peer{true, credentials.uid, credentials.gid, ""};
}

std::optional<Peer> peer_of(tcp::socket& socket) {
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  socket.set_option(tcp::no_delay(true), error);
  return Peer{false, 0, 0, remote.address().to_string()};
}

/// The kernel says that there is no descriptor before it looks whether anybody wants one.
bool somebody_waits(int listener) {
  pollfd waiting{.fd = listener, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 1 && (waiting.revents & POLLIN) != 0;
}

/// The library makes sockets that outlive an exec. Whatever this process runs must not hold our
/// port, or a client's connection, after we are gone.
void keep_from_children(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

Result<tcp::acceptor> listen_on(asio::io_context& io, const TcpAddress& where) {
  error_code error;
  const auto address = asio::ip::make_address(where.host, error);
  if (error)
    return fail(fmt::format("'{}' is not an address (a number such as 127.0.0.1)", where.host));
  tcp::acceptor acceptor(io);
  const tcp::endpoint endpoint(address, where.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) keep_from_children(acceptor.native_handle());
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return fail(fmt::format("{}:{}: cannot listen: {}", where.host, where.port, error.message()));
  return acceptor;
}

}  // namespace

namespace {

Result<void> check_network(const ServerOptions& options) {
  error_code error;
  const auto address = asio::ip::make_address(options.tcp->host, error);
  if (error) {
    return fail(
        fmt::format("'{}' is not an address (a number such as 127.0.0.1)", options.tcp->host));
  }
  if (!address.is_loopback() && !options.tls && !options.allow_plain_network) {
    return fail(fmt::format(
        "{}: tokens would travel readable through the network (give a certificate, stay on "
        "127.0.0.1, or allow a plain network explicitly)",
        options.tcp->host));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> check(const ServerOptions& options) {
  std::vector<std::string> warnings;
  if (!options.unix_path && !options.tcp) return fail("nothing to listen on: a socket or TCP?");
  if (options.unix_path) {
    BERTH_TRY_VOID(UnixListener::check(*options.unix_path));
  }
  if (options.tcp) {
    BERTH_TRY_VOID(check_network(options));
  }
  if (options.tls) {
    BERTH_TRY_VOID(load_tls(*options.tls));
    struct stat key {};
    if (::stat(options.tls->private_key.c_str(), &key) == 0 && (key.st_mode & 0007U) != 0) {
      warnings.push_back(fmt::format("{}: every user of this machine can read this key (chmod 600)",
                                     options.tls->private_key));
    }
  }
  return warnings;
}

struct Listening::Parts {
  std::unique_ptr<TlsContext> tls;
  std::unique_ptr<UnixListener> unix_listener;
  FileHandle tcp;
  bool is_six = false;
  Bound bound;
};

Listening::Listening(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Listening::Listening(Listening&&) noexcept = default;
Listening& Listening::operator=(Listening&&) noexcept = default;
Listening::~Listening() = default;
const Bound& Listening::bound() const noexcept { return parts_->bound; }

Result<Listening> Listening::open(const ServerOptions& options) {
  BERTH_TRY_VOID(check(options));
  auto parts = std::make_unique<Parts>();
  Bound& bound = parts->bound;
  if (options.tls) {
    BERTH_TRY(parts->tls, load_tls(*options.tls));
  }
  if (options.unix_path) {
    BERTH_TRY(UnixListener listener, UnixListener::open(*options.unix_path));
    parts->unix_listener = std::make_unique<UnixListener>(std::move(listener));
    bound.unix_path = *options.unix_path;
  }
  if (options.tcp) {
    asio::io_context io;
    BERTH_TRY(tcp::acceptor acceptor, listen_on(io, *options.tcp));
    const auto local = acceptor.local_endpoint();
    bound.host = local.address().to_string();
    bound.port = local.port();
    bound.has_tls = parts->tls != nullptr;
    parts->is_six = local.address().is_v6();
    error_code error;
    parts->tcp = FileHandle(acceptor.release(error));
    if (error) return fail(fmt::format("{}: {}", options.tcp->host, error.message()));
  }
  return Listening(std::move(parts));
}

/// A server between start and stop.
class Server::Running {
 public:
  Running(Service& service, const ServerOptions& options)
      : core_(service, options), sweeper_(core_.io) {}

  void take(Listening::Parts listening) {
    tls_ = std::move(listening.tls);
    if (listening.unix_listener) {
      unix_listener_ = std::move(listening.unix_listener);
      unix_acceptor_.emplace(core_.io, Unix(),
                             ::fcntl(unix_listener_->descriptor(), F_DUPFD_CLOEXEC, 0));
    }
    if (listening.tcp.is_open()) {
      const auto protocol = listening.is_six ? tcp::v6() : tcp::v4();
      tcp_acceptor_.emplace(core_.io, protocol, listening.tcp.release());
    }
  }

  void start() {
    if (unix_acceptor_) accept(*unix_acceptor_);
    if (tcp_acceptor_) accept(*tcp_acceptor_);
    sweep_later();
    thread_ = std::thread([this] { core_.io.run(); });
  }

  void stop() {
    asio::post(core_.io, [this] { begin_stop(); });
    {
      std::unique_lock lock(mutex_);
      is_empty_.wait_for(lock, core_.limits.stop_time, [this] { return is_done_; });
    }
    core_.mailbox->close();  // answers that come now find nobody
    core_.io.stop();
    thread_.join();
    core_.workers.join();
    while (!core_.connections.empty()) (*core_.connections.begin())->close();
    unix_acceptor_.reset();
    unix_listener_.reset();
  }

 private:
  template <class Acceptor>
  void accept(Acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](error_code error, auto socket) {
      if (core_.is_stopping) return;
      if (error) {
        if (somebody_waits(acceptor.native_handle())) core_.out_of_descriptors();
        return accept_later(acceptor);
      }
      keep_from_children(socket.native_handle());
      if (auto peer = peer_of(socket)) welcome(Socket(std::move(socket)), *std::move(peer));
      accept(acceptor);
    });
  }

  /// Out of descriptors, most likely: the client waits in the queue until some are free, and we do
  /// not try again at once, or this thread would do nothing else.
  template <class Acceptor>
  void accept_later(Acceptor& acceptor) {
    auto timer = std::make_shared<asio::steady_timer>(core_.io, std::chrono::milliseconds(100));
    timer->async_wait([this, &acceptor, timer](error_code) {
      if (!core_.is_stopping) accept(acceptor);
    });
  }

  void welcome(Socket socket, Peer peer) {
    const bool has_tls = tls_ && !peer.is_local;
    Holder holder = core_.holder_of(peer);
    if (!core_.has_room_for(holder)) {
      if (!has_tls) turn_away(socket);
      return;
    }
    auto connection = has_tls ? tls_->make_connection(core_, std::move(socket), std::move(peer))
                              : make_plain_connection(core_, std::move(socket), std::move(peer));
    core_.add(connection, std::move(holder));
    connection->start();
  }

  /// One timer for all: a connection changes its deadline with every step, and nobody minds a
  /// quarter of a second.
  void sweep_later() {
    const int wait = core_.is_stopping ? 5 : core_.connections.empty() ? 1'000 : 250;
    sweeper_.expires_after(std::chrono::milliseconds(wait));
    sweeper_.async_wait([this](error_code error) {
      if (error) return;
      for_all([now = std::chrono::steady_clock::now()](ConnectionBase& connection) {
        connection.sweep(now);
      });
      if (core_.is_stopping && core_.connections.empty()) return tell_done();
      sweep_later();
    });
  }

  /// A connection may leave while it is visited.
  template <class Visit>
  void for_all(Visit visit) {
    const std::vector<std::shared_ptr<ConnectionBase>> all(core_.connections.begin(),
                                                           core_.connections.end());
    for (const auto& connection : all) visit(*connection);
  }

  void begin_stop() {
    core_.is_stopping = true;
    error_code ignored;
    if (unix_acceptor_) unix_acceptor_->close(ignored);
    if (tcp_acceptor_) tcp_acceptor_->close(ignored);
    for_all([](ConnectionBase& connection) { connection.begin_stop(); });
    sweep_later();
  }

  void tell_done() {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    is_empty_.notify_all();
  }

  ServerCore core_;
  asio::steady_timer sweeper_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<UnixListener> unix_listener_;
  std::optional<Unix::acceptor> unix_acceptor_;
  std::optional<tcp::acceptor> tcp_acceptor_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable is_empty_;
  bool is_done_ = false;
};

Server::Server(Service& service, ServerOptions options)
    : service_(service), options_(std::move(options)) {}

Server::~Server() { stop(); }

void Server::start(Listening listening) {
  running_ = std::make_unique<Running>(service_, options_);
  running_->take(std::move(*listening.parts_));
  running_->start();
}

Result<Bound> Server::start() {
  BERTH_TRY(Listening listening, Listening::open(options_));
  Bound bound = listening.bound();
  start(std::move(listening));
  return bound;
}

void Server::stop() {
  if (!running_) return;
  running_->stop();
  running_.reset();
}

}  // namespace berth::api
