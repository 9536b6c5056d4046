// Typed values of a YAML mapping with their place in the file. Nothing throws and nothing stops at
// the first fault: a bad value is reported and counts as absent.

#include "model/yaml_fields.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "model/node_names.h"
#include "model/yaml_guard.h"

namespace berth {

namespace {
constexpr std::size_t kMaxMessages = 20;
constexpr std::size_t kMaxText = 4096;  // as long as a path may be

bool has_control(const std::string& text) {
  return std::ranges::any_of(
      text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; });
}
}  // namespace

void YamlFields::wrong(const YAML::Mark& mark, std::string_view what) {
  if (error_.messages.size() < kMaxMessages)
    error_.messages.push_back(fmt::format("{}: {}", yaml_place(file_, mark), what));
  else
    ++unsaid_;
}

void YamlFields::check_keys(const YAML::Node& map, std::span<const std::string> known,
                            std::string_view where) {
  std::vector<std::string> seen;
  for (const auto& entry : map) {
    const YAML::Node& key = entry.first;
    if (!key.IsScalar()) {
      wrong(key.Mark(), fmt::format("a key of {} must be a word", where));
    } else if (const std::string& word = key.Scalar();
               std::ranges::find(known, word) == known.end()) {
      wrong(key.Mark(), fmt::format("{} has no key '{}'{}", where, shown(word),
                                    suggestion(shown(word), known)));
    } else if (std::ranges::find(seen, word) != seen.end()) {
      wrong(key.Mark(), fmt::format("'{}' is given twice (keep one)", word));
    } else {
      seen.push_back(word);
    }
  }
}

// By hand: operator[] of yaml-cpp would add the key to a map that is not const.
YAML::Node YamlFields::child(const YAML::Node& map, std::string_view key) {
  for (const auto& entry : map) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
  }
  return YAML::Node{YAML::NodeType::Undefined};
}

std::optional<double> YamlFields::number(const YAML::Node& map, std::string_view key,
                                         NumberRange range) {
  const YAML::Node node = child(map, key);
  if (!node.IsDefined()) return std::nullopt;
  return number_at(node, key, range);
}

std::optional<double> YamlFields::number_at(const YAML::Node& node, std::string_view what,
                                            NumberRange range) {
  double value = 0;
  const std::string word = node.IsScalar() ? node.Scalar() : "";
  // Not by yaml-cpp: it would take "0x10", "1_000" or a locale's comma as numbers.
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool good = !word.empty() && code == std::errc{} && end == word.data() + word.size() &&
                    std::isfinite(value);
  if (good && value >= range.low && value <= range.high) return value;
  const std::string got = node.IsScalar() ? fmt::format("'{}'", shown(word))
                          : node.IsNull() ? "nothing"
                                          : "a list or mapping";
  wrong(node.Mark(),
        fmt::format("{} must be a number from {} to {}, got {}", what, range.low, range.high, got));
  return std::nullopt;
}

std::optional<std::int32_t> YamlFields::whole(const YAML::Node& map, std::string_view key,
                                              NumberRange range) {
  const auto value = number(map, key, range);
  if (value && *value != std::floor(*value)) {
    wrong(child(map, key).Mark(), fmt::format("{} must be a whole number, got {}", key, *value));
    return std::nullopt;
  }
  if (!value) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

std::optional<std::string> YamlFields::text(const YAML::Node& map, std::string_view key) {
  const YAML::Node node = child(map, key);
  if (!node.IsDefined()) return std::nullopt;
  const std::string word = node.IsScalar() ? node.Scalar() : "";
  if (word.empty() || word.size() > kMaxText || has_control(word)) {
    wrong(node.Mark(), fmt::format("{} must be a text of at most {} bytes without control "
                                   "characters",
                                   key, kMaxText));
    return std::nullopt;
  }
  return word;
}

std::optional<std::string> YamlFields::name(const YAML::Node& map, std::string_view key) {
  auto word = text(map, key);
  if (word && !is_node_name(*word)) {
    wrong(
        child(map, key).Mark(),
        fmt::format("{} must be made of letters, digits, '-', '_' and '.', got '{}'", key, *word));
    return std::nullopt;
  }
  return word;
}

Result<void> YamlFields::verdict() {
  if (unsaid_ > 0) error_.messages.push_back(fmt::format("{}: and {} more", file_, unsaid_));
  if (!error_.messages.empty()) return tl::unexpected<Error>(std::move(error_));
  return {};
}

}  // namespace berth
