#include "client/slurm/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <ctime>

#include <grp.h>
#include <pwd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "client/moment.h"

namespace berth::client::slurm {

namespace {

bool is_figure(char c) { return c >= '0' && c <= '9'; }

constexpr std::int64_t kMostHosts = 100'000;

/// A name and the number at its end: "n007" is n and 7, in three figures.
struct NumberedName {
  std::string_view stem;
  std::string_view figures;
  std::int64_t number = 0;
};

NumberedName numbered(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && is_figure(name[at - 1]) && name.size() - at < 9) --at;
  NumberedName parts{name.substr(0, at), name.substr(at)};
  std::from_chars(parts.figures.data(), parts.figures.data() + parts.figures.size(), parts.number);
  return parts;
}

/// "1-3", "07": the ends and how many figures they have.
Result<void> add_range(std::string_view range, std::string_view stem,
                       std::vector<std::string>& endings) {
  const auto dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  std::int64_t first = 0, last = 0;
  const auto is_read = [](std::string_view text, std::int64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return !text.empty() && is_figure(text.front()) && error == std::errc{} &&
           end == text.data() + text.size();
  };
  if (!is_read(low, first) || !is_read(high, last) || last < first || last - first > kMostHosts)
    return fail(fmt::format("Invalid hostlist: {}[{}]", stem, range));
  for (std::int64_t i = first; i <= last; ++i)
    endings.push_back(fmt::format("{:0{}}", i, low.size()));
  return {};
}

Result<void> add_hosts(std::string_view word, std::vector<std::string>& names) {
  const auto open = word.find('[');
  if (open == std::string_view::npos) {
    if (!word.empty()) names.emplace_back(word);
    return {};
  }
  const auto close = word.find(']', open);
  if (close == std::string_view::npos) return fail(fmt::format("Invalid hostlist: {}", word));
  std::vector<std::string> middles, tails;
  for (const std::string_view range : split(word.substr(open + 1, close - open - 1), ','))
    BERTH_TRY_VOID(add_range(range, word.substr(0, open), middles));
  BERTH_TRY_VOID(add_hosts(word.substr(close + 1), tails));
  if (tails.empty()) tails.emplace_back();
  if (static_cast<std::int64_t>(names.size() + middles.size() * tails.size()) > kMostHosts)
    return fail(fmt::format("Invalid hostlist: {}", word));
  for (const std::string& middle : middles)
    for (const std::string& tail : tails)
      names.push_back(fmt::format("{}{}{}", word.substr(0, open), middle, tail));
  return {};
}

}  // namespace

std::string day_clock(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds));
  const std::int64_t days = whole / 86'400;
  const std::string rest =
      fmt::format("{:02}:{:02}:{:02}", whole / 3'600 % 24, whole / 60 % 60, whole % 60);
  return days > 0 ? fmt::format("{}-{}", days, rest) : rest;
}

