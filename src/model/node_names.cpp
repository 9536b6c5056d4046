#include "model/node_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "model/cluster.h"

namespace berth {

bool is_node_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 200 && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

namespace {

/// One "[001-016,020]" as its numbers, zero-padded as written; nothing if it is malformed.
std::optional<std::vector<std::string>> expand_bracket(std::string_view inside) {
  std::vector<std::string> numbers;
  const auto parse = [](std::string_view text) -> std::optional<std::int64_t> {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    // Nine digits at most fit every integer below; from_chars alone would also take a sign.
    const bool digits =
        !text.empty() && text.size() <= 9 && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
    if (!digits || code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
  };
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t end = std::min(inside.find(',', begin), inside.size());
    const std::string_view part = inside.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const auto low = parse(first);
    const auto high = dash == std::string_view::npos ? low : parse(part.substr(dash + 1));
    if (!low || !high || *low > *high || *high - *low >= kMaxNodes || numbers.size() > kMaxNodes)
      return std::nullopt;
    for (std::int64_t n = *low; n <= *high; ++n)
      numbers.push_back(fmt::format("{:0{}}", n, first.size()));
  }
  return numbers;
}

}  // namespace

std::optional<std::vector<std::string>> expand_node_names(std::string_view pattern) {
  std::vector<std::string> names{""};
  while (!pattern.empty()) {
    const std::size_t open = std::min(pattern.find('['), pattern.size());
    for (std::string& name : names) name += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const std::size_t close = pattern.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const auto numbers = expand_bracket(pattern.substr(1, close - 1));
    pattern.remove_prefix(close + 1);
    // Before the product is made: "[1-9999][1-9999]" is a hundred million names.
    if (!numbers || names.size() * numbers->size() > static_cast<std::size_t>(kMaxNodes))
      return std::nullopt;
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers->size());
    for (const std::string& name : names) {
      for (const std::string& number : *numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
  }
  if (!std::ranges::all_of(names, is_node_name)) return std::nullopt;
  return names;
}
}  // namespace berth
