// "Did you mean …": the known names nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// Up to three names within a sensible edit distance, nearest first, ties in the given order.
[[nodiscard]] std::vector<std::string> nearest_names(std::string_view wrong,
                                                     std::span<const std::string> known);
/// " (did you mean a, b?)" or, with nothing near, " (known: …)".
[[nodiscard]] std::string suggestion(std::string_view wrong, std::span<const std::string> known);

}  // namespace berth
