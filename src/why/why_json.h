// An explanation as JSON: what a forked copy answers, and what the service hands out.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/why.h"

namespace berth {

[[nodiscard]] std::string to_json(const Why& why);
/// Of an answer of our own: one without a job is none.
[[nodiscard]] Result<Why> why_from_json(std::string_view text);

}  // namespace berth
