// A table a person reads: columns aligned by their widest cell, numbers to the right, a rule under
// the head. Output only; knows nothing of terminals except that colour marks have no width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

enum class Align : unsigned char { Left, Right };

class TextTable {
 public:
  struct Head {
    std::string title;
    Align align = Align::Right;
  };
  explicit TextTable(std::vector<Head> heads) : heads_(std::move(heads)) {}
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::string str() const;

 private:
  std::vector<Head> heads_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns a text takes on a terminal (columns_of each character), colour escapes not counted.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

}  // namespace berth
