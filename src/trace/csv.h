// Rows of a delimited text, without copying: a field is a view into the given bytes. Understands
// quotes ("" inside a quoted field is one quote), CRLF, a byte-order mark and delimiters of several
// bytes (Slurm scripts like U+2603). Only a field with doubled quotes is copied, into memory that
// lives until the next row. Never fails: what a row should hold is for its reader to judge.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

enum class CsvQuotes : bool { Plain, Quoted };  // Plain: a quote is a character like others

class CsvRows {
 public:
  CsvRows(std::string_view bytes, std::string_view delimiter, CsvQuotes quotes = CsvQuotes::Quoted);

  /// Moves to the next row that is not blank; false at the end. Views of the last row die.
  [[nodiscard]] bool next();
  [[nodiscard]] std::span<const std::string_view> fields() const noexcept { return fields_; }
  /// The line on which the row begins, counted from 1.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  /// False for a last row that was cut off: no line break, or a quote that never closes.
  [[nodiscard]] bool is_terminated() const noexcept { return terminated_; }
  [[nodiscard]] bool has_open_quote() const noexcept { return open_quote_; }
  [[nodiscard]] std::string_view rest() const noexcept { return bytes_.substr(position_); }

 private:
  void read_row();
  void split_line(std::string_view line);
  void read_quoted_row();
  [[nodiscard]] std::string_view read_quoted_field();
  [[nodiscard]] bool at_delimiter(std::size_t position) const noexcept;
  void end_line(std::size_t newline) noexcept;

  std::string_view bytes_;
  std::string delimiter_;
  CsvQuotes quotes_;
  std::size_t position_ = 0;
  std::size_t line_ = 0;
  std::size_t next_line_ = 1;
  bool terminated_ = true;
  bool open_quote_ = false;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  // stable addresses for the fields of one row
};

/// The delimiter a header line most likely uses: U+2603, tab, '|', ';' or ','.
[[nodiscard]] std::string_view likely_delimiter(std::string_view line) noexcept;
/// Without a leading byte-order mark.
[[nodiscard]] std::string_view without_bom(std::string_view bytes) noexcept;
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

inline constexpr std::string_view kSnowman = "\xE2\x98\x83";

}  // namespace berth
