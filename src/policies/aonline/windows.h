// The geometric windows in which batches are planned: [1, 2), [2, 4), [4, 8), ... slots, each
// `growth` times as long as the one before, up to a limit, so that a job too long for one window is
// planned in a later one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace berth::aonline {

struct Window {
  std::int64_t start = 1;  // slot
  std::int64_t length = 1;
  [[nodiscard]] std::int64_t end() const noexcept { return start + length; }
  friend bool operator==(const Window&, const Window&) = default;
};

struct WindowRule {
  double growth = 2;
  std::int64_t longest = 64;

  [[nodiscard]] Window after(const Window& window) const noexcept {
    const double grown = std::ceil(static_cast<double>(window.length) * growth - 1e-9);
    return {window.end(), static_cast<std::int64_t>(std::min(grown, static_cast<double>(longest)))};
  }
};

}  // namespace berth::aonline
