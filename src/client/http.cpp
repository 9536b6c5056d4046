// One connection that is kept for the next request. A request is repeated by itself only if that is
// harmless: it was never sent, or the connection that was kept turned out to be closed and the
// request may be repeated.

#include "client/http.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "client/answer_reader.h"
#include "client/wire.h"

namespace berth::client {

namespace {

constexpr std::size_t kMaxBody = std::size_t{1} << 30U;

AnswerReader::Source source_of(Wire& wire) {
  return [&wire](std::string& into) -> Result<std::size_t> {
    std::array<char, 65'536> block;
    BERTH_TRY(const std::size_t got, wire.read(block));
    into.append(block.data(), got);
    return got;
  };
}

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i])))
      return false;
  return true;
}

}  // namespace

// By HTTP's own rules, or because a key makes the second time harmless.
bool HttpRequest::is_repeatable() const {
  if (may_repeat || method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE")
    return true;
  return std::ranges::any_of(
      headers, [](const auto& header) { return same_name(header.first, "Idempotency-Key"); });
}

std::string_view HttpReply::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (same_name(key, name)) return value;
  return {};
}

HttpStream::HttpStream(std::unique_ptr<Wire> wire)
    : wire_(std::move(wire)), reader_(std::make_unique<AnswerReader>(source_of(*wire_))) {}
HttpStream::~HttpStream() = default;

Result<std::string> HttpStream::next() { return reader_->next(); }

Result<std::string> HttpStream::rest() {
  std::string body;
  while (true) {
    BERTH_TRY(const std::string piece, next());
    if (piece.empty()) return body;
    body += piece;
    if (body.size() > kMaxBody) return fail("the answer is too long");
  }
}

void HttpStream::interrupt() noexcept { wire_->interrupt(); }

HttpClient::HttpClient(Endpoint endpoint, std::chrono::milliseconds timeout)
    : endpoint_(std::move(endpoint)), timeout_(timeout) {}
HttpClient::~HttpClient() = default;

// A kept connection on which something arrived is not idle any more: it is being closed.
bool HttpClient::is_connected() const noexcept { return wire_ && wire_->is_quiet(); }

// Host is "localhost" for sockets: HTTP wants one, the socket has none.
std::string HttpClient::text_of(const HttpRequest& request) const {
  std::string text = fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: berth/{}\r\n", request.method, request.target,
      endpoint_.socket.empty() ? endpoint_.host : "localhost", BERTH_VERSION);
  if (!endpoint_.token.empty())
    text += fmt::format("Authorization: Bearer {}\r\n", endpoint_.token);
  if (!request.body.empty()) text += "Content-Type: application/json\r\n";
  if (!request.body.empty() || request.method != "GET")
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  return text + "\r\n" + request.body;
}

// Tells apart why there is no answer: closed before a byte came, cut off in the middle, or silent.
Result<HttpReply> HttpClient::exchange(const std::string& text, const std::string& method) {
  was_closed_ = false;
  failure_ = Failure::Other;
  // A server may refuse and close before it has read everything: its answer is read even if writing
  // failed.
  auto written = wire_->write(text);
  AnswerReader reader(source_of(*wire_));
  auto reply = reader.head(method != "HEAD");
  const auto judge = [&] {  // one that is still open only takes its time
    if (reader.was_cut() && !wire_->is_quiet()) failure_ = Failure::CutOff;
  };
  if (!reply) {
    judge();
    was_closed_ = !reader.saw_anything() && !wire_->is_quiet();
    if (!written && !reader.saw_anything()) return tl::unexpected(written.error());
    return reply;
  }
  while (true) {
    const auto piece = reader.next();
    if (!piece) {
      judge();
      return tl::unexpected<Error>(piece.error());
    }
    if (piece->empty()) break;
    reply->body += *piece;
    if (reply->body.size() > kMaxBody) return fail("the answer is too long");
  }
  failure_ = Failure::None;
  if (!reader.may_go_on() || !written) wire_.reset();
  return reply;
}

Result<HttpReply> HttpClient::send(const HttpRequest& request) {
  const std::string text = text_of(request);
  was_sent_ = false;
  if (!is_connected()) wire_.reset();  // closed since: nothing is sent, nothing lost
  while (true) {
    const bool is_fresh = !wire_;
    if (is_fresh) {
      auto wire = open_wire(endpoint_, timeout_);
      if (!wire) {
        failure_ = wire.error().may_come_back ? Failure::Away : Failure::Other;
        return tl::unexpected<Error>(std::move(wire.error().error));
      }
      wire_ = *std::move(wire);
    }
    was_sent_ = true;
    auto reply = exchange(text, request.method);
    if (reply) return reply;
    wire_.reset();
    // At most once more: the next connection is a fresh one.
    if (!is_fresh && was_closed_ && request.is_repeatable()) continue;
    return fail(fmt::format(
        "{}: {}{}", endpoint_.text(), reply.error().text(),
        request.is_repeatable() ? "" : " (it may have been done: look before you repeat it)"));
  }
}

// A connection of its own: the stream may last for hours while other requests go on.
Result<std::unique_ptr<HttpStream>> HttpClient::open(const HttpRequest& request,
                                                     std::chrono::milliseconds silence) {
  auto wire = open_wire(endpoint_, silence);
  if (!wire) return tl::unexpected<Error>(std::move(wire.error().error));
  auto stream = std::make_unique<HttpStream>(*std::move(wire));
  const auto named = [&](const Error& error) {
    return fail(fmt::format("{}: {}", endpoint_.text(), error.text()));
  };
  if (const auto written = stream->wire_->write(text_of(request)); !written)
    return named(written.error());
  auto head = stream->reader_->head(request.method != "HEAD");
  if (!head) return named(head.error());
  stream->head_ = *std::move(head);
  return stream;
}

// Everything but the unreserved characters of RFC 3986.
std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 128 && std::isalnum(byte) != 0) || c == '-' || c == '.' || c == '_' || c == '~')
      out += c;
    else
      out += fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace berth::client
