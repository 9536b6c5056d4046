#include "slurm/mark.h"

#include <charconv>

#include "base/split.h"

namespace berth::slurm {

namespace {

HoldMark read_mark(std::string_view word) {
  HoldMark mark;
  for (const std::string_view part : split(word, ';')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = part.substr(0, equals), value = part.substr(equals + 1);
    if (key == "nodes") mark.nodes = value;
    if (key == "n") mark.node_count = value;
    if (key == "begin") std::from_chars(value.data(), value.data() + value.size(), mark.begin);
  }
  return mark;
}

}  // namespace

std::optional<HoldMark> hold_mark_of(std::string_view admin_comment) {
  for (const std::string_view word : split(admin_comment, ' ')) {
    if (word.substr(0, word.find(';')) == "berth=held") return read_mark(word);
  }
  return std::nullopt;
}

}  // namespace berth::slurm
