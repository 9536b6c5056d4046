// Numbers in Slurm's texts, read whole or not at all, and never beyond what their type holds; and
// texts cut short for messages.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace berth::slurm {

/// Digits alone, at most 18 of them.
[[nodiscard]] inline std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > 18) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A number that fits T, else `otherwise`: an absurd number is as good as none.
template <class T>
[[nodiscard]] T number_or(std::string_view text, T otherwise) noexcept {
  const auto value = parse_digits(text);
  if (!value || *value > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
    return otherwise;
  return static_cast<T>(*value);
}

/// For messages: the beginning of a text that somebody else wrote, without control characters.
[[nodiscard]] inline std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 120;
  std::string said(text.substr(0, kMost));
  std::ranges::replace_if(
      said, [](char letter) { return static_cast<unsigned char>(letter) < 32 || letter == 127; },
      '?');
  if (text.size() > kMost) said += "...";
  return said;
}

/// What Slurm prints where there is nothing to say.
[[nodiscard]] inline bool is_nothing(std::string_view text) noexcept {
  return text.empty() || text == "(null)" || text == "N/A" || text == "n/a" || text == "None" ||
         text == "NONE";
}
[[nodiscard]] inline std::string_view or_empty(std::string_view text) noexcept {
  return is_nothing(text) ? std::string_view{} : text;
}

}  // namespace berth::slurm
