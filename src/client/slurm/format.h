// Output formats of squeue and sinfo: "%.18i %.9P %j", "%8j|%T", and by name "jobid:12,name:.20".
// A number is the width (longer values are cut), a dot before it pushes to the right.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::client {

/// A column as it can be asked for: by letter in -o, by name in -O, or both.
struct ColumnName {
  std::string_view name;  // in small letters; empty: only by letter
  char letter = 0;        // 0: only by name
  std::string_view title;
  bool is_whole = false;  // never cut: half a time is a wrong time
};

struct FormatPart {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::string before;          // text in front of it
  std::size_t column = kNone;  // kNone: only the text
  std::size_t width = 0;
  bool is_right = false;
  bool is_whole = false;
  std::string after = {};
};
using Format = std::vector<FormatPart>;

[[nodiscard]] Result<Format> parse_format(std::string_view text, std::span<const ColumnName> known);
/// "name[:[.][WIDTH][SUFFIX]]", by commas; 20 wide without a colon, as long as it is without a width.
[[nodiscard]] Result<Format> parse_long_format(std::string_view text,
                                               std::span<const ColumnName> known);
[[nodiscard]] bool has_column(const Format& format, std::span<const ColumnName> known, char letter);

/// A line without trailing blanks, with its line break.
[[nodiscard]] std::string format_line(const Format& format,
                                      const std::function<std::string(std::size_t column)>& value);
[[nodiscard]] std::string format_titles(const Format& format, std::span<const ColumnName> known);
/// Letters or names of columns, in rows: what --helpformat and --helpFormat print.
[[nodiscard]] std::string column_letters(std::span<const ColumnName> known);
[[nodiscard]] std::string column_names(std::span<const ColumnName> known);

/// "n[1-3,7],login": names with equal beginnings and numbers behind, put together.
[[nodiscard]] std::string folded_names(std::vector<std::string> names);

}  // namespace berth::client
