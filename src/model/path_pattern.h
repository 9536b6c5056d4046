// The grammar of names of output files, "%x-%j.out" and the like, as Slurm writes them. What they
// stand for is known where a job is started (model/output_pattern.h); whether they make sense, at
// the door. Needs nothing but the standard library: the shim has it too.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

inline constexpr std::string_view kPathLetters = "jJxuAabNnst%";

struct PathPiece {
  char letter = 0;
  std::size_t width = 0;   // to which a number is filled with zeros
  std::size_t length = 0;  // of "%4j" in the pattern
};

/// What begins at a percent sign; nothing if the pattern ends before its letter.
[[nodiscard]] inline std::optional<PathPiece> path_piece(std::string_view text) {
  constexpr std::size_t kEnough = 1'000;
  PathPiece piece;
  std::size_t at = 1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    if (piece.width < kEnough)
      piece.width = piece.width * 10 + static_cast<std::size_t>(text[at] - '0');
  if (at >= text.size()) return std::nullopt;
  piece.letter = text[at];
  piece.length = at + 1;
  return piece;
}

[[nodiscard]] inline Result<void> check_path_pattern(std::string_view pattern) {
  constexpr std::size_t kMostDigits = 10;  // Slurm's
  for (auto at = pattern.find('%'); at != std::string_view::npos; at = pattern.find('%')) {
    pattern.remove_prefix(at);
    const auto piece = path_piece(pattern);
    if (!piece) return fail("the pattern ends with a lone % (write %% for a percent sign)");
    if (piece->width > kMostDigits) return fail("a pattern pads to at most 10 digits");
    if (kPathLetters.find(piece->letter) == std::string_view::npos)
      return fail("unknown pattern " + std::string(pattern.substr(0, piece->length)) +
                  " (known: %j %J %x %u %A %a %b %N %n %s %t %%)");
    pattern.remove_prefix(piece->length);
  }
  return {};
}

}  // namespace berth
