// A measurement table: a delimited text with a header line, held whole. Cells are asked for by
// column name; what is wrong with one is collected with its place, several before anyone stops.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

class Table {
 public:
  /// `name` is for messages. A row with another number of fields than the header is an error.
  [[nodiscard]] static Result<Table> parse(std::string text, const std::string& name);
  [[nodiscard]] static Result<Table> load(const std::string& path);

  [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<std::string>& columns() const noexcept { return columns_; }
  [[nodiscard]] std::optional<std::size_t> column(std::string_view title) const noexcept;
  [[nodiscard]] std::string_view cell(std::size_t row, std::size_t column) const noexcept {
    return cells_[row * columns_.size() + column];
  }
  /// "file:line:column", counted from 1, of a cell.
  [[nodiscard]] std::string place(std::size_t row, std::size_t column) const;

  /// Empty if there is no such column.
  [[nodiscard]] std::string_view text(std::size_t row, std::string_view title) const noexcept;
  /// A finite number, or nothing: no such column, empty, or not a number.
  [[nodiscard]] std::optional<double> number(std::size_t row,
                                             std::string_view title) const noexcept;

 private:
  std::string name_;
  std::vector<std::string> columns_;
  std::vector<std::string> cells_;  // row by row
  std::vector<std::size_t> lines_;  // of each row
};

/// The whole text as a finite number.
[[nodiscard]] std::optional<double> finite_number(std::string_view text) noexcept;

}  // namespace berth
