// Times as people write them: Slurm's notation for --begin, spans for --since. `direction` says
// where a bare time of day lies: the next one for what is to come, the last one for what was.

#include "client/moment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "base/split.h"

namespace berth::client {

namespace {

constexpr std::int64_t kDay = 86'400;

template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::tm local(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::localtime_r(&time, &parts);
  return parts;
}

/// Midnight of the day of `now`, some days later or earlier; days are calendar days.
std::int64_t midnight(std::int64_t now, int days) {
  std::tm parts = local(now);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  // mktime() carries over months and years, and knows about daylight saving.
  parts.tm_mday += days;
  parts.tm_isdst = -1;
  return std::mktime(&parts);
}

/// "90", "90s", "5min", "2 hours", "1day", "1week": seconds.
std::optional<std::int64_t> span_of(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0)
    ++digits;
  const auto count = whole<std::int64_t>(text.substr(0, digits));
  if (!count || *count > 1'000'000'000) return std::nullopt;
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  struct Unit {
    std::string_view name;
    std::int64_t seconds;
  };
  static constexpr std::array<Unit, 18> kUnits{{{"", 1},
                                                {"s", 1},
                                                {"sec", 1},
                                                {"second", 1},
                                                {"seconds", 1},
                                                {"m", 60},
                                                {"min", 60},
                                                {"minute", 60},
                                                {"minutes", 60},
                                                {"h", 3'600},
                                                {"hour", 3'600},
                                                {"hours", 3'600},
                                                {"d", kDay},
                                                {"day", kDay},
                                                {"days", kDay},
                                                {"w", 7 * kDay},
                                                {"week", 7 * kDay},
                                                {"weeks", 7 * kDay}}};
  for (const Unit& known : kUnits)
    if (known.name == unit) return *count * known.seconds;
  return std::nullopt;
}

/// Seconds after midnight: "16:00", "16:00:30", "4:30pm", "noon".
std::optional<std::int64_t> time_of_day(std::string text) {
  if (text == "midnight") return 0;
  if (text == "noon") return 12 * 3'600;
  if (text == "elevenses") return 11 * 3'600;
  if (text == "fika") return 15 * 3'600;
  if (text == "teatime") return 16 * 3'600;
  int offset = -1;
  if (text.ends_with("am") || text.ends_with("pm")) {
    offset = text.ends_with("pm") ? 12 : 0;
    text.resize(text.size() - 2);
    while (text.ends_with(' ')) text.pop_back();
  }
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  auto hour = whole<std::int64_t>(parts[0]);
  const auto minute = whole<std::int64_t>(parts[1]);
  const auto second = parts.size() == 3 ? whole<std::int64_t>(parts[2]) : 0;
  if (!hour || !minute || !second) return std::nullopt;
  if (*hour < 0 || *hour > (offset < 0 ? 23 : 12) || *minute < 0 || *minute > 59 || *second < 0 ||
      *second > 59)
    return std::nullopt;
  // 12am is midnight, 12pm noon.
  if (offset >= 0) hour = *hour % 12 + offset;
  return *hour * 3'600 + *minute * 60 + *second;
}

struct Date {
  int year, month, day;
};
// 2026-11-20, 11/20/26, 11/20 or 112026: what sbatch takes for --begin.
std::optional<Date> date_of(std::string_view text, std::int64_t now) {
  std::array<std::string_view, 3> part{};  // year, month, day
  const char separator = text.find('/') != std::string_view::npos ? '/' : '-';
  const auto pieces = split(text, separator);
  if (separator == '-' && pieces.size() == 3)
    part = {pieces[0], pieces[1], pieces[2]};
  else if (separator == '/' && pieces.size() == 3)
    part = {pieces[2], pieces[0], pieces[1]};
  else if (separator == '/' && pieces.size() == 2)
    part = {"", pieces[0], pieces[1]};
  else if (pieces.size() == 1 && text.size() == 6)
    part = {text.substr(4), text.substr(0, 2), text.substr(2, 2)};
  else
    return std::nullopt;
  auto year = part[0].empty() ? std::optional(local(now).tm_year + 1'900) : whole<int>(part[0]);
  const auto month = whole<int>(part[1]);
  const auto day = whole<int>(part[2]);
  if (!year || !month || !day) return std::nullopt;
  if (*year >= 0 && *year < 100) year = *year + 2'000;
  if (*year < 1970 || *year > 2'400 || *month < 1 || *month > 12 || *day < 1 || *day > 31)
    return std::nullopt;
  return Date{*year, *month, *day};
}

// Local time, with daylight saving as it is on that day.
std::optional<std::int64_t> on_day(const Date& date, std::int64_t seconds) {
  std::tm parts{};
  parts.tm_year = date.year - 1'900;
  parts.tm_mon = date.month - 1;
  parts.tm_mday = date.day;
  parts.tm_hour = static_cast<int>(seconds / 3'600);
  parts.tm_min = static_cast<int>(seconds / 60 % 60);
  parts.tm_sec = static_cast<int>(seconds % 60);
  parts.tm_isdst = -1;
  const std::int64_t time = std::mktime(&parts);
  if (parts.tm_mday != date.day) return std::nullopt;  // February 30
  return time;
}

/// A date, perhaps with a time of day; "today", "tomorrow", "yesterday".
std::optional<std::int64_t> absolute(const std::string& text, std::int64_t now) {
  if (text == "today") return midnight(now, 0);
  if (text == "tomorrow") return midnight(now, 1);
  if (text == "yesterday") return midnight(now, -1);
  const auto separator = text.find_first_of("t ");
  const auto date = date_of(std::string_view(text).substr(0, separator), now);
  if (!date) return std::nullopt;
  const auto seconds = separator == std::string::npos ? std::optional<std::int64_t>(0)
                                                      : time_of_day(text.substr(separator + 1));
  return seconds ? on_day(*date, *seconds) : std::nullopt;
}

// From the most specific notation to the least: a bare number is the last thing it can be.
std::optional<std::int64_t> moment(std::string_view given, std::int64_t now, int direction) {
  const std::string text = lower(given);
  if (text == "now") return now;
  if (text.starts_with("now+") || text.starts_with("now-")) {
    const auto span = span_of(std::string_view(text).substr(4));
    if (span) return text[3] == '+' ? now + *span : now - *span;
    return std::nullopt;
  }
  if (const auto seconds = time_of_day(text)) {
    const std::int64_t today = midnight(now, 0) + *seconds;
    if (direction > 0 && today <= now) return midnight(now, 1) + *seconds;
    if (direction < 0 && today > now) return midnight(now, -1) + *seconds;
    return today;
  }
  if (const auto time = absolute(text, now)) return time;
  // "2h" alone means two hours ago; a bare number is no span here, it may be Unix time.
  if (direction < 0 && !text.empty() &&
      std::isdigit(static_cast<unsigned char>(text.back())) == 0) {
    if (const auto span = span_of(text)) return now - *span;
  }
  if (const auto seconds = whole<std::int64_t>(text); seconds && *seconds > 100'000'000)
    return *seconds;  // Unix time
  return std::nullopt;
}

struct SignalName {
  int number;
  std::string_view name;
};
constexpr std::array<SignalName, 20> kSignals{
    {{SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"}, {SIGABRT, "ABRT"}, {SIGKILL, "KILL"},
     {SIGALRM, "ALRM"}, {SIGTERM, "TERM"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGURG, "URG"},
     {SIGCONT, "CONT"}, {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"}, {SIGTTIN, "TTIN"}, {SIGTTOU, "TTOU"},
     {SIGPIPE, "PIPE"}, {SIGSEGV, "SEGV"}, {SIGBUS, "BUS"},   {SIGFPE, "FPE"},   {SIGILL, "ILL"}}};

}  // namespace

Result<std::int64_t> parse_moment(std::string_view text, std::int64_t now) {
  if (const auto time = moment(text, now, 1); time && *time >= 0) return *time;
  return fail(
      fmt::format("'{}' is no time (as in now+2hours, 16:00, tomorrow, 2026-11-20T08:30)", text));
}

Result<std::int64_t> parse_past_moment(std::string_view text, std::int64_t now) {
  if (const auto time = moment(text, now, -1); time && *time >= 0) return *time;
  return fail(fmt::format("'{}' is no time (as in 2h, 3d, yesterday, 08:30, 2026-11-20)", text));
}

// Units of 1024, as Slurm counts: 16G, 16GB and 16GiB are the same.
Result<std::int32_t> parse_memory_mib(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit = lower(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit.ends_with('b') && unit.size() > 1) unit.pop_back();
  if (unit.ends_with('i') && unit.size() > 1) unit.pop_back();
  double mib = -1;
  if (unit == "k") mib = value / 1'024;
  if (unit.empty() || unit == "m") mib = value;
  if (unit == "g") mib = value * 1'024;
  if (unit == "t") mib = value * 1'024 * 1'024;
  if (error != std::errc{} || !(mib >= 0) || mib > 2e9)
    return fail(
        fmt::format("'{}' is no amount of memory (as in 512M, 16G; MiB without unit)", text));
  // Rounded up: nobody gets less than they asked for.
  return static_cast<std::int32_t>(std::ceil(mib));
}

// With or without SIG, in any case, or by number.
Result<int> parse_signal(std::string_view text) {
  if (const auto number = whole<int>(text)) {
    if (*number >= 1 && *number <= 64) return *number;
  } else {
    std::string name(text);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const std::string_view bare = name.starts_with("SIG") ? std::string_view(name).substr(3) : name;
    for (const SignalName& known : kSignals)
      if (known.name == bare) return known.number;
  }
  return fail(fmt::format("'{}' is not a signal (as in USR1, SIGTERM or 15)", text));
}

std::string signal_name(int signal) {
  for (const SignalName& known : kSignals)
    if (known.number == signal) return fmt::format("SIG{}", known.name);
  return fmt::format("signal {}", signal);
}

// Slurm's form, days-hours:minutes:seconds, without leading parts that are zero.
std::string clock_span(double seconds) {
  const auto all = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e11));
  const std::int64_t days = all / kDay, hours = all / 3'600 % 24, minutes = all / 60 % 60;
  if (days > 0) return fmt::format("{}-{:02}:{:02}:{:02}", days, hours, minutes, all % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60);
  return fmt::format("{}:{:02}", minutes, all % 60);
}

std::string local_time(std::int64_t micros) {
  if (micros <= 0) return "N/A";
  const std::tm t = local(micros / 1'000'000);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", t.tm_year + 1'900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

std::string short_time(std::int64_t micros, std::int64_t now) {
  if (micros <= 0) return "-";
  static constexpr std::array<std::string_view, 12> kMonths{
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm t = local(micros / 1'000'000);
  const std::tm today = local(now);
  if (t.tm_yday == today.tm_yday && t.tm_year == today.tm_year)
    return fmt::format("{:02}:{:02}:{:02}", t.tm_hour, t.tm_min, t.tm_sec);
  return fmt::format("{} {:02} {:02}:{:02}", kMonths.at(static_cast<std::size_t>(t.tm_mon)),
                     t.tm_mday, t.tm_hour, t.tm_min);
}

}  // namespace berth::client
