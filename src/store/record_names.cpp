// The words for attempts and wishes: kept in the journal, so they never change.
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "store/record.h"

namespace berth {

namespace {

struct WishWords {
  Wish wish;
  std::string_view word, done;
};
constexpr std::array<WishWords, 7> kWishes{{
    {Wish::Hold, "hold", "held"},
    {Wish::Release, "release", "released"},
    {Wish::Cancel, "cancel", "cancelled"},
    {Wish::Preempt, "preempt", "preempted"},
    {Wish::Suspend, "suspend", "suspended"},
    {Wish::Resume, "resume", "resumed"},
    {Wish::Requeue, "requeue", "requeued"},
}};

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

std::string_view to_string(Wish wish) noexcept {
  const auto found = std::ranges::find(kWishes, wish, &WishWords::wish);
  return found == kWishes.end() ? "?" : found->word;
}
std::string_view done_word(Wish wish) noexcept {
  const auto found = std::ranges::find(kWishes, wish, &WishWords::wish);
  return found == kWishes.end() ? "?" : found->done;
}
std::optional<Wish> wish_from(std::string_view text) noexcept {
  const auto found = std::ranges::find(kWishes, text, &WishWords::word);
  if (found == kWishes.end()) return std::nullopt;
  return found->wish;
}

}  // namespace berth
