#include "base/suggest.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth {

namespace {

// Levenshtein distance with one row of the table: names are short, but a file can hold many of
// them.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view wrong, std::span<const std::string> known) {
  std::vector<std::tuple<std::size_t, std::size_t>> near;  // distance, position
  const std::size_t limit = std::max<std::size_t>(2, wrong.size() / 3);
  for (std::size_t i = 0; i < known.size(); ++i) {
    // "gpu" should find "gpus_min", although five edits lie between them.
    const bool inside = wrong.size() >= 3 && known[i].find(wrong) != std::string::npos;
    const std::size_t distance = inside ? 1 : edit_distance(wrong, known[i]);
    if (distance <= limit) near.emplace_back(distance, i);
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (const auto& [distance, position] : near) {
    if (names.size() < 3) names.push_back(known[position]);
  }
  return names;
}

std::string suggestion(std::string_view wrong, std::span<const std::string> known) {
  const auto near = nearest_names(wrong, known);
  if (!near.empty()) return fmt::format(" (did you mean {}?)", fmt::join(near, ", "));
  return fmt::format(" (known: {})", fmt::join(known, ", "));
}

}  // namespace berth
