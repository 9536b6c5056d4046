// The HTTP/1.1 server in front of the resources (api/api.h): a Unix socket, where the kernel tells
// who calls, and TCP, where every caller shows a token; optionally with TLS. One thread of its own
// does all reading and writing, a few others wait for disks and passes, so that no slow question or
// slow client holds up the rest. Everything a client can make grow has a limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/api.h"
#include "api/connection_limiter.h"
#include "base/log.h"
#include "base/result.h"

namespace berth::api {

struct TcpAddress {
  std::string host = "127.0.0.1";  // a number, not a name
  std::uint16_t port = 0;          // 0: any free one
};
struct TlsFiles {  // PEM
  std::string certificate_chain;
  std::string private_key;
};

struct ServerLimits {
  ConnectionLimits connections{};  // connections; fewer if the process may not open so many files
  std::size_t header_bytes = 16U << 10U;
  std::size_t body_bytes_of_one = 64U << 20U;  // of one user, in all bodies under way
  std::chrono::milliseconds header_time{
      10'000};  // from its first byte to its last; to its first, if new
  std::chrono::milliseconds body_time{30'000};
  std::chrono::milliseconds answer_time{120'000};  // the service, then the client taking it
  std::chrono::milliseconds write_time{30'000};    // an answer, or a piece of a stream
  std::chrono::milliseconds idle_time{75'000};     // between requests
  std::chrono::milliseconds stop_time{5'000};      // for what is under way when we stop
};

struct ServerOptions {
  std::optional<std::string> unix_path{};  // absolute; everybody may connect
  std::optional<TcpAddress> tcp{};
  std::optional<TlsFiles> tls{};     // for TCP
  bool allow_plain_network = false;  // TCP beyond loopback without TLS: tokens travel readable
  std::size_t workers = 4;
  Logger* log = nullptr;  // of refusals, once a minute each; outlives the server
  ApiOptions api{};
  ServerLimits limits{};
};

/// Where it can be reached.
struct Bound {
  std::string unix_path;  // empty: none
  std::string host;
  std::uint16_t port = 0;  // 0: none
  bool has_tls = false;
};

/// What would be refused whatever else lives on this machine: an address that is none, a network
/// without TLS, a certificate that does not fit its key, a path no socket can have. The answer is
/// what is only unwise. Nothing is bound or made.
[[nodiscard]] Result<std::vector<std::string>> check(const ServerOptions& options);

/// Sockets that are bound and listen; whoever connects waits until a server takes them over. So a
/// scheduler knows that it can be reached before it touches its journal.
class Listening {
 public:
  /// An error says what could not be bound, and why: as check() does, another server lives there, a
  /// file that is no socket is in the way.
  [[nodiscard]] static Result<Listening> open(const ServerOptions& options);
  Listening(Listening&&) noexcept;
  Listening& operator=(Listening&&) noexcept;
  ~Listening();  // if nobody took them over, they are gone
  [[nodiscard]] const Bound& bound() const noexcept;

 private:
  friend class Server;
  struct Parts;
  explicit Listening(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

class Server {
 public:
  /// The service outlives the server.
  Server(Service& service, ServerOptions options);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Once, and one of the two: on sockets that listen already, or as Listening::open() would.
  void start(Listening listening);
  [[nodiscard]] Result<Bound> start();
  /// Takes no more connections, finishes answers under way, ends streams; whoever is not done after
  /// the stop time is cut off. Idempotent.
  void stop();

 private:
  class Running;
  Service& service_;
  ServerOptions options_;
  std::unique_ptr<Running> running_;
};

}  // namespace berth::api
