// Names of nodes and the bracket ranges that stand for many of them, as administrators write them:
// "n[01-16]", "r[1-2]n[1-8]", "n[1-4,9]", "login".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// Letters, digits, '-', '_' and '.', at most 200 of them.
[[nodiscard]] bool is_node_name(std::string_view text) noexcept;
/// The names a pattern stands for, zeros in front kept; nothing if it is malformed or stands for
/// more than kMaxNodes.
[[nodiscard]] std::optional<std::vector<std::string>> expand_node_names(std::string_view pattern);

}  // namespace berth
