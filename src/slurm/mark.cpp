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

bool is_mark(std::string_view word) { return word.substr(0, word.find(';')) == "berth=held"; }

}  // namespace

std::optional<HoldMark> hold_mark_of(std::string_view admin_comment) {
  for (const std::string_view word : split(admin_comment, ' ')) {
    if (is_mark(word)) return read_mark(word);
  }
  return std::nullopt;
}

std::string without_mark(std::string_view admin_comment) {
  std::string rest;
  for (const std::string_view word : split(admin_comment, ' ')) {
    if (is_mark(word)) continue;
    if (!rest.empty()) rest += ' ';
    rest += word;
  }
  return rest;
}

}  // namespace berth::slurm
