// Numbers and times of traces, exact where the text is exact: a plain decimal is scaled in
// integers, so that 0.1 s is 100,000 ticks on every machine. Everything else goes through
// from_chars, which ignores the locale.

#include "trace/numbers.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <system_error>

#include "trace/csv.h"

namespace berth {

namespace {

constexpr std::string_view kNoNumber = "is not a number";
constexpr std::string_view kNotFinite = "must be a finite number";
constexpr std::string_view kNegative = "must not be negative";
constexpr std::string_view kTooLong = "must be at most 1e11 seconds";
constexpr std::string_view kNoTime = "is neither a number nor an ISO 8601 time";

__extension__ using Wide = unsigned __int128;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// A plain decimal such as 172800 or 3163.091667: digits and a power of ten, exact.
struct Decimal {
  std::uint64_t digits = 0;
  std::uint64_t scale = 1;
};

// No sign, no exponent, at most 18 characters: anything else takes the general way.
std::optional<Decimal> plain_decimal(std::string_view text) noexcept {
  constexpr std::size_t kSafeDigits = 18;  // below 2^63
  if (text.empty() || text.size() > kSafeDigits) return std::nullopt;
  Decimal decimal;
  bool after_point = false;
  bool any_digit = false;
  for (const char c : text) {
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (!is_digit(c)) return std::nullopt;
    any_digit = true;
    decimal.digits = decimal.digits * 10 + static_cast<std::uint64_t>(c - '0');
    if (after_point) decimal.scale *= 10;
  }
  if (!any_digit) return std::nullopt;
  return decimal;
}

Parsed<Duration> checked_ticks(double ticks) noexcept {
  if (ticks < 0) return {{}, kNegative};
  if (ticks > kMaxInputSeconds * 1e6) return {{}, kTooLong};
  return {Duration{std::llround(ticks)}, {}};
}

// Reads a run of digits of the given width at `position` and moves past it.
std::optional<int> take_digits(std::string_view text, std::size_t& position, std::size_t width) {
  if (text.size() < position + width) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const char c = text[position + i];
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  position += width;
  return value;
}

bool take_char(std::string_view text, std::size_t& position, std::string_view any_of) noexcept {
  if (position >= text.size() || any_of.find(text[position]) == std::string_view::npos)
    return false;
  ++position;
  return true;
}

std::int64_t take_fraction_ticks(std::string_view text, std::size_t& position) noexcept {
  if (!take_char(text, position, ".,")) return 0;
  std::int64_t ticks = 0;
  std::int64_t place = kTicksPerSecond / 10;
  // Digits beyond the microsecond are dropped: place becomes 0.
  for (; position < text.size() && is_digit(text[position]); ++position, place /= 10) {
    ticks += place * (text[position] - '0');
  }
  return ticks;
}

// "Z", "+02", "+02:00" or "-0830" at the end; nothing means UTC.
std::optional<std::int64_t> take_offset_seconds(std::string_view text, std::size_t& position) {
  if (position == text.size() || take_char(text, position, "Zz")) return 0;
  const bool west = text[position] == '-';
  if (!take_char(text, position, "+-")) return std::nullopt;
  const auto hours = take_digits(text, position, 2);
  if (!hours || *hours > 14) return std::nullopt;
  int minutes = 0;
  if (position < text.size()) {
    static_cast<void>(take_char(text, position, ":"));
    const auto given = take_digits(text, position, 2);
    if (!given || *given > 59) return std::nullopt;
    minutes = *given;
  }
  const std::int64_t offset = *hours * 3600 + minutes * 60;
  return west ? -offset : offset;
}

struct ClockTime {
  std::int64_t seconds = 0;
  std::int64_t ticks = 0;
};

std::optional<ClockTime> take_clock(std::string_view text, std::size_t& position) {
  const auto hour = take_digits(text, position, 2);
  // 24:00 is the end of a day in some logs.
  if (!hour || *hour > 24 || !take_char(text, position, ":")) return std::nullopt;
  const auto minute = take_digits(text, position, 2);
  if (!minute || *minute > 59) return std::nullopt;
  ClockTime clock{*hour * 3600 + *minute * 60, 0};
  if (!take_char(text, position, ":")) return clock;
  const auto second = take_digits(text, position, 2);
  // 60 is a leap second.
  if (!second || *second > 60) return std::nullopt;
  clock.seconds += *second;
  clock.ticks = take_fraction_ticks(text, position);
  return clock;
}

std::optional<Time> iso_time(std::string_view text) {
  std::size_t position = 0;
  const auto year = take_digits(text, position, 4);
  if (!year || !take_char(text, position, "-")) return std::nullopt;
  const auto month = take_digits(text, position, 2);
  if (!month || !take_char(text, position, "-")) return std::nullopt;
  const auto day = take_digits(text, position, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  ClockTime clock;
  std::int64_t offset = 0;
  if (take_char(text, position, "T t")) {
    const auto given = take_clock(text, position);
    if (!given) return std::nullopt;
    clock = *given;
    while (take_char(text, position, " ")) {
    }
    const auto shift = take_offset_seconds(text, position);
    if (!shift) return std::nullopt;
    offset = *shift;
  }
  if (position != text.size()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  const std::int64_t seconds = days * 86'400 + clock.seconds - offset;
  return Time{Duration{seconds * kTicksPerSecond + clock.ticks}};
}

}  // namespace

Parsed<Duration> parse_span(std::string_view text, std::int64_t ticks_per_unit) {
  text = trimmed(text);
  if (const auto decimal = plain_decimal(text)) {
    const Wide ticks = static_cast<Wide>(decimal->digits) * static_cast<Wide>(ticks_per_unit);
    // 128 bits: 18 digits times the ticks of a day still fit.
    const Wide rounded = (ticks + decimal->scale / 2) / decimal->scale;
    if (rounded > static_cast<Wide>(kMaxInputSeconds * 1e6)) return {{}, kTooLong};
    return {Duration{static_cast<std::int64_t>(rounded)}, {}};
  }
  const auto number = parse_real(text);
  if (!number.is_good()) return {{}, number.broken_rule};
  return checked_ticks(number.value * static_cast<double>(ticks_per_unit));
}

Parsed<Time> parse_instant(std::string_view text, std::int64_t ticks_per_unit) {
  text = trimmed(text);
  // A number never has a dash at this place: exponents come later.
  const bool looks_iso = text.size() >= 8 && text[4] == '-';
  if (!looks_iso) {
    const auto span = parse_span(text, ticks_per_unit);
    const bool is_word = span.broken_rule == kNoNumber;
    return {Time{span.value}, is_word ? kNoTime : span.broken_rule};
  }
  const auto time = iso_time(text);
  if (!time) return {{}, kNoTime};
  if (*time < kTimeZero) return {{}, "must not be before 1970"};
  if (to_seconds(*time) > kMaxInputSeconds) return {{}, kTooLong};
  return {*time, {}};
}

Parsed<Duration> parse_slurm_span(std::string_view text) {
  constexpr std::string_view kNoSpan = "is not a Slurm time such as 1-02:03:04";
  text = trimmed(text);
  std::int64_t days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto number = parse_whole(text.substr(0, dash));
    if (!number.is_good() || number.value < 0 || number.value > 1'000'000) return {{}, kNoSpan};
    days = number.value;
    text.remove_prefix(dash + 1);
  }
  std::int64_t seconds = 0;
  std::size_t position = 0;
  for (int part = 0; part < 3; ++part) {
    const auto value = take_digits(text, position, 2);
    if (!value) return {{}, kNoSpan};
    seconds = seconds * 60 + *value;
    if (position == text.size() || text[position] == '.') break;
    if (!take_char(text, position, ":")) return {{}, kNoSpan};
  }
  const std::int64_t ticks = take_fraction_ticks(text, position);
  if (position != text.size()) return {{}, kNoSpan};
  return {Duration{(days * 86'400 + seconds) * kTicksPerSecond + ticks}, {}};
}

Parsed<std::int64_t> parse_whole(std::string_view text) {
  text = trimmed(text);
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc{} && stop == text.data() + text.size()) return {value, {}};
  const auto number = parse_real(text);
  if (!number.is_good()) return {0, number.broken_rule};
  if (number.value != std::floor(number.value)) return {0, "must be a whole number"};
  if (std::abs(number.value) > 1e18) return {0, "is too large"};
  return {static_cast<std::int64_t>(number.value), {}};
}

Parsed<double> parse_real(std::string_view text) {
  text = trimmed(text);
  // from_chars does not take a plus sign, spreadsheets write it.
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size() || text.empty()) return {0, kNoNumber};
  if (code == std::errc::result_out_of_range) return {0, "is out of range"};
  if (code != std::errc{}) return {0, kNoNumber};
  if (!std::isfinite(value)) return {0, kNotFinite};
  return {value, {}};
}

}  // namespace berth
