#include "api/request_head.h"

#include <boost/beast/http/error.hpp>

#include "api/wire.h"

namespace berth::api {

namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string text_of(beast::string_view text) { return std::string(text.data(), text.size()); }

Method method_from(http::verb verb) {
  switch (verb) {
    case http::verb::get: return Method::Get;
    case http::verb::head: return Method::Head;
    case http::verb::post: return Method::Post;
    case http::verb::put: return Method::Put;
    case http::verb::patch: return Method::Patch;
    case http::verb::delete_: return Method::Delete;
    default: return Method::Other;
  }
}

tl::unexpected<Response> refused(int status, std::string message) {
  return tl::unexpected<Response>(error_response(status, std::move(message)));
}

}  // namespace

Head head_from(const RequestHeader& header) {
  Head head;
  head.method = method_from(header.method());
  head.target = text_of(header.target());
  head.authorization = text_of(header[http::field::authorization]);
  head.content_type = text_of(header[http::field::content_type]);
  head.idempotency_key = text_of(header["Idempotency-Key"]);
  head.last_event_id = text_of(header["Last-Event-ID"]);
  return head;
}

std::string request_id_from(const RequestHeader& header) {
  return clean_request_id(text_of(header["X-Request-Id"]));
}

tl::expected<Expects, Response> expectation(const RequestHeader& header) {
  if (header.version() >= 11 && header.count(http::field::host) != 1)
    return refused(400, "Host: exactly one expected");
  // Anything but plain chunks has an end that we and a proxy before us could see differently.
  if (header.count(http::field::transfer_encoding) > 0 &&
      !is_same_word(text_of(header[http::field::transfer_encoding]), "chunked"))
    return refused(400, "Transfer-Encoding: only chunked is understood");
  const std::string expect = text_of(header[http::field::expect]);
  if (expect.empty()) return Expects::Nothing;
  if (!is_same_word(expect, "100-continue"))
    return refused(417, "Expect: only 100-continue is understood");
  return Expects::Continue;
}

std::optional<Response> unreadable(boost::system::error_code error, std::size_t most_body_bytes) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return error_response(431, "the header is too large");
  if (error == http::error::body_limit) return too_large(most_body_bytes);
  if (error == http::error::bad_version) return error_response(505, "HTTP/1.1 is spoken here");
  const bool is_http = error.category() == make_error_code(http::error::bad_method).category();
  if (!is_http || error == http::error::end_of_stream) return std::nullopt;
  return error_response(400, "not a request of HTTP/1.1");
}

}  // namespace berth::api
