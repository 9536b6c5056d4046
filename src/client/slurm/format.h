// Output formats of squeue and sinfo: "%.18i %.9P %j", "%8j|%T". A number is the width (longer
// values are cut), a dot before it pushes to the right.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::client {

struct FormatPart {
  std::string before;  // text in front of it
  char type = 0;       // 0: only the text
  std::size_t width = 0;
  bool is_right = false;
};

/// `known` holds the letters that mean something.
[[nodiscard]] Result<std::vector<FormatPart>> parse_format(std::string_view text,
                                                           std::string_view known);
/// A line without trailing blanks, with its line break.
[[nodiscard]] std::string format_line(const std::vector<FormatPart>& parts,
                                      const std::function<std::string(char type)>& value);

/// A name of -O and the letter that means the same; widths as in "jobid:12", 20 without one.
struct LongField {
  std::string_view name;
  char type;
};
[[nodiscard]] Result<std::vector<FormatPart>> parse_long_format(
    std::string_view text, const std::vector<LongField>& known);

/// "n[1-3,7],login": names with equal beginnings and numbers behind, put together.
[[nodiscard]] std::string folded_names(std::vector<std::string> names);

}  // namespace berth::client
