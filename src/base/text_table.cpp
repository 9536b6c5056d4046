#include "base/text_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/terminal_text.h"

namespace berth {

std::size_t display_width(std::string_view text) noexcept {
  std::size_t width = 0;
  while (!text.empty()) {
    // A colour sequence takes no column; it ends with 'm'.
    if (text.front() == '\x1b') {
      text.remove_prefix(std::min(text.find('m'), text.size() - 1) + 1);
      continue;
    }
    const Character character = first_character(text);
    width += character.is_valid ? columns_of(character.code) : 1;
    text.remove_prefix(character.bytes);
  }
  return width;
}

void TextTable::add_row(std::vector<std::string> cells) {
  BERTH_CHECK(cells.size() == heads_.size(), "a table row has one cell per column");
  rows_.push_back(std::move(cells));
}

std::string TextTable::str() const {
  std::vector<std::size_t> widths;
  for (const Head& head : heads_) widths.push_back(display_width(head.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  const auto put = [&](std::size_t i, const std::string& cell) {
    const std::size_t pad = widths[i] - display_width(cell);
    if (i > 0) out += "  ";
    if (heads_[i].align == Align::Right) out.append(pad, ' ');
    out += cell;
    // The last column is not padded: no trailing blanks in what people copy.
    if (heads_[i].align == Align::Left && i + 1 < heads_.size()) out.append(pad, ' ');
  };
  for (std::size_t i = 0; i < heads_.size(); ++i) put(i, heads_[i].title);
  out += '\n';
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    if (i > 0) out += "  ";
    out.append(widths[i], '-');
  }
  out += '\n';
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) put(i, row[i]);
    out += '\n';
  }
  return out;
}

}  // namespace berth
