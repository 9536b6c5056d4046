// A client that says exactly the bytes a test wants and waits for what comes, never for ever.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace berth::testing {

struct RawAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(body); }
  [[nodiscard]] std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

class RawClient {
 public:
  [[nodiscard]] static RawClient tcp(std::uint16_t port);
  [[nodiscard]] static RawClient unix_socket(const std::string& path);
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&& other) noexcept;
  ~RawClient();

  bool send(std::string_view bytes);
  void end_sending();  // half-closed from now on
  void shrink_receive_buffer();
  /// Until the end of a header, and its body by length or chunks; nothing if the connection ends
  /// before or time runs out. For HEAD say that no body follows.
  enum class Body { AsAnnounced, None };
  [[nodiscard]] std::optional<RawAnswer> read_answer(Body body = Body::AsAnnounced);
  /// Bytes until `text` has come (included); empty if it does not.
  [[nodiscard]] std::string read_until(std::string_view text);
  /// True if the other side closes, whatever comes before.
  [[nodiscard]] bool is_closed_by_peer();
  std::optional<RawAnswer> ask(std::string_view request) {
    send(request);
    return read_answer();
  }

  std::chrono::milliseconds patience{20'000};

 private:
  explicit RawClient(int descriptor) : descriptor_(descriptor) {}
  [[nodiscard]] bool read_more();
  [[nodiscard]] std::optional<std::string> take(std::size_t count);
  [[nodiscard]] std::optional<std::string> take_line();

  int descriptor_ = -1;
  std::string unread_;
};

}  // namespace berth::testing
