#include "model/output_pattern.h"

#include <optional>

#include "model/path_pattern.h"

namespace berth {

namespace {

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

std::optional<std::string> value_of(const PathPiece& piece, const PatternContext& context) {
  const auto number = [&](auto value) { return padded(std::to_string(value), piece.width); };
  switch (piece.letter) {
    case 'j': return number(context.job);
    case 'J': return number(context.job) + (context.step.empty() ? "" : "." + context.step);
    case 's': return context.step.empty() ? "batch" : tame(context.step);
    case 'b': return number(context.array_index % 10);
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
  BERTH_TRY_VOID(check_path_pattern(pattern));
  std::string path;
  while (!pattern.empty()) {
    const auto percent = pattern.find('%');
    path += pattern.substr(0, percent);
    if (percent == std::string_view::npos) break;
    pattern.remove_prefix(percent);
    const auto piece = path_piece(pattern);
    if (!piece) break;  // cannot be: it was checked
    const auto value = value_of(*piece, context);
    path += value ? *value : pattern.substr(0, piece->length);
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
    const auto piece = path_piece(pattern);
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
