// Text from users on a terminal: what could move the cursor, hide text or change its direction is
// replaced. The tables follow Unicode for the scripts that names are written in; widths matter only
// for the alignment of tables.

#include "base/terminal_text.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace berth {

namespace {

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool is_among(const std::array<Range, N>& ranges, char32_t code) noexcept {
  const auto found = std::ranges::lower_bound(ranges, code, {}, &Range::last);
  return found != ranges.end() && found->first <= code;
}

// Control characters, invisible ones, and those that change the direction of text. Ascending,
// because is_among() searches binary; the same holds for the other tables.
constexpr std::array<Range, 16> kUnsafe{{{0x0000, 0x001F},
                                         {0x007F, 0x009F},
                                         {0x00AD, 0x00AD},  // a hyphen that is mostly not there
                                         {0x034F, 0x034F},
                                         {0x061C, 0x061C},
                                         {0x115F, 0x1160},  // letters that are blank
                                         {0x17B4, 0x17B5},
                                         {0x180B, 0x180F},
                                         {0x200B, 0x200F},
                                         {0x2028, 0x202E},
                                         {0x2060, 0x206F},
                                         {0x3164, 0x3164},
                                         {0xFEFF, 0xFEFF},
                                         {0xFFA0, 0xFFA0},
                                         {0xFFF0, 0xFFFB},
                                         {0xE0000, 0xE0FFF}}};

/// Marks of the scripts that are common in names; others count as one column.
constexpr std::array<Range, 22> kNarrowest{
    {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x05BF, 0x05BF}, {0x05C1, 0x05C2},
     {0x05C4, 0x05C5}, {0x0610, 0x061A}, {0x064B, 0x065F}, {0x0670, 0x0670}, {0x06D6, 0x06DC},
     {0x06DF, 0x06E4}, {0x0900, 0x0902}, {0x093C, 0x093C}, {0x0941, 0x0948}, {0x0E34, 0x0E3A},
     {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0x3099, 0x309A},
     {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}}};

constexpr std::array<Range, 18> kWide{{{0x1100, 0x115F},
                                       {0x231A, 0x231B},
                                       {0x2E80, 0x303E},
                                       {0x3041, 0x33FF},
                                       {0x3400, 0x4DBF},
                                       {0x4E00, 0x9FFF},
                                       {0xA000, 0xA4CF},
                                       {0xA960, 0xA97F},
                                       {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F},
                                       {0xFF00, 0xFF60},
                                       {0xFFE0, 0xFFE6},
                                       {0x1F300, 0x1F64F},
                                       {0x1F680, 0x1F6FF},
                                       {0x1F900, 0x1F9FF},
                                       {0x20000, 0x2FFFD},
                                       {0x30000, 0x3FFFD}}};

/// \u as JSON writes it: two of them beyond the first 65,536 characters.
void append_code(std::string& out, char32_t code) {
  if (code > 0xFFFF) {
    const auto above = static_cast<std::uint32_t>(code) - 0x10000U;
    fmt::format_to(std::back_inserter(out), "\\u{:04x}\\u{:04x}", 0xD800U + (above >> 10U),
                   0xDC00U + (above & 0x3FFU));
  } else {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(code));
  }
}

/// Calls `good` with what may stay, in as long stretches as possible, and `bad` with each character
/// that may not.
template <class Good, class Bad>
void take_apart(std::string_view text, Good good, Bad bad) {
  std::size_t kept = 0, i = 0;
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7F) {
      ++i;
      continue;
    }
    const Character character = first_character(text.substr(i));
    if (!character.is_valid || is_unsafe(character.code)) {
      good(text.substr(kept, i - kept));
      bad(character, text[i]);
      kept = i + character.bytes;
    }
    i += character.bytes;
  }
  good(text.substr(kept));
}

}  // namespace

Character first_character(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {.code = first, .bytes = 1, .is_valid = true};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  // 0xC0 and 0xC1 only start overlong forms, above 0xF4 there is no Unicode.
  if (first < 0xC2 || first > 0xF4 || length > text.size()) return {};
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  // Overlong forms are refused: otherwise a newline could come as two bytes and pass the filter.
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {.code = code, .bytes = length, .is_valid = true};
}

bool is_unsafe(char32_t code) noexcept { return is_among(kUnsafe, code); }

std::size_t columns_of(char32_t code) noexcept {
  if (code < 0x0300) return 1;
  if (is_among(kNarrowest, code)) return 0;
  return is_among(kWide, code) ? 2 : 1;
}

std::string harmless(std::string_view text) {
  std::string plain;
  take_apart(
      text, [&](std::string_view good) { plain += good; }, [&](Character, char) { plain += '?'; });
  return plain;
}

std::string escaped(std::string_view text) {
  std::string plain;
  take_apart(
      text, [&](std::string_view good) { plain += good; },
      [&](Character character, char byte) {
        if (character.is_valid)
          append_code(plain, character.code);
        else
          fmt::format_to(std::back_inserter(plain), "\\x{:02x}", static_cast<unsigned char>(byte));
      });
  return plain;
}

std::string harmless_json(std::string_view json) {
  std::string plain;
  plain.reserve(json.size());
  take_apart(
      json, [&](std::string_view good) { plain += good; },
      [&](Character character, char byte) {
        if (byte == '\n' || byte == '\t' || byte == '\r')
          plain += byte;  // between values: inside a text JSON has escaped it
        else
          append_code(plain, character.is_valid ? character.code : U'\xFFFD');
      });
  return plain;
}

}  // namespace berth
