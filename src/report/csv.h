// The little CSV this room needs: fields out, quoted only where they must be, and our own files
// back in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth {

/// Appends a field: quoted if it holds a comma, a quote or a line break, or begins with a blank.
void put_csv(std::string& out, std::string_view field);
/// Seconds without rounding: "12", "12.5", "0.000001".
[[nodiscard]] std::string seconds_text(Duration duration);
[[nodiscard]] inline std::string seconds_text(Time time) {
  return seconds_text(time.time_since_epoch());
}

/// A file with a header, row by row; columns are found by name.
class CsvFile {
 public:
  [[nodiscard]] static Result<CsvFile> open(const std::string& path);
  [[nodiscard]] bool next();
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  /// Of the current row; empty if the file has no such column.
  [[nodiscard]] std::string_view text(std::string_view column) const noexcept;
  [[nodiscard]] bool has(std::string_view column) const noexcept;
  /// The field as a number; an empty one is nothing. A wrong one is remembered as the file's error.
  [[nodiscard]] std::optional<double> number(std::string_view column);
  [[nodiscard]] double number_or_zero(std::string_view column) {
    return number(column).value_or(0);
  }
  [[nodiscard]] std::optional<Time> time(std::string_view column);
  void complain(std::string_view column, std::string_view fact);
  /// What was wrong with the rows so far.
  [[nodiscard]] Result<void> check() const;

 private:
  [[nodiscard]] bool read_row(std::vector<std::string>& fields);
  std::string path_;
  std::string bytes_;
  std::size_t position_ = 0;
  std::size_t line_ = 0;
  std::size_t next_line_ = 1;
  std::vector<std::string> head_;
  std::vector<std::string> row_;
  Error error_;
};

}  // namespace berth
