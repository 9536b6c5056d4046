#include "lab/fit/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/file.h"
#include "trace/csv.h"

namespace berth {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;
constexpr std::size_t kMaxMessages = 20;

}  // namespace

// "nan" and "inf" parse as numbers, but no fit survives them.
std::optional<double> finite_number(std::string_view text) noexcept {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

Result<Table> Table::parse(std::string text, const std::string& name) {
  Table table;
  table.name_ = name;
  const std::string_view bytes = without_bom(text);
  CsvRows rows(bytes, likely_delimiter(bytes.substr(0, bytes.find('\n'))));
  if (!rows.next())
    return fail(
        fmt::format("{}:1:1: the file is empty (it begins with a line of column names)", name));
  for (const std::string_view field : rows.fields()) table.columns_.emplace_back(trimmed(field));
  Error error;
  while (rows.next()) {
    if (rows.fields().size() != table.columns_.size()) {
      error.messages.push_back(
          fmt::format("{}:{}:1: {} fields where the header has {} (fill or drop "
                      "the row)",
                      name, rows.line(), rows.fields().size(), table.columns_.size()));
      // A wrong delimiter makes every row wrong; twenty are enough to see that.
      if (error.messages.size() == kMaxMessages) break;
      continue;
    }
    for (const std::string_view field : rows.fields()) table.cells_.emplace_back(trimmed(field));
    table.lines_.push_back(rows.line());
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return table;
}

Result<Table> Table::load(const std::string& path) {
  BERTH_TRY(std::string text, read_file(path, {.max_bytes = kMaxBytes}));
  return parse(std::move(text), path);
}

std::optional<std::size_t> Table::column(std::string_view title) const noexcept {
  const auto found = std::ranges::find(columns_, title);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

std::string Table::place(std::size_t row, std::size_t column) const {
  return fmt::format("{}:{}:{}", name_, lines_[row], column + 1);
}

std::string_view Table::text(std::size_t row, std::string_view title) const noexcept {
  const auto at = column(title);
  return at ? cell(row, *at) : std::string_view{};
}

std::optional<double> Table::number(std::size_t row, std::string_view title) const noexcept {
  return finite_number(text(row, title));
}

}  // namespace berth
