#include "api/target.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/split.h"

namespace berth::api {

namespace {

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

enum class Plus : std::uint8_t { IsPlus, IsSpace };  // in a query '+' is a space

Result<std::string> percent_decoded(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail("target: % is not followed by two hexadecimal digits");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus == Plus::IsSpace ? ' ' : text[i];
    }
  }
  if (!is_utf8_text(out)) return fail("target: not UTF-8 text");
  return out;
}

/// Bytes of the UTF-8 sequence that begins with `lead`; 0 if none does.
std::size_t sequence_length(unsigned char lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

std::string_view without_authority(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    text.remove_prefix(scheme.size());
    const std::size_t path = text.find_first_of("/?");
    return path == std::string_view::npos ? "/" : text.substr(path);
  }
  return text;
}

template <class Whole>
std::optional<Whole> all_as_number(std::string_view text) {
  Whole value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

bool is_utf8_text(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const std::size_t length = sequence_length(byte(i));
    if (length == 0 || i + length > text.size() || text[i] == '\0') return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80U) return false;
    }
    // No overlong forms, surrogates or numbers beyond Unicode.
    if (byte(i) == 0xE0 && byte(i + 1) < 0xA0) return false;
    if (byte(i) == 0xED && byte(i + 1) >= 0xA0) return false;
    if (byte(i) == 0xF0 && byte(i + 1) < 0x90) return false;
    if (byte(i) == 0xF4 && byte(i + 1) >= 0x90) return false;
    i += length;
  }
  return true;
}

std::optional<JobNumber> job_number_from(std::string_view text) {
  const auto number = all_as_number<JobNumber>(text);
  return number && *number > 0 ? number : std::nullopt;
}

Result<Target> parse_target(std::string_view text) {
  text = without_authority(text);
  if (text.empty() || text.front() != '/') return fail("target: a path begins with /");
  const std::size_t mark = text.find('?');
  Target target;
  const std::string_view path = text.substr(1, mark == std::string_view::npos ? mark : mark - 1);
  for (const std::string_view part : split(path, '/')) {
    BERTH_TRY(std::string segment, percent_decoded(part, Plus::IsPlus));
    target.path.push_back(std::move(segment));
  }
  if (mark == std::string_view::npos) return target;
  for (const std::string_view part : split(text.substr(mark + 1), '&')) {
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size() - 1);
    const bool has_value = part[equals] == '=';
    BERTH_TRY(std::string name,
              percent_decoded(has_value ? part.substr(0, equals) : part, Plus::IsSpace));
    BERTH_TRY(std::string value,
              percent_decoded(has_value ? part.substr(equals + 1) : "", Plus::IsSpace));
    target.query.emplace_back(std::move(name), std::move(value));
  }
  return target;
}

void QueryReader::wrong(std::string_view name, std::string_view what) {
  faults_.push_back(fmt::format("{}: {}", name, what));
}

std::optional<std::string> QueryReader::text(std::string_view name) {
  const std::string* found = nullptr;
  for (const auto& [key, value] : target_.query) {
    if (key != name) continue;
    if (found != nullptr) wrong(name, "given twice");
    found = &value;
  }
  if (found == nullptr || found->empty()) return std::nullopt;
  return *found;
}

std::optional<std::int64_t> QueryReader::whole(std::string_view name, std::int64_t low,
                                               std::int64_t high) {
  const auto given = text(name);
  if (!given) return std::nullopt;
  const auto value = all_as_number<std::int64_t>(*given);
  if (value && *value >= low && *value <= high) return value;
  wrong(name, fmt::format("a whole number within {} and {} expected, not '{}'", low, high, *given));
  return std::nullopt;
}

bool QueryReader::flag(std::string_view name) {
  const bool is_named = std::ranges::any_of(
      target_.query, [&](const auto& parameter) { return parameter.first == name; });
  const auto given = text(name);
  if (!given) return is_named;
  if (*given == "1" || *given == "true" || *given == "yes") return true;
  if (*given != "0" && *given != "false" && *given != "no")
    wrong(name, fmt::format("1 or 0 expected, not '{}'", *given));
  return false;
}

std::vector<std::string> QueryReader::list(std::string_view name) {
  std::vector<std::string> parts;
  const auto given = text(name);
  if (!given) return parts;
  for (const std::string_view part : split(*given, ',')) parts.emplace_back(part);
  return parts;
}

std::vector<JobNumber> QueryReader::numbers(std::string_view name, std::size_t most) {
  std::vector<JobNumber> all;
  for (const std::string& part : list(name)) {
    const std::string_view range = part;
    const std::size_t dash = range.find('-');
    const auto first = job_number_from(range.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : job_number_from(range.substr(dash + 1));
    if (!first || !last || *first > *last) {
      wrong(name, fmt::format("numbers as in 3,7-9 expected, not '{}'", part));
      return {};
    }
    const JobNumber more = *last - *first;  // and one
    if (more >= most || all.size() + more >= most) {
      wrong(name, fmt::format("at most {} numbers", most));
      return {};
    }
    for (JobNumber i = 0; i <= more; ++i) all.push_back(*first + i);
  }
  return all;
}

}  // namespace berth::api