std::string processor_clock(double seconds) {
  if (seconds <= 0) return "00:00:00";
  if (seconds >= 3'600) return day_clock(seconds);
  const auto milli = static_cast<std::int64_t>(seconds * 1'000);
  return fmt::format("{:02}:{:02}.{:03}", milli / 60'000, milli / 1'000 % 60, milli % 1'000);
}

std::string moment_or(std::int64_t micros, std::string_view nothing) {
  return micros > 0 ? local_time(micros) : std::string(nothing);
}

std::string asctime_text(std::int64_t seconds) {
  const std::time_t moment = seconds;
  std::tm parts{};
  ::localtime_r(&moment, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y\n", &parts);
  return text.data();
}

std::string exit_pair(std::int32_t code, std::int32_t signal) {
  return fmt::format("{}:{}", code, signal);
}

Account account_of(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());
  if (entry == nullptr) return {user, user, user, user};
  Account account{user, "", fmt::to_string(entry->pw_uid), fmt::to_string(entry->pw_gid)};
  const group* its_group = ::getgrgid(entry->pw_gid);
  account.group = its_group != nullptr ? its_group->gr_name : account.gid;
  return account;
}

std::string amount(double value, char unit, Units units) {
  constexpr std::string_view kAll("\0KMGTP", 6);
  std::size_t at = kAll.find(unit);
  if (value == 0) return "0";
  const auto written = [&] {
    const std::string end = at == 0 ? "" : std::string(1, kAll[at]);
    if (value == std::floor(value)) return fmt::format("{:.0f}{}", value, end);
    return fmt::format("{:.2f}{}", value, end);
  };
  if (const auto wanted = kAll.find(units.wanted);
      units.wanted != 0 && wanted != std::string_view::npos) {
    for (; at < wanted; ++at) value /= 1'024;
    for (; at > wanted; --at) value *= 1'024;
    return written();
  }
  while (!units.is_kept && at + 1 < kAll.size() && value >= 1'024 && std::fmod(value, 1'024) == 0) {
    value /= 1'024;
    ++at;
  }
  return written();
}

std::string tres(const Resources& resources, TresOrder order, Units units) {
  std::vector<std::string> parts;
  if (resources.cpus > 0) parts.push_back(fmt::format("cpu={}", resources.cpus));
  if (resources.memory_mib > 0)
    parts.push_back(
        fmt::format("mem={}", amount(static_cast<double>(resources.memory_mib), 'M', units)));
  if (resources.nodes > 0) parts.push_back(fmt::format("node={}", resources.nodes));
  if (resources.gpus > 0) {
    parts.push_back(fmt::format("gres/gpu={}", resources.gpus));
    if (!resources.gpu_type.empty())
      parts.push_back(fmt::format("gres/gpu:{}={}", resources.gpu_type, resources.gpus));
  }
  if (order == TresOrder::Letters) std::ranges::sort(parts);
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string gres_request(std::int32_t gpus, std::string_view type) {
  if (gpus <= 0) return {};
  return fmt::format("gres/gpu{}{}:{}", type.empty() ? "" : ":", type, gpus);
}

std::string index_ranges(std::vector<std::int32_t> indices) {
  std::ranges::sort(indices);
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last > i ? fmt::format("{}-{}", indices[i], indices[last]) : fmt::to_string(indices[i]);
    i = last + 1;
  }
  return text;
}

Result<std::vector<std::string>> expanded_hosts(std::string_view list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' && c != '\n') continue;
    if (depth > 0 && i < list.size()) continue;
    BERTH_TRY_VOID(add_hosts(list.substr(begin, i - begin), names));
    begin = i + 1;
  }
  return names;
}

std::string folded_hosts(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size();) {
    const NumberedName first = numbered(names[i]);
    std::vector<NumberedName> group{first};
    while (!first.figures.empty() && i + group.size() < names.size()) {
      const NumberedName next = numbered(names[i + group.size()]);
      const bool is_padded = first.figures.front() == '0' || next.figures.starts_with('0');
      if (next.stem != first.stem || next.figures.empty() ||
          (is_padded && next.figures.size() != first.figures.size()))
        break;
      group.push_back(next);
    }
    if (!text.empty()) text += ',';
    if (group.size() == 1) {
      text += names[i];
    } else {
      std::string inside;
      for (std::size_t a = 0; a < group.size();) {
        std::size_t b = a;
        while (b + 1 < group.size() && group[b + 1].number == group[b].number + 1) ++b;
        if (!inside.empty()) inside += ',';
        inside += group[a].figures;
        if (b > a) inside += fmt::format("-{}", group[b].figures);
        a = b + 1;
      }
      text += fmt::format("{}[{}]", first.stem, inside);
    }
    i += group.size();
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

bool is_listed(std::string_view list, std::string_view one) {
  const auto words = split(list, ',');
  return list.empty() || std::ranges::find(words, one) != words.end();
}

}  // namespace berth::client::slurm
