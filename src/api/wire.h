// The few texts of HTTP/1.1 that the server writes itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/message.h"

namespace berth::api {

enum class Version : std::uint8_t { Http10, Http11 };

struct WireOptions {
  Version version = Version::Http11;
  bool keep_alive = true;
  std::string_view date;
  std::string_view request_id;
};

/// Status line and headers, with the empty line. No length: the body comes in chunks, or with
/// HTTP/1.0 until the end of the connection.
[[nodiscard]] std::string head_text(const Response& response, const WireOptions& options,
                                    std::optional<std::size_t> body_bytes);
/// A chunk; with `is_last` and the end of the body. No bytes: no chunk.
[[nodiscard]] std::string chunk_text(std::string_view bytes, bool is_last);
/// As given if it is harmless, otherwise empty.
[[nodiscard]] std::string clean_request_id(std::string_view given);
/// Whatever its case; `word` is in lower case.
[[nodiscard]] bool is_same_word(std::string_view text, std::string_view word);
[[nodiscard]] Response too_large(std::size_t most);

}  // namespace berth::api
