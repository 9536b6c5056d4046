// Settings are text until a policy reads them: make() refuses unknown keys, the typed readers
// refuse bad values, and every message ends with the command that lists the parameters.

#include "base/params.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/split.h"
#include "base/suggest.h"

namespace berth {

namespace {

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size() ||
      !std::isfinite(number))
    return std::nullopt;
  return number;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}};
  double unit = 1;
  std::string_view digits = text;
  for (const auto& [suffix, seconds] : kUnits) {
    if (text.ends_with(suffix)) {
      unit = seconds;
      digits = text.substr(0, text.size() - suffix.size());
      break;  // "ms" and "us" stand before "s"
    }
  }
  // Negative times and those beyond the clock's range are refused here, so that nobody behind this
  // function needs to check for overflow.
  const auto number = parse_number(digits);
  if (!number || *number < 0 || *number * unit > kMaxInputSeconds) {
    return fail(fmt::format("'{}' is no time (seconds, or 90s, 5m, 2h, 1d)", text));
  }
  return seconds_to_duration(*number * unit);
}

Result<Settings> parse_settings(std::string_view text, std::string_view option) {
  Settings settings;
  for (const std::string_view one : split(text, ',')) {
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(fmt::format("{}: '{}' is no option (write KEY=VALUE)", option, one));
    settings.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  }
  return settings;
}

Result<Params> Params::make(std::string_view owner, const std::vector<ParamSpec>& specs,
                            const Settings& settings, ParamVoice voice) {
  Params params;
  params.voice_ = std::move(voice);
  if (params.voice_.see.empty()) params.voice_.see = fmt::format("berth policies {}", owner);
  std::vector<std::string> known;
  for (const ParamSpec& spec : specs) {
    params.values_[spec.key] = spec.default_value;
    known.push_back(spec.key);
  }
  Error error;
  for (const auto& [key, value] : settings) {
    const auto found = params.values_.find(key);
    if (found == params.values_.end()) {
      error.messages.push_back(
          known.empty()
              ? fmt::format("{}{}: '{}' takes no parameters", params.voice_.setting, key, owner)
              : fmt::format("{}{}: '{}' has no such parameter{}", params.voice_.setting, key, owner,
                            suggestion(key, known)));
    } else {
      found->second = value;
    }
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return params;
}

const std::string& Params::text(std::string_view key) const {
  const auto found = values_.find(key);
  BERTH_CHECK(found != values_.end(), "a policy reads only parameters it declared");
  return found->second;
}

tl::unexpected<Error> Params::wrong(std::string_view key, std::string_view what) const {
  return fail(
      fmt::format("{}{}={}: {} (see `{}`)", voice_.setting, key, text(key), what, voice_.see));
}

Result<double> Params::number(std::string_view key, double low, double high) const {
  const auto number = parse_number(text(key));
  if (!number || *number < low || *number > high)
    return wrong(key, fmt::format("must be a number from {} to {}", low, high));
  return *number;
}

Result<std::int64_t> Params::integer(std::string_view key, std::int64_t low,
                                     std::int64_t high) const {
  const auto number = parse_number(text(key));
  // Read as a double on purpose: "1e6" and "4.0" are whole numbers to a user.
  if (!number || *number != std::floor(*number) || *number < static_cast<double>(low) ||
      *number > static_cast<double>(high)) {
    return wrong(key, fmt::format("must be a whole number from {} to {}", low, high));
  }
  return static_cast<std::int64_t>(*number);
}

Result<Duration> Params::duration(std::string_view key) const {
  auto parsed = parse_duration(text(key));
  if (!parsed) return wrong(key, parsed.error().text());
  return parsed;
}

Result<Duration> Params::positive_duration(std::string_view key) const {
  BERTH_TRY(const Duration found, duration(key));
  if (found <= Duration::zero()) return wrong(key, "must be more than zero");
  return found;
}

Result<bool> Params::flag(std::string_view key) const {
  const std::string& word = text(key);
  if (word == "on" || word == "true" || word == "yes" || word == "1") return true;
  if (word == "off" || word == "false" || word == "no" || word == "0") return false;
  return wrong(key, "must be on or off");
}

Result<std::vector<double>> Params::numbers(std::string_view key) const {
  std::vector<double> result;
  if (text(key).empty()) return result;
  for (const std::string_view part : split(text(key), ',')) {
    const auto number = parse_number(part);
    if (!number) return wrong(key, fmt::format("'{}' is no number in a list like 3200,7200", part));
    result.push_back(*number);
  }
  return result;
}

Result<std::size_t> Params::choice(std::string_view key,
                                   const std::vector<std::string>& words) const {
  const auto found = std::ranges::find(words, text(key));
  if (found == words.end())
    return wrong(key, fmt::format("must be one of {}", fmt::join(words, ", ")));
  return static_cast<std::size_t>(found - words.begin());
}

Result<std::vector<std::pair<std::string, std::vector<double>>>> Params::named_numbers(
    std::string_view key) const {
  std::vector<std::pair<std::string, std::vector<double>>> result;
  if (text(key).empty()) return result;
  for (const std::string_view part : split(text(key), ',')) {
    const auto pieces = split(part, ':');
    std::vector<double> numbers;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      const auto number = parse_number(pieces[i]);
      if (!number || *number < 0)
        return wrong(key,
                     fmt::format("'{}' in '{}' must be a number of 0 or more", pieces[i], part));
      numbers.push_back(*number);
    }
    if (pieces[0].empty() || numbers.empty())
      return wrong(key, fmt::format("'{}' must be NAME:NUMBER", part));
    const auto same = [&](const auto& entry) { return entry.first == pieces[0]; };
    // A tenant named twice is almost always a typing error; taking the last one would hide it.
    if (std::ranges::any_of(result, same))
      return wrong(key, fmt::format("'{}' is named twice", pieces[0]));
    result.emplace_back(std::string(pieces[0]), std::move(numbers));
  }
  return result;
}

}  // namespace berth
