// A real `berth serve` for benchmarks: a process of its own, state in a directory of the caller's,
// a Unix socket; what it costs is read from /proc.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "client/http.h"

namespace berth::bench {

/// A benchmark that cannot be made is no result.
[[noreturn]] void give_up(const std::string& why);

class LiveServer {
 public:
  /// Returns when it answers. Ends the program if it does not.
  explicit LiveServer(std::string directory, std::vector<std::string> arguments = {});
  ~LiveServer() { stop(); }
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  void stop();
  [[nodiscard]] std::string socket() const { return directory_ + "/berth.sock"; }
  [[nodiscard]] client::Endpoint endpoint() const;
  [[nodiscard]] double cpu_seconds() const;
  [[nodiscard]] double resident_mib() const;

 private:
  [[nodiscard]] bool answers() const;

  std::string directory_;
  pid_t child_ = -1;
};

/// The body of the answer; ends the program on anything but success.
[[nodiscard]] std::string ask(client::HttpClient& http, const client::HttpRequest& request);
[[nodiscard]] client::HttpRequest get(const std::string& path);
[[nodiscard]] client::HttpRequest post(const std::string& path, std::string body);

}  // namespace berth::bench
