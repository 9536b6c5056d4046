#include "api/wire.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace berth::api {

std::string head_text(const Response& response, const WireOptions& options,
                      std::optional<std::size_t> body_bytes) {
  std::string text;
  text.reserve(512 + body_bytes.value_or(0));
  auto out = std::back_inserter(text);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status,
                 reason_phrase(response.status), options.date);
  if (response.status != 204) {
    fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
    if (body_bytes)
      fmt::format_to(out, "Content-Length: {}\r\n", *body_bytes);
    else if (options.version == Version::Http11)
      text += "Transfer-Encoding: chunked\r\n";
  }
  // Answers are about one moment and one caller; browsers shall not guess at their kind.
  text += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
  fmt::format_to(out, "X-Request-Id: {}\r\n", options.request_id);
  for (const auto& [name, value] : response.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  if (!options.keep_alive)
    text += "Connection: close\r\n";
  else if (options.version == Version::Http10)
    text += "Connection: keep-alive\r\n";
  text += "\r\n";
  return text;
}

std::string chunk_text(std::string_view bytes, bool is_last) {
  std::string text;
  if (!bytes.empty()) text = fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
  if (is_last) text += "0\r\n\r\n";
  return text;
}

std::string clean_request_id(std::string_view given) {
  constexpr std::size_t kMost = 64;
  const bool is_plain = std::ranges::all_of(given, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
  return is_plain && given.size() <= kMost ? std::string(given) : std::string();
}

bool is_same_word(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

Response too_large(std::size_t most) {
  return error_response(413, fmt::format("body: at most {} bytes", most));
}

}  // namespace berth::api
