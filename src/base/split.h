// The parts of a text between separators, as views into it. An empty text has one part, which is
// empty; what a part should hold is for its reader to judge.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace berth {

[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace berth
