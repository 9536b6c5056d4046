// Runs something in a forked copy of this process and brings its answer back: the copy may change
// whatever it likes. Only the calling thread exists there, so the work must not wait for locks that
// other threads may hold; a copy that does not answer in time is killed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace berth {

[[nodiscard]] std::optional<std::string> in_a_copy(
    const std::function<std::string()>& work,
    std::chrono::milliseconds patience = std::chrono::seconds{5});

}  // namespace berth
