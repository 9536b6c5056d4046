#include "slurm/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/numbers.h"

namespace berth::slurm {

namespace {

struct Range {
  std::uint64_t first = 0, last = 0;
  std::size_t width = 0;  // digits at least
};

/// A name with its brackets: texts[0] ranges[0] texts[1] … ranges[n-1] texts[n].
struct Pattern {
  std::vector<std::string_view> texts;
  std::vector<std::vector<Range>> ranges;
};

Result<Range> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  const auto low = parse_digits(first);
  const auto high = parse_digits(last);
  if (!low || !high || *high < *low)
    return fail(fmt::format("'{}' is no range of node numbers", text));
  const bool is_padded = first.size() > 1 && first.front() == '0';
  return Range{*low, *high, is_padded ? first.size() : 1};
}

Result<std::vector<Range>> parse_ranges(std::string_view text) {
  std::vector<Range> ranges;
  for (const std::string_view part : split(text, ',')) {
    BERTH_TRY(const Range range, parse_range(part));
    ranges.push_back(range);
  }
  return ranges;
}

Result<Pattern> parse_pattern(std::string_view text) {
  Pattern pattern;
  for (;;) {
    const std::size_t open = text.find('[');
    pattern.texts.push_back(text.substr(0, open));
    if (pattern.texts.back().find(']') != std::string_view::npos)
      return fail("a bracket is closed that was not opened");
    if (open == std::string_view::npos) return pattern;
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos) return fail("a bracket is not closed");
    BERTH_TRY(auto ranges, parse_ranges(text.substr(open + 1, close - open - 1)));
    pattern.ranges.push_back(std::move(ranges));
    text.remove_prefix(close + 1);
  }
}

/// How many names it stands for, or more than `limit`.
std::size_t names_of(const Pattern& pattern, std::size_t limit) {
  std::size_t names = 1;
  for (const auto& ranges : pattern.ranges) {
    std::size_t numbers = 0;
    for (const Range& range : ranges) {
      const std::uint64_t more = range.last - range.first;
      if (more >= limit || numbers + more >= limit) return limit + 1;
      numbers += static_cast<std::size_t>(more) + 1;
    }
    if (names > limit / numbers) return limit + 1;
    names *= numbers;
  }
  return names;
}

void expand_from(const Pattern& pattern, std::size_t at, const std::string& begun,
                 std::vector<std::string>& names) {
  std::string text = begun + std::string(pattern.texts[at]);
  if (at == pattern.ranges.size()) {
    names.push_back(std::move(text));
    return;
  }
  for (const Range& range : pattern.ranges[at])
    for (std::uint64_t number = range.first; number <= range.last; ++number)
      expand_from(pattern, at + 1, fmt::format("{}{:0{}}", text, number, range.width), names);
}

/// Where the item that begins at `begin` ends: at a comma outside brackets.
std::size_t end_of_item(std::string_view list, std::size_t begin) {
  bool is_inside = false;
  for (std::size_t at = begin; at < list.size(); ++at) {
    if (list[at] == '[') is_inside = true;
    if (list[at] == ']') is_inside = false;
    if (list[at] == ',' && !is_inside) return at;
  }
  return list.size();
}

std::string ranges_text(std::vector<std::uint64_t>& numbers, std::size_t width) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::string text;
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t end = at + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += fmt::format("{:0{}}", numbers[at], width);
    if (end - at > 1) text += fmt::format("-{:0{}}", numbers[end - 1], width);
    at = end;
  }
  return numbers.size() == 1 ? text : '[' + text + ']';
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view list) {
  std::vector<std::string> names;
  if (list.empty() || list == "(null)") return names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = end_of_item(list, begin);
    const std::string_view item = list.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) continue;
    auto pattern = parse_pattern(item);
    if (!pattern)
      return fail(fmt::format("list of nodes '{}': {}", shortened(list), pattern.error().text()));
    if (names_of(*pattern, kMaxHosts - names.size()) > kMaxHosts - names.size())
      return fail(fmt::format("list of nodes '{}': stands for more than {} names", shortened(list),
                              kMaxHosts));
    expand_from(*pattern, 0, {}, names);
  }
  return names;
}

std::string compress_hostlist(const std::vector<std::string>& names) {
  // Beginning and width of the number; the groups stay in the order of their first name.
  using Kind = std::pair<std::string_view, std::size_t>;
  std::map<Kind, std::vector<std::uint64_t>> numbers;
  std::vector<Kind> order;
  for (const std::string_view name : names) {
    const std::size_t text_end = name.find_last_not_of("0123456789") + 1;
    const std::string_view digits = name.substr(text_end);
    const auto number = parse_digits(digits);
    // Width 0: no number to join, the whole name is the beginning.
    Kind kind{name, 0};
    if (number && text_end > 0)
      kind = {name.substr(0, text_end), digits.front() == '0' ? digits.size() : 1};
    auto [group, is_new] = numbers.try_emplace(kind);
    if (is_new) order.push_back(kind);
    if (kind.second > 0) group->second.push_back(*number);
  }
  std::string list;
  for (const Kind& kind : order) {
    if (!list.empty()) list += ',';
    list += kind.first;
    if (kind.second > 0) list += ranges_text(numbers[kind], kind.second);
  }
  return list;
}

}  // namespace berth::slurm
