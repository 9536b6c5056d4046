// The door of YAML files. A first pass over the parser's events refuses what a description never
// needs (a second document, self-references, crowds of aliases, deep nesting), so that the reader
// behind it may walk the tree without fear. Throws whatever yaml-cpp throws on bad syntax.
#pragma once

#include <string>
#include <string_view>

#include <yaml-cpp/mark.h>

#include "base/result.h"

namespace berth {

/// What a kind of file is for, in messages to its author.
struct YamlKind {
  std::string_view holds;    // "cluster": one of them per file
  std::string_view example;  // for the author of an empty file
};

[[nodiscard]] Result<void> check_yaml_shape(const std::string& text, const std::string& file,
                                            const YamlKind& kind);

/// "file:line:column", counted from one.
[[nodiscard]] std::string yaml_place(const std::string& file, const YAML::Mark& mark);
/// Text from a file as a message may show it: short, and no control characters.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace berth
