#include "slurm/times.h"

#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/numbers.h"

namespace berth::slurm {

namespace {

// A span beyond this (31,000 years) is no span: sums with times must not overflow.
constexpr std::uint64_t kMaxDays = 11'000'000;

/// `text` at `at` must be `length` digits.
std::optional<unsigned> part(std::string_view text, std::size_t at, std::size_t length) noexcept {
  const auto value = parse_digits(text.substr(at, length));
  if (!value) return std::nullopt;
  return static_cast<unsigned>(*value);
}

std::optional<std::int64_t> seconds_of_day(std::string_view text) noexcept {
  if (text.size() != 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hour = part(text, 0, 2);
  const auto minute = part(text, 3, 2);
  const auto second = part(text, 6, 2);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  return std::int64_t{*hour} * 3600 + std::int64_t{*minute} * 60 + std::int64_t{*second};
}

/// "02:03:04", "03:04"; "12" is hours behind days and minutes otherwise.
std::optional<std::uint64_t> clock_seconds(std::string_view text, bool has_days) {
  const auto parts = split(text, ':');
  if (parts.size() > 3) return std::nullopt;
  std::uint64_t values[3]{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto value = parse_digits(parts[i]);
    if (!value || *value > kMaxDays * 86'400) return std::nullopt;
    values[i] = *value;
  }
  if (parts.size() == 3) return values[0] * 3600 + values[1] * 60 + values[2];
  if (has_days) return values[0] * 3600 + values[1] * 60;
  return values[0] * 60 + values[1];
}

}  // namespace

std::int64_t parse_time(std::string_view text) noexcept {
  if (text.size() != 19 || text[4] != '-' || text[7] != '-' || text[10] != 'T') return 0;
  const auto year = part(text, 0, 4);
  const auto month = part(text, 5, 2);
  const auto day = part(text, 8, 2);
  const auto clock = seconds_of_day(text.substr(11));
  if (!year || !month || !day || !clock) return 0;
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                         std::chrono::month{*month}, std::chrono::day{*day}};
  if (!date.ok()) return 0;
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  return days < 0 ? 0 : days * 86'400 + *clock;
}

std::int64_t parse_span(std::string_view text) noexcept {
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = has_days ? parse_digits(text.substr(0, dash)) : std::uint64_t{0};
  const auto clock = clock_seconds(has_days ? text.substr(dash + 1) : text, has_days);
  if (!days || *days > kMaxDays || !clock) return 0;
  return static_cast<std::int64_t>(*days * 86'400 + *clock);
}

std::string limit_text(std::int64_t seconds) {
  if (seconds <= 0) return "UNLIMITED";
  return fmt::format("{}", seconds / 60 + (seconds % 60 == 0 ? 0 : 1));
}

}  // namespace berth::slurm
