#include "model/attempt.h"

namespace berth {

std::string_view to_string(Outcome outcome) noexcept {
  for (const auto& [known, name] : kOutcomeNames)
    if (known == outcome) return name;
  return "?";
}

std::optional<Outcome> outcome_from(std::string_view text) noexcept {
  for (const auto& [outcome, name] : kOutcomeNames)
    if (name == text) return outcome;
  return std::nullopt;
}

}  // namespace berth
