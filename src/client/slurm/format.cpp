#include "client/slurm/format.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/split.h"
#include "base/suggest.h"
#include "base/terminal_text.h"

namespace berth::client {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string padded(const std::string& text, const FormatPart& part) {
  if (part.width == 0) return text;
  std::string cut;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Character character = first_character(std::string_view(text).substr(i));
    const std::size_t width = columns_of(character.code);
    if (columns + width > part.width && !part.is_whole) break;
    cut += text.substr(i, character.bytes);
    columns += width;
    i += character.bytes;
  }
  const std::string space(part.width - std::min(part.width, columns), ' ');
  return part.is_right ? space + cut : cut + space;
}

/// "[.][WIDTH][SUFFIX]" behind the colon of a name.
void take_width(std::string_view text, FormatPart& part) {
  part.width = 0;
  if (text.starts_with('.')) {
    part.is_right = true;
    text.remove_prefix(1);
  }
  while (!text.empty() && is_digit(text.front())) {
    part.width =
        std::min<std::size_t>(10'000, part.width * 10 + static_cast<std::size_t>(text[0] - '0'));
    text.remove_prefix(1);
  }
  part.after = text;
}

std::string in_rows(const std::vector<std::string>& words, std::size_t width, std::size_t per_row) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_last = i % per_row == per_row - 1 || i + 1 == words.size();
    text += is_last ? words[i] + "\n" : fmt::format("{:<{}}", words[i], width);
  }
  return text;
}

/// Every letter, with bars between.
Format every_column(std::span<const ColumnName> known) {
  Format parts;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].letter == 0) continue;
    FormatPart part;
    part.before = parts.empty() ? "" : "|";
    part.column = i;
    part.is_whole = known[i].is_whole;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Result<Format> parse_format(std::string_view text, std::span<const ColumnName> known) {
  if (text == "%all") return every_column(known);
  Format parts;
  FormatPart part;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      part.before += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '%') {
      part.before += text[++i];
      continue;
    }
    ++i;
    if (i < text.size() && text[i] == '.') {
      part.is_right = true;
      ++i;
    }
    if (i < text.size() && text[i] == '#') ++i;
    while (i < text.size() && is_digit(text[i]))
      part.width = std::min<std::size_t>(
          10'000, part.width * 10 + static_cast<std::size_t>(text[i++] - '0'));
    if (i >= text.size()) return fail(fmt::format("format '{}': a % without a letter", text));
    const auto found = std::ranges::find(known, text[i], &ColumnName::letter);
    if (found == known.end())
      return fail(fmt::format("format '{}': %{} means nothing here (--helpformat lists them)", text,
                              text[i]));
    part.column = static_cast<std::size_t>(found - known.begin());
    part.is_whole = found->is_whole;
    parts.push_back(std::move(part));
    part = {};
  }
  if (!part.before.empty()) parts.push_back(std::move(part));
  return parts;
}

Result<Format> parse_long_format(std::string_view text, std::span<const ColumnName> known) {
  Format parts;
  for (const std::string_view field : split(text, ',')) {
    const auto colon = field.find(':');
    std::string name(field.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto found = std::ranges::find(known, name, &ColumnName::name);
    if (name.empty() || found == known.end()) {
      std::vector<std::string> names;
      for (const ColumnName& one : known)
        if (!one.name.empty()) names.emplace_back(one.name);
      return fail(fmt::format("no field is called '{}'{}", name, suggestion(name, names)));
    }
    FormatPart part;
    part.column = static_cast<std::size_t>(found - known.begin());
    part.width = 20;
    part.is_whole = found->is_whole;
    if (colon != std::string_view::npos) take_width(field.substr(colon + 1), part);
    parts.push_back(std::move(part));
  }
  return parts;
}

bool has_column(const Format& format, std::span<const ColumnName> known, char letter) {
  return std::ranges::any_of(format, [&](const FormatPart& part) {
    return part.column != FormatPart::kNone && known[part.column].letter == letter;
  });
}

std::string format_line(const Format& format,
                        const std::function<std::string(std::size_t column)>& value) {
  std::string line;
  for (const FormatPart& part : format) {
    line += part.before;
    if (part.column == FormatPart::kNone) continue;
    line += padded(harmless(value(part.column)), part) + part.after;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

std::string format_titles(const Format& format, std::span<const ColumnName> known) {
  Format titles = format;
  for (FormatPart& part : titles) part.is_whole = false;
  return format_line(titles, [&](std::size_t column) { return std::string(known[column].title); });
}

std::string column_letters(std::span<const ColumnName> known) {
  std::vector<std::string> words;
  for (const ColumnName& one : known)
    if (one.letter != 0) words.push_back(fmt::format("%{}", one.letter));
  return in_rows(words, 6, 8);
}

std::string column_names(std::span<const ColumnName> known) {
  std::vector<std::string> words;
  for (const ColumnName& one : known)
    if (!one.name.empty()) words.emplace_back(one.name);
  return in_rows(words, 20, 4);
}

std::string folded_names(std::vector<std::string> names) {
  struct Run {
    std::string_view digits;
    std::uint64_t number;
  };
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::map<std::pair<std::string_view, std::size_t>, std::vector<Run>> groups;  // stem, digits
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    std::size_t at = name.size();
    while (at > 0 && is_digit(name[at - 1]) && name.size() - at < 9) --at;
    const std::string_view digits = std::string_view(name).substr(at);
    if (digits.empty()) {
      parts.push_back(name);
      continue;
    }
    Run run{digits, 0};
    std::from_chars(digits.data(), digits.data() + digits.size(), run.number);
    const std::size_t fixed = digits.starts_with('0') ? digits.size() : 0;  // n01 is not n1
    groups[{std::string_view(name).substr(0, at), fixed}].push_back(run);
  }
  for (auto& [key, runs] : groups) {
    std::ranges::sort(runs, {}, &Run::number);
    std::string inside;
    for (std::size_t i = 0; i < runs.size();) {
      std::size_t last = i;
      while (last + 1 < runs.size() && runs[last + 1].number == runs[last].number + 1) ++last;
      if (!inside.empty()) inside += ',';
      inside += runs[i].digits;
      if (last > i) inside += fmt::format("-{}", runs[last].digits);
      i = last + 1;
    }
    parts.push_back(runs.size() == 1 ? fmt::format("{}{}", key.first, inside)
                                     : fmt::format("{}[{}]", key.first, inside));
  }
  std::ranges::sort(parts);
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace berth::client
