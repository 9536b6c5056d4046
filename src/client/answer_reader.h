// Takes an HTTP/1.1 answer apart as its bytes come. Everything it is told is distrusted: sizes have
// limits, lengths must be numbers, an answer that stops early is an error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "client/http.h"

namespace berth::client {

class AnswerReader {
 public:
  /// Appends what has come to the text; answers how much, 0 at the end.
  using Source = std::function<Result<std::size_t>(std::string& into)>;
  explicit AnswerReader(Source source) : source_(std::move(source)) {}

  /// Status and headers. `has_body`: false for HEAD.
  [[nodiscard]] Result<HttpReply> head(bool has_body);
  /// The next piece of the body; empty at its end.
  [[nodiscard]] Result<std::string> next();
  /// Whether another answer may follow on the same connection.
  [[nodiscard]] bool may_go_on() const noexcept { return is_done_ && !closes_; }
  [[nodiscard]] bool saw_anything() const noexcept { return saw_anything_; }
  /// Whether it failed because no more came, rather than because of what came.
  [[nodiscard]] bool was_cut() const noexcept { return was_cut_; }

 private:
  enum class Body : unsigned char { None, Length, Chunks, UntilClose };

  [[nodiscard]] Result<void> more();
  [[nodiscard]] Result<std::string> line();
  [[nodiscard]] Result<void> take_framing(const HttpReply& reply, bool has_body);
  [[nodiscard]] Result<std::string> piece();
  [[nodiscard]] Result<void> begin_chunk();
  [[nodiscard]] Result<void> end_chunk();

  Source source_;
  std::string buffer_;
  std::size_t read_ = 0;  // of buffer_
  Body body_ = Body::None;
  std::uint64_t left_ = 0;  // of the body or of the chunk
  bool is_first_chunk_ = true;
  bool is_done_ = false;
  bool closes_ = false;
  bool saw_anything_ = false;
  bool was_cut_ = false;
};

}  // namespace berth::client
