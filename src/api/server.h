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

#include "api/api.h"
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
  std::size_t connections = 1'024;
  std::size_t connections_per_peer = 256;  // one user of the socket, one address of TCP
  std::size_t header_bytes = 16U << 10U;
  std::chrono::milliseconds header_time{10'000};  // from its first byte to its last
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
  std::size_t workers = 2;
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

class Server {
 public:
  /// The service outlives the server.
  Server(Service& service, ServerOptions options);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Once. An error says what could not be bound, and why: another server lives there, a file that
  /// is no socket is in the way, a certificate does not fit its key.
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
