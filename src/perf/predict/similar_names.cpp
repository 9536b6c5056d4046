#include "perf/predict/similar_names.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace berth {

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  // Every missing letter is an edit.
  if (b.size() - a.size() > limit) return limit + 1;
  const std::size_t beyond = limit + 1;
  std::vector<std::size_t> row(a.size() + 1);  // of the prefix of b read so far
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t j = 1; j <= b.size(); ++j) {
    const std::size_t first = j > limit ? j - limit : 1;  // cells further off are beyond the limit
    const std::size_t last = std::min(a.size(), j + limit);
    std::size_t diagonal = row[first - 1];
    row[first - 1] = first == 1 ? j : beyond;
    std::size_t least = row[first - 1];
    for (std::size_t i = first; i <= last; ++i) {
      const std::size_t above = i == j + limit ? beyond : row[i];
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[i];
      row[i] = std::min({replaced, above + 1, row[i - 1] + 1, beyond});
      least = std::min(least, row[i]);
    }
    // No cell of this row is within the limit, so none of a later row can be.
    if (least >= beyond) return beyond;
  }
  return std::min(row[a.size()], beyond);
}

bool are_similar(std::string_view a, std::string_view b) {
  const std::size_t longest = std::max(a.size(), b.size());
  const std::size_t limit = 4 * longest / 10;
  return 10 * edit_distance(a, b, limit) <= 4 * longest;
}

bool SimilarNames::operator()(NameId a, NameId b) {
  if (a == b) return true;
  const auto [low, high] = std::minmax(a.value, b.value);
  const auto [entry, is_new] = known_.try_emplace((std::uint64_t{high} << 32U) | low, false);
  if (is_new) entry->second = are_similar(names_->text(a), names_->text(b));
  return entry->second;
}

}  // namespace berth
