// A small HTTP/1.1 client: what is needed to talk to our own API and no more. Keeps its connection
// between requests; bodies by length, in chunks, or up to the close; answers of any length can be
// read as they come. One request at a time, one thread; only Stream::interrupt() is for another.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/endpoint.h"

namespace berth::client {

class Wire;
class AnswerReader;

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query, percent-encoded
  std::string body{};
  Headers headers{};
  bool may_repeat = false;  // whatever its method: doing it twice is doing it once
  /// Whether doing it twice is doing it once: by its method, because it carries a key, or by word.
  [[nodiscard]] bool is_repeatable() const;
};

struct HttpReply {
  int status = 0;
  Headers headers;
  std::string body;
  /// The value of a header, whatever its case; empty if there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// An answer that is read piece by piece.
class HttpStream {
 public:
  explicit HttpStream(std::unique_ptr<Wire> wire);
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  [[nodiscard]] const HttpReply& head() const noexcept { return head_; }
  /// The next piece of the body; empty at its end.
  [[nodiscard]] Result<std::string> next();
  /// All that is left.
  [[nodiscard]] Result<std::string> rest();
  /// Ends a next() under way in another thread.
  void interrupt() noexcept;

 private:
  friend class HttpClient;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<AnswerReader> reader_;
  HttpReply head_;
};

class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30));
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// A request that a kept connection lost is sent again if it is repeatable; any other is not:
  /// the scheduler may have done it.
  [[nodiscard]] Result<HttpReply> send(const HttpRequest& request);
  /// Opens a connection of its own; `silence` is how long nothing may come.
  [[nodiscard]] Result<std::unique_ptr<HttpStream>> open(const HttpRequest& request,
                                                         std::chrono::milliseconds silence);
  /// Whether the last request that failed had reached the other side, at least in part.
  [[nodiscard]] bool was_sent() const noexcept { return was_sent_; }
  /// Why the last request failed. Away: nobody listens there, nothing was sent. CutOff: it went
  /// out, and the other side went away before it had answered.
  enum class Failure : unsigned char { None, Away, CutOff, Other };
  [[nodiscard]] Failure failure() const noexcept { return failure_; }
  /// Whether a connection is kept on which the next request can go out.
  [[nodiscard]] bool is_connected() const noexcept;
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  [[nodiscard]] std::string text_of(const HttpRequest& request) const;
  [[nodiscard]] Result<HttpReply> exchange(const std::string& text, const std::string& method);

  Endpoint endpoint_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Wire> wire_;
  bool was_sent_ = false;
  bool was_closed_ = false;  // by the other side, before it said anything
  Failure failure_ = Failure::None;
};

/// For a path or a query: everything but letters, digits and -._~ as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace berth::client
