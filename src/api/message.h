// A request and its answer as the resources see them: no sockets, no HTTP library. The server
// (api/server.h) fills a Head from the wire, tests and the fuzzer write one by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/service.h"

namespace berth::api {

enum class Method : std::uint8_t { Get, Head, Post, Put, Patch, Delete, Other };
[[nodiscard]] std::string_view to_string(Method method) noexcept;

/// How the request came in. On a Unix socket the kernel vouches for the peer.
struct Peer {
  bool is_local = false;  // Unix socket: uid and gid are known
  std::uint32_t uid = 0, gid = 0;
  std::string address;  // of TCP
};

/// Everything before the body. Absent headers are empty.
struct Head {
  Method method = Method::Get;
  std::string target;  // "/api/v1/jobs?state=pending", as sent
  std::string authorization;
  std::string content_type;
  std::string idempotency_key;
  std::string last_event_id;
  std::string request_id;
  Peer peer;
};

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
};

/// The body of an answer that comes in pieces: events as they happen, a file as it grows. One
/// thread at a time asks for pieces; only `wake` is called from elsewhere.
class BodySource {
 public:
  enum class Because : std::uint8_t { Woken, Idle };
  struct Piece {
    std::string bytes;
    bool is_last = false;
  };
  virtual ~BodySource() = default;
  /// Before anything is asked: how to say that there is more. It may be called after the reader has
  /// gone and does nothing then.
  virtual void start(std::function<void()> wake) = 0;
  /// What there is now. Nothing, and not the last: ask again when woken or after `patience`.
  [[nodiscard]] virtual Piece next(Because because) = 0;
  [[nodiscard]] virtual std::chrono::milliseconds patience() const = 0;
  /// next() waits for a disk: not for the thread that serves everybody.
  [[nodiscard]] virtual bool blocks() const = 0;
  /// Goes on until its reader leaves: the connection serves nothing else afterwards.
  [[nodiscard]] virtual bool is_endless() const = 0;
};

struct Answered {
  Response response;
  std::unique_ptr<BodySource> source;  // if there, the body; response.body is empty
};
using Reply = std::function<void(Answered)>;

/// {"error":{"code":…,"messages":[…]}}
[[nodiscard]] Response error_response(int status, const std::vector<std::string>& messages);
[[nodiscard]] Response error_response(int status, std::string message);
[[nodiscard]] Response fault_response(const Fault& fault);
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace berth::api
