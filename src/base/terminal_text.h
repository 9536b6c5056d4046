// Text that others wrote, made safe to show: no character of it commands a terminal, turns the
// reading direction, hides, or breaks a line. One rule for tables, messages, logs and measurements,
// and one measure of how wide a text is, so that columns stand where they seem to stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

/// The character at the front of a text. No UTF-8 (a stray byte, an overlong form, a surrogate, a
/// character cut off): one byte, and `is_valid` is false.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;
};
[[nodiscard]] Character first_character(std::string_view text) noexcept;  // of a text that has one

/// Controls of both sets, delete, marks of direction, characters without width, separators of lines
/// and paragraphs, the byte order mark, tags.
[[nodiscard]] bool is_unsafe(char32_t code) noexcept;
/// 0 for a mark that stands on the one before, 2 for wide ones, otherwise 1.
[[nodiscard]] std::size_t columns_of(char32_t code) noexcept;

/// Valid UTF-8 on one line: each unsafe character, and each byte that is none, is a '?'.
[[nodiscard]] std::string harmless(std::string_view text);
/// The same where two texts must not become one: \u009b for a character, \xff for a byte.
[[nodiscard]] std::string escaped(std::string_view text);
/// JSON that means what it meant, with unsafe characters written as \u009b; line breaks between
/// values stay. A byte that is no UTF-8 becomes \ufffd.
[[nodiscard]] std::string harmless_json(std::string_view json);

}  // namespace berth
