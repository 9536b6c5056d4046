// Server-sent events out of a stream of bytes, however it is cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::client {

struct ServerEvent {
  std::string id;
  std::string kind = "message";
  std::string data;
};

class EventReader {
 public:
  void add(std::string_view bytes);
  /// The next whole event; comments and heartbeats are none.
  [[nodiscard]] std::optional<ServerEvent> next();

 private:
  void field(std::string_view line);

  std::string buffer_;
  std::string last_id_;
  ServerEvent open_;
  bool has_data_ = false;
};

}  // namespace berth::client
