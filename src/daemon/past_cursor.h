// The cursor of a page of past jobs as text: what PastPage::next holds, what the next question
// carries. People need not read it; the service writes it and the API reads it back.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/job_spec.h"

namespace berth {

/// (ended, number) of the last job of a page.
using PastCursor = std::pair<std::int64_t, JobNumber>;

[[nodiscard]] inline std::string past_cursor_text(const PastCursor& cursor) {
  return fmt::format("{}.{}", cursor.first, cursor.second);
}

[[nodiscard]] inline std::optional<PastCursor> past_cursor_from(std::string_view text) {
  PastCursor cursor;
  const char* const end = text.data() + text.size();
  const auto ended = std::from_chars(text.data(), end, cursor.first);
  if (ended.ec != std::errc{} || ended.ptr == end || *ended.ptr != '.') return std::nullopt;
  const auto number = std::from_chars(ended.ptr + 1, end, cursor.second);
  if (number.ec != std::errc{} || number.ptr != end) return std::nullopt;
  return cursor;
}

}  // namespace berth
