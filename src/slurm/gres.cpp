#include "slurm/gres.h"

#include <string>

#include "base/split.h"
#include "slurm/numbers.h"

namespace berth::slurm {

namespace {

constexpr std::int32_t kMaxIndex = 65'535;

std::vector<std::string_view> split_outside_parentheses(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const bool is_end = at == text.size();
    if (!is_end && text[at] == '(') ++depth;
    if (!is_end && text[at] == ')' && depth > 0) --depth;
    if (!is_end && (text[at] != ',' || depth > 0)) continue;
    if (at > begin) items.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  return items;
}

/// "4", "2K"; the letters count in steps of 1024, as Slurm's do.
std::optional<std::int64_t> parse_count(std::string_view text) {
  static constexpr std::string_view kLetters = "KMGTP";
  std::int64_t factor = 1;
  const std::size_t letter =
      text.empty() ? std::string_view::npos
                   : kLetters.find(static_cast<char>(text.back() & ~0x20));  // to upper case
  if (letter != std::string_view::npos) {
    factor = std::int64_t{1} << (10 * (letter + 1));
    text.remove_suffix(1);
  }
  const auto value = parse_digits(text);
  if (!value || *value > static_cast<std::uint64_t>(INT64_MAX / factor)) return std::nullopt;
  return static_cast<std::int64_t>(*value) * factor;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "2/4,0/4": how much of each device is taken; the devices of which something is.
std::vector<std::int32_t> taken_devices(std::string_view text) {
  std::vector<std::int32_t> indices;
  std::int32_t index = 0;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view taken = part.substr(0, part.find('/'));
    if (number_or<std::int64_t>(taken, 0) > 0) indices.push_back(index);
    if (++index > kMaxIndex) break;
  }
  return indices;
}

std::vector<std::int32_t> indices_in(std::string_view detail) {
  if (take_prefix(detail, "IDX:")) return parse_indices(detail);
  if (detail.starts_with("S:")) return {};  // sockets, not devices
  return detail.find('/') == std::string_view::npos ? std::vector<std::int32_t>{}
                                                    : taken_devices(detail);
}

std::optional<GresCount> parse_one(std::string_view item) {
  GresCount gres;
  const bool is_named_gres = take_prefix(item, "gres/") || take_prefix(item, "gres:");
  const std::size_t open = item.find('(');
  if (open != std::string_view::npos) {
    const std::size_t close = item.rfind(')');
    if (close != std::string_view::npos && close > open)
      gres.indices = indices_in(item.substr(open + 1, close - open - 1));
    item = item.substr(0, open);
  }
  gres.count = 1;
  if (const std::size_t equals = item.find('='); equals != std::string_view::npos) {
    const auto count = parse_count(item.substr(equals + 1));
    if (!is_named_gres || !count) return std::nullopt;
    gres.count = *count;
    item = item.substr(0, equals);
  }
  const auto parts = split(item, ':');
  gres.name = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto count = parse_count(parts[i]);
    const bool is_last = i + 1 == parts.size();
    if (is_last && count) {
      gres.count = *count;
    } else if (parts[i] != "no_consume" && gres.type.empty()) {
      gres.type = parts[i];
    }
  }
  if (gres.name.empty() || is_nothing(gres.name)) return std::nullopt;
  return gres;
}

/// Visits "name", "value" until it says that it has found what it wants.
template <class Visit>
void for_each_tres(std::string_view tres, Visit visit) {
  for (const std::string_view item : split(tres, ',')) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    if (visit(item.substr(0, equals), item.substr(equals + 1))) return;
  }
}

}  // namespace

std::vector<GresCount> parse_gres(std::string_view text) {
  std::vector<GresCount> all;
  if (is_nothing(text)) return all;
  for (const std::string_view item : split_outside_parentheses(text))
    if (auto gres = parse_one(item)) all.push_back(std::move(*gres));
  return all;
}

std::vector<std::int32_t> parse_indices(std::string_view text) {
  std::vector<std::int32_t> indices;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = number_or<std::int32_t>(part.substr(0, dash), -1);
    const auto last =
        dash == std::string_view::npos ? first : number_or<std::int32_t>(part.substr(dash + 1), -1);
    if (first < 0 || last < first || last > kMaxIndex) continue;
    for (std::int32_t index = first; index <= last; ++index) indices.push_back(index);
    if (indices.size() > static_cast<std::size_t>(kMaxIndex)) break;
  }
  return indices;
}

std::optional<std::int64_t> tres_count(std::string_view tres, std::string_view name) {
  std::optional<std::int64_t> found;
  for_each_tres(tres, [&](std::string_view key, std::string_view value) {
    if (key == name) found = parse_count(value);
    return key == name;
  });
  return found;
}

std::string_view tres_type(std::string_view tres, std::string_view gres) {
  std::string_view type;
  for_each_tres(tres, [&](std::string_view key, std::string_view) {
    if (!take_prefix(key, "gres/") || !take_prefix(key, gres) || !take_prefix(key, ":"))
      return false;
    type = key;
    return true;
  });
  return type;
}

std::int64_t parse_mebibytes(std::string_view text) {
  if (text.empty()) return 0;
  // Slurm prints one decimal or two of a large amount ("1.50T"): a thousandth is exact enough.
  std::int64_t kib = 1024;
  switch (text.back()) {
    case 'K': kib = 1; break;
    case 'M': kib = 1024; break;
    case 'G': kib = std::int64_t{1} << 20; break;
    case 'T': kib = std::int64_t{1} << 30; break;
    case 'P': kib = std::int64_t{1} << 40; break;
    default: break;
  }
  if (text.back() > '9') text.remove_suffix(1);
  const std::size_t point = text.find('.');
  const auto whole = parse_digits(text.substr(0, point));
  std::uint64_t thousandths = 0;
  if (point != std::string_view::npos) {
    std::string digits(text.substr(point + 1, 3));
    digits.resize(3, '0');
    thousandths = number_or<std::uint64_t>(digits, 0);
  }
  if (!whole || *whole > static_cast<std::uint64_t>(INT64_MAX / kib / 2000)) return 0;
  return static_cast<std::int64_t>(*whole * 1000 + thousandths) * kib / 1000 / 1024;
}

std::int64_t tres_mebibytes(std::string_view tres) {
  std::int64_t mebibytes = 0;
  for_each_tres(tres, [&](std::string_view key, std::string_view value) {
    if (key == "mem") mebibytes = parse_mebibytes(value);
    return key == "mem";
  });
  return mebibytes;
}

}  // namespace berth::slurm
