// One number of a reason, as programs read it: a count, a measure, or the name of something.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace berth {

using WhyNumber = std::variant<std::int64_t, double, std::string>;
using WhyNumbers = std::vector<std::pair<std::string, WhyNumber>>;

}  // namespace berth
