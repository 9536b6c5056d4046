#include "exec/output_pattern.h"

#include <optional>

namespace berth {

namespace {

constexpr std::size_t kMaxWidth = 10;  // Slurm's

struct Piece {
  char letter = 0;
  std::size_t width = 0;
  std::size_t length = 0;  // of "%4j" in the pattern
};

/// What begins at a percent sign; nothing if the pattern ends before its letter.
std::optional<Piece> piece_at(std::string_view text) {
  Piece piece;
  std::size_t at = 1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    if (piece.width <= kMaxWidth)
      piece.width = piece.width * 10 + static_cast<std::size_t>(text[at] - '0');
  if (at == text.size()) return std::nullopt;
  piece.letter = text[at];
  piece.length = at + 1;
  return piece;
}

std::string padded(std::string number, std::size_t width) {
  if (number.size() < width) number.insert(0, width - number.size(), '0');
  return number;
}

std::string tame(std::string_view value) {
  std::string safe;
  for (const char c : value) {
    if (c == '%')
      safe += "%%";
    else
      safe += c == '/' || c == '\0' ? '_' : c;
  }
  return safe == "." || safe == ".." ? std::string(safe.size(), '_') : safe;
}

std::optional<std::string> value_of(const Piece& piece, const PatternContext& context) {
  const auto number = [&](auto value) { return padded(std::to_string(value), piece.width); };
  switch (piece.letter) {
    case 'j': return number(context.job);
    case 'A': return number(context.array != 0 ? context.array : context.job);
    case 'a': return number(context.array_index);
    case 'n': return number(0);
    case 'x': return tame(context.name);
    case 'u': return tame(context.user);
    case 'N': return tame(context.node);
    default: return std::nullopt;
  }
}

}  // namespace

Result<std::string> expand_pattern(std::string_view pattern, const PatternContext& context) {
  std::string path;
  while (!pattern.empty()) {
    const auto percent = pattern.find('%');
    path += pattern.substr(0, percent);
    if (percent == std::string_view::npos) break;
    pattern.remove_prefix(percent);
    const auto piece = piece_at(pattern);
    if (!piece) return fail("the pattern ends with a lone % (write %% for a percent sign)");
    if (piece->width > kMaxWidth) return fail("a pattern pads to at most 10 digits");
    const std::string_view written = pattern.substr(0, piece->length);
    if (piece->letter == 't' || piece->letter == '%') {
      path += written;
    } else if (const auto value = value_of(*piece, context)) {
      path += *value;
    } else {
      return fail("unknown pattern " + std::string(written) +
                  " (known: %j %x %u %A %a %N %n %t %%)");
    }
    pattern.remove_prefix(piece->length);
  }
  return path;
}

std::string path_of_task(std::string_view pattern, std::int32_t task) {
  std::string path;
  while (!pattern.empty()) {
    const auto percent = pattern.find('%');
    path += pattern.substr(0, percent);
    if (percent == std::string_view::npos) break;
    pattern.remove_prefix(percent);
    const auto piece = piece_at(pattern);
    if (!piece || (piece->letter != 't' && piece->letter != '%')) {
      path += '%';  // not ours: as it stands
      pattern.remove_prefix(1);
      continue;
    }
    path += piece->letter == 't' ? padded(std::to_string(task), piece->width) : "%";
    pattern.remove_prefix(piece->length);
  }
  return path;
}

bool is_per_task(std::string_view pattern) {
  return path_of_task(pattern, 0) != path_of_task(pattern, 1);
}

}  // namespace berth
