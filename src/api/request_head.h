// From what the parser of HTTP found to what the API asks: the head of a request, what is wrong
// with it as a message, and what to say of one that could not be read at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/beast/http/message.hpp>
#include <boost/system/error_code.hpp>

#include "api/message.h"

namespace berth::api {

using RequestHeader = boost::beast::http::request_header<>;

/// Without the peer and the request's id, which the connection knows.
[[nodiscard]] Head head_from(const RequestHeader& header);
/// Given by the client, as far as it can be repeated in an answer; else empty.
[[nodiscard]] std::string request_id_from(const RequestHeader& header);

enum class Expects : std::uint8_t { Nothing, Continue };  // "Expect: 100-continue"
/// Or the refusal of a message whose end we and a proxy before us could see differently.
[[nodiscard]] tl::expected<Expects, Response> expectation(const RequestHeader& header);

/// `most_body_bytes` is what the body was held to. Nothing: there is nobody to tell, close.
[[nodiscard]] std::optional<Response> unreadable(boost::system::error_code error,
                                                 std::size_t most_body_bytes);

}  // namespace berth::api
