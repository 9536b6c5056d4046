// A server that answers as a test tells it: any status, any body, in chunks, cut off in the middle,
// or a stream that the test writes. Says what it was asked. On a Unix socket or on loopback TCP.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace berth::test {

struct Asked {
  std::string method, target, body;
  std::map<std::string, std::string> headers;  // names in lower case

  [[nodiscard]] std::string path() const { return target.substr(0, target.find('?')); }
  /// A parameter of the query, percent-decoded; empty if absent.
  [[nodiscard]] std::string parameter(const std::string& name) const;
};

struct Told {
  int status = 200;
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::vector<std::string> chunks{};  // instead of the body, each its own chunk
  bool closes = false;                // Connection: close
  std::size_t cut_after = std::numeric_limits<std::size_t>::max();  // bytes, then hang up
  /// Writes a chunk, false when the reader is gone. Instead of the body; the test decides when to
  /// return.
  using Write = std::function<bool(std::string_view)>;
  std::function<void(const Write&)> stream{};
  std::string raw{};  // instead of everything
};

class ScriptedServer {
 public:
  using Handler = std::function<Told(const Asked&)>;
  /// `socket` is a path; empty: a free port of 127.0.0.1.
  ScriptedServer(std::string socket, Handler handler);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::vector<Asked> asked() const;
  /// Those of one method and path.
  [[nodiscard]] std::vector<Asked> asked(const std::string& method, const std::string& path) const;
  [[nodiscard]] int connections() const noexcept { return connections_; }
  /// True while the server should live: for streams that go on until the test is over.
  [[nodiscard]] bool is_up() const noexcept { return !is_over_; }

 private:
  void accept_all();
  void serve(int connection);
  bool answer(int connection, const Told& told) const;

  std::string socket_;
  Handler handler_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_over_ = false;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

/// Until it holds or ten seconds have passed; whether it held.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

}  // namespace berth::test
