#include "client/slurm/sheet.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/split.h"
#include "base/suggest.h"
#include "base/terminal_text.h"
#include "client/slurm/words.h"

namespace berth::client::slurm {

namespace {

/// What does not fit ends with a +.
std::string cell(const std::string& text, const SheetColumn& column) {
  std::string cut;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Character character = first_character(std::string_view(text).substr(i));
    const std::size_t width = columns_of(character.code);
    const bool is_last = i + character.bytes >= text.size();
    if (columns + width > column.width || (columns + width == column.width && !is_last)) {
      cut += '+';
      ++columns;
      break;
    }
    cut += text.substr(i, character.bytes);
    columns += width;
    i += character.bytes;
  }
  const std::string space(column.width - std::min(column.width, columns), ' ');
  return column.is_left ? cut + space : space + cut;
}

std::string between_delimiters(const std::vector<std::string>& cells, const SheetStyle& style) {
  return fmt::format("{}{}\n", fmt::join(cells, style.delimiter),
                     style.has_last_delimiter ? style.delimiter : "");
}

}  // namespace

Result<std::vector<SheetColumn>> sheet_columns(std::string_view text,
                                               const std::vector<SheetField>& known) {
  std::vector<SheetColumn> columns;
  for (const std::string_view part : split(text, ',')) {
    const auto percent = part.find('%');
    const std::string name = lower(part.substr(0, percent));
    if (name.empty()) continue;
    if (name == "all") {
      for (std::size_t i = 0; i < known.size(); ++i)
        columns.push_back({i, std::string(known[i].name), known[i].width, known[i].is_left});
      continue;
    }
    const auto found = std::ranges::find_if(
        known, [&](const SheetField& field) { return lower(field.name) == name; });
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const SheetField& field : known) names.emplace_back(field.name);
      return fail(fmt::format("Invalid field requested: \"{}\"{}", harmless(name),
                              suggestion(name, names)));
    }
    SheetColumn column{static_cast<std::size_t>(found - known.begin()), std::string(found->name),
                       found->width, found->is_left};
    if (percent != std::string_view::npos) {
      std::string_view width = part.substr(percent + 1);
      column.is_left = width.starts_with('-');
      if (column.is_left) width.remove_prefix(1);
      const auto [end, error] =
          std::from_chars(width.data(), width.data() + width.size(), column.width);
      if (width.empty() || error != std::errc{} || end != width.data() + width.size() ||
          column.width == 0 || column.width > 10'000)
        return fail(fmt::format("'{}': no width", harmless(part)));
    }
    columns.push_back(std::move(column));
  }
  if (columns.empty()) return fail("no field was asked for");
  return columns;
}

std::string sheet(const std::vector<SheetColumn>& columns,
                  const std::vector<std::vector<std::string>>& rows, const SheetStyle& style) {
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    if (style.is_parsable) {
      text += between_delimiters(cells, style);
      return;
    }
    for (std::size_t i = 0; i < columns.size(); ++i) text += cell(cells[i], columns[i]) + " ";
    text += '\n';
  };
  std::vector<std::string> titles;
  for (const SheetColumn& column : columns) titles.push_back(column.title);
  if (style.has_head) {
    add_line(titles);
    if (!style.is_parsable) {
      for (const SheetColumn& column : columns) text += std::string(column.width, '-') + " ";
      text += '\n';
    }
  }
  for (std::vector<std::string> row : rows) {
    for (std::string& one : row) one = harmless(one);
    add_line(row);
  }
  return text;
}

std::string field_names(const std::vector<SheetField>& known) {
  std::string text;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const bool is_last = i % 4 == 3 || i + 1 == known.size();
    text += fmt::format("{:<19}{}", known[i].name, is_last ? "\n" : " ");
  }
  return text;
}

}  // namespace berth::client::slurm
