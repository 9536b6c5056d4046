#include "api/body.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/suggest.h"

namespace berth::api {

namespace {

using nlohmann::json;

/// How deep brackets nest outside of texts. Counted before the parser builds anything.
int depth_of(std::string_view text) noexcept {
  int depth = 0;
  int deepest = 0;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_text) {
      if (c == '\\') ++i;
      if (c == '"') is_in_text = false;
    } else if (c == '"') {
      is_in_text = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

}  // namespace

Result<json> parse_body(std::string_view text) {
  if (text.empty()) return json::object();
  if (depth_of(text) > kMaxJsonDepth)
    return fail(fmt::format("body: nested deeper than {}", kMaxJsonDepth));
  try {
    json parsed = json::parse(text);
    if (!parsed.is_object()) return fail("body: a JSON object expected");
    return parsed;
  } catch (const json::parse_error& error) {
    return fail(fmt::format("body: not JSON (byte {})", error.byte));
  } catch (const json::exception&) {  // a number beyond every range
    return fail("body: not JSON (a number is out of range)");
  }
}

const json* BodyReader::find(std::string_view key) {
  known_.emplace_back(key);
  const auto found = json_.find(std::string(key));
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void BodyReader::wrong(std::string_view key, std::string_view what) {
  faults_.push_back(fmt::format("{}: {}", key, what));
}

void BodyReader::finish() {
  for (const auto& [key, value] : json_.items()) {
    if (std::ranges::find(known_, key) == known_.end())
      faults_.push_back(fmt::format("{}: unknown{}", key, suggestion(key, known_)));
  }
}

std::optional<std::string> BodyReader::text(std::string_view key, std::size_t most_bytes) {
  const json* const found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) {
    wrong(key, "a text expected");
    return std::nullopt;
  }
  auto value = found->get<std::string>();
  if (has_nul(value)) wrong(key, "holds a NUL byte");
  if (value.size() > most_bytes)
    wrong(key, fmt::format("{} bytes, at most {}", value.size(), most_bytes));
  return value;
}

std::string BodyReader::needed_text(std::string_view key) {
  auto value = text(key, kTextBytes);
  if ((!value || value->empty()) && is_good()) wrong(key, "missing");
  return std::move(value).value_or("");
}

std::optional<std::string> BodyReader::needed_choice(std::string_view key,
                                                     std::span<const std::string_view> words) {
  auto value = text(key, kTextBytes);
  if (value && std::ranges::find(words, *value) != words.end()) return value;
  const std::vector<std::string> known(words.begin(), words.end());
  wrong(key, fmt::format("unknown{}", suggestion(value.value_or(""), known)));
  return std::nullopt;
}

std::optional<std::int64_t> BodyReader::whole(std::string_view key, std::int64_t low,
                                              std::int64_t high) {
  const json* const found = find(key);
  if (found == nullptr) return std::nullopt;
  const bool is_huge =
      found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  if (found->is_number_integer() && !is_huge) {
    const auto value = found->get<std::int64_t>();
    if (value >= low && value <= high) return value;
  }
  wrong(key, fmt::format("a whole number within {} and {} expected", low, high));
  return std::nullopt;
}

std::optional<bool> BodyReader::flag(std::string_view key) {
  const json* const found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_boolean()) return found->get<bool>();
  wrong(key, "true or false expected");
  return std::nullopt;
}

std::optional<double> BodyReader::number(std::string_view key, double low, double high) {
  const json* const found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_number()) {
    const auto value = found->get<double>();
    if (value >= low && value <= high) return value;
  }
  wrong(key, fmt::format("a number within {} and {} expected", low, high));
  return std::nullopt;
}

std::vector<JobNumber> BodyReader::numbers(std::string_view key, std::size_t most) {
  const json* const found = find(key);
  if (found == nullptr) return {};
  const auto is_number = [](const json& item) {
    return item.is_number_unsigned() && item.get<JobNumber>() > 0;
  };
  if (!found->is_array() || !std::ranges::all_of(*found, is_number)) {
    wrong(key, "a list of job numbers expected");
    return {};
  }
  if (found->size() > most) wrong(key, fmt::format("at most {} numbers", most));
  return found->get<std::vector<JobNumber>>();
}

std::vector<std::string> BodyReader::texts(std::string_view key, std::size_t most) {
  const json* const found = find(key);
  if (found == nullptr) return {};
  if (found->is_string()) return {found->get<std::string>()};
  const auto is_text = [](const json& item) { return item.is_string(); };
  if (!found->is_array() || !std::ranges::all_of(*found, is_text) || found->size() > most) {
    wrong(key, fmt::format("a text or a list of at most {} texts expected", most));
    return {};
  }
  return found->get<std::vector<std::string>>();
}

std::vector<std::pair<std::string, std::string>> BodyReader::map(std::string_view key) {
  const json* const found = find(key);
  if (found == nullptr) return {};
  std::vector<std::pair<std::string, std::string>> all;
  if (!found->is_object()) {
    wrong(key, "names with values expected");
    return all;
  }
  for (const auto& [name, value] : found->items()) {
    if (value.is_string() && !has_nul(value.get<std::string>()))
      all.emplace_back(name, value.get<std::string>());
    else if (value.is_number() || value.is_boolean())
      all.emplace_back(name, value.dump());
    else
      wrong(key, fmt::format("the value of '{}' is no text, number or truth", name));
  }
  return all;
}

}  // namespace berth::api
