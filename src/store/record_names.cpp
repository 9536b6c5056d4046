// The words for attempts and wishes: kept in the journal, so they never change.
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "store/record.h"

namespace berth {

namespace {

constexpr std::array<std::pair<Wish, std::string_view>, 7> kWishes{{
    {Wish::Hold, "hold"},
    {Wish::Release, "release"},
    {Wish::Cancel, "cancel"},
    {Wish::Preempt, "preempt"},
    {Wish::Suspend, "suspend"},
    {Wish::Resume, "resume"},
    {Wish::Requeue, "requeue"},
}};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) noexcept {
  for (const auto& [known, name] : table)
    if (known == value) return name;
  return "?";
}

template <class Value, class Table>
std::optional<Value> value_in(const Table& table, std::string_view text) noexcept {
  for (const auto& [value, name] : table)
    if (name == text) return value;
  return std::nullopt;
}

std::optional<std::uint64_t> whole(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_text(AttemptId attempt) {
  return fmt::format("{}.{}", attempt.generation, attempt.counter);
}

std::optional<AttemptId> attempt_from(std::string_view text) noexcept {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto generation = whole(text.substr(0, dot));
  const auto counter = whole(text.substr(dot + 1));
  if (!generation || !counter) return std::nullopt;
  return AttemptId{*generation, *counter};
}

std::string_view to_string(Wish wish) noexcept { return name_in(kWishes, wish); }
std::optional<Wish> wish_from(std::string_view text) noexcept {
  return value_in<Wish>(kWishes, text);
}

}  // namespace berth
