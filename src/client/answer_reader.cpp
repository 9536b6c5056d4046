// Reads one HTTP/1.1 answer from any source of bytes: lengths, chunks or until the connection
// closes. Limits on lines and headers keep a wrong address, which may be any server, from filling
// memory.

#include "client/answer_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace berth::client {

namespace {

constexpr std::size_t kMaxLine = 16'384;
constexpr std::size_t kMaxHeaders = 200;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> size_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<void> AnswerReader::more() {
  // Everything was used: the buffer starts again instead of growing with the answer.
  if (read_ > 0 && read_ == buffer_.size()) {
    buffer_.clear();
    read_ = 0;
  }
  was_cut_ = true;  // until something comes
  BERTH_TRY(const std::size_t got, source_(buffer_));
  if (got == 0) return fail("the connection was closed in the middle of the answer");
  saw_anything_ = true;
  was_cut_ = false;
  return {};
}

Result<std::string> AnswerReader::line() {
  while (true) {
    const auto end = buffer_.find('\n', read_);
    if (end != std::string::npos) {
      std::string text = buffer_.substr(read_, end - read_);
      read_ = end + 1;
      if (text.ends_with('\r')) text.pop_back();
      return text;
    }
    if (buffer_.size() - read_ > kMaxLine) return fail("a line of the answer is too long");
    BERTH_TRY_VOID(more());
  }
}

Result<HttpReply> AnswerReader::head(bool has_body) {
  HttpReply reply;
  do {  // 100 Continue and its like announce the real answer
    reply = {};
    BERTH_TRY(const std::string status, line());
    const std::uint64_t code =
        status.size() < 12 ? 0 : size_of(std::string_view(status).substr(9, 3), 10).value_or(0);
    if (!status.starts_with("HTTP/1.") || code < 100)
      return fail("the answer is not HTTP: is this the scheduler's address?");
    reply.status = static_cast<int>(code);
    // HTTP/1.0 closes unless a header says otherwise; take_framing() looks at that.
    closes_ = status.starts_with("HTTP/1.0");
    while (true) {
      BERTH_TRY(const std::string text, line());
      if (text.empty()) break;
      const auto colon = text.find(':');
      if (colon == std::string::npos || reply.headers.size() >= kMaxHeaders)
        return fail("the answer's headers are malformed");
      reply.headers.emplace_back(lower(std::string_view(text).substr(0, colon)),
                                 trimmed(std::string_view(text).substr(colon + 1)));
    }
  } while (reply.status < 200);
  BERTH_TRY_VOID(take_framing(reply, has_body));
  return reply;
}

// The order of RFC 9112: no body at all, chunks, a length, or everything until the end.
Result<void> AnswerReader::take_framing(const HttpReply& reply, bool has_body) {
  const std::string connection = lower(reply.header("connection"));
  if (connection == "close") closes_ = true;
  if (connection == "keep-alive") closes_ = false;
  const std::string_view length = reply.header("content-length");
  if (!has_body || reply.status == 204 || reply.status == 304) {
    body_ = Body::None;
    is_done_ = true;
  } else if (lower(reply.header("transfer-encoding")).ends_with("chunked")) {
    body_ = Body::Chunks;  // the first may be long in coming: it is not waited for here
  } else if (!length.empty()) {
    const auto size = size_of(length, 10);
    if (!size) return fail("the answer's length is no number");
    body_ = Body::Length;
    left_ = *size;
    is_done_ = left_ == 0;
  } else {
    body_ = Body::UntilClose;
    closes_ = true;
  }
  return {};
}

Result<void> AnswerReader::begin_chunk() {
  BERTH_TRY(const std::string text, line());
  const auto size = size_of(trimmed(std::string_view(text).substr(0, text.find(';'))), 16);
  if (!size) return fail("a chunk of the answer has no length");
  left_ = *size;
  if (left_ > 0) return {};
  while (true) {  // trailers
    BERTH_TRY(const std::string trailer, line());
    if (trailer.empty()) break;
  }
  is_done_ = true;
  return {};
}

Result<void> AnswerReader::end_chunk() {
  BERTH_TRY(const std::string text, line());
  // After its bytes a chunk has an empty line.
  if (!text.empty()) return fail("a chunk of the answer is longer than it said");
  return begin_chunk();
}

// As much as has come already: a stream must not wait until a chunk is complete.
Result<std::string> AnswerReader::piece() {
  if (read_ == buffer_.size()) BERTH_TRY_VOID(more());
  const auto size =
      static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer_.size() - read_));
  std::string text = buffer_.substr(read_, size);
  read_ += size;
  left_ -= size;
  return text;
}

// An empty text is the end; a piece is never empty before that.
Result<std::string> AnswerReader::next() {
  if (is_done_) return std::string{};
  if (body_ == Body::UntilClose) {
    std::string text = buffer_.substr(read_);
    buffer_.clear();
    read_ = 0;
    if (!text.empty()) return text;
    BERTH_TRY(const std::size_t got, source_(text));
    is_done_ = got == 0;
    return text;
  }
  if (body_ == Body::Chunks && left_ == 0) {
    BERTH_TRY_VOID(is_first_chunk_ ? begin_chunk() : end_chunk());
    is_first_chunk_ = false;
    if (is_done_) return std::string{};
  }
  BERTH_TRY(std::string text, piece());
  if (body_ == Body::Length) is_done_ = left_ == 0;
  return text;
}

}  // namespace berth::client
