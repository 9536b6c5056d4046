// How tests that are made for each of many (policies, placements) are called: GoogleTest takes
// letters, digits and underscores.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace berth::test {

[[nodiscard]] inline std::string suite_name(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// For INSTANTIATE_TEST_SUITE_P over strings.
inline constexpr auto kByName = [](const auto& row) { return suite_name(row.param); };

}  // namespace berth::test
