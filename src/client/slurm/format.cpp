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
    if (columns + width > part.width) break;
    cut += text.substr(i, character.bytes);
    columns += width;
    i += character.bytes;
  }
  const std::string space(part.width - std::min(part.width, columns), ' ');
  return part.is_right ? space + cut : cut + space;
}

}  // namespace

Result<std::vector<FormatPart>> parse_format(std::string_view text, std::string_view known) {
  std::vector<FormatPart> parts;
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
    if (known.find(text[i]) == std::string_view::npos)
      return fail(fmt::format("format '{}': %{} means nothing here (known: %{})", text, text[i],
                              fmt::join(known, " %")));
    part.type = text[i];
    parts.push_back(std::move(part));
    part = {};
  }
  if (!part.before.empty()) parts.push_back(std::move(part));
  return parts;
}

Result<std::vector<FormatPart>> parse_long_format(std::string_view text,
                                                  const std::vector<LongField>& known) {
  std::vector<FormatPart> parts;
  for (const std::string_view field : split(text, ',')) {
    const auto colon = field.find(':');
    std::string name(field.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto found = std::ranges::find(known, name, &LongField::name);
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const LongField& one : known) names.emplace_back(one.name);
      return fail(fmt::format("no field is called '{}'{}", name, suggestion(name, names)));
    }
    FormatPart part{{}, found->type, 20, false};
    if (colon != std::string_view::npos) {
      std::string_view width = field.substr(colon + 1);
      if (width.starts_with('.')) {
        part.is_right = true;
        width.remove_prefix(1);
      }
      const auto [end, error] =
          std::from_chars(width.data(), width.data() + width.size(), part.width);
      if (error != std::errc{} || end != width.data() + width.size() || part.width > 10'000)
        return fail(fmt::format("'{}': no width", field));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string format_line(const std::vector<FormatPart>& parts,
                        const std::function<std::string(char type)>& value) {
  std::string line;
  for (const FormatPart& part : parts) {
    line += part.before;
    if (part.type == 0) continue;
    line += padded(harmless(value(part.type)), part);
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
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
