#include "client/sse.h"

namespace berth::client {

void EventReader::add(std::string_view bytes) { buffer_ += bytes; }

// Unknown fields are ignored, as the format demands; a line without colon is a field without value.
void EventReader::field(std::string_view line) {
  const auto colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "id") last_id_ = std::string(value);
  if (name == "event") open_.kind = std::string(value);
  if (name == "data") {
    if (has_data_) open_.data += '\n';
    open_.data += value;
    has_data_ = true;
  }
}

std::optional<ServerEvent> EventReader::next() {
  while (true) {
    const auto end = buffer_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) {
      field(line);
      continue;
    }
    ServerEvent event = std::move(open_);
    const bool is_event = has_data_;
    open_ = {};
    has_data_ = false;
    event.id = last_id_;
    // A block without data is a heartbeat or a comment.
    if (is_event) return event;
  }
}

}  // namespace berth::client
