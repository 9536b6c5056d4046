#include "policies/aonline/configurations.h"

#include <algorithm>

namespace berth::aonline {

namespace {

/// Never more of anything, and never longer.
bool is_no_larger(const Configuration& a, const Configuration& b) {
  return a.gpus <= b.gpus && a.slots <= b.slots && a.helpers <= b.helpers;
}

/// Less resource-time and no longer. With as much resource-time the wider one is no better: the
/// narrow one fits where the wide one does not.
bool is_cheaper(const Configuration& a, const Configuration& b) {
  return a.slots <= b.slots && a.gpu_slots() < b.gpu_slots() &&
         a.helpers * a.slots <= b.helpers * b.slots;
}

bool beats(const Configuration& a, const Configuration& b) {
  return a.type == b.type && (is_cheaper(a, b) || (is_no_larger(a, b) && !is_no_larger(b, a)));
}

}  // namespace

std::vector<std::int64_t> sizes_between(std::int64_t least, std::int64_t most, std::int64_t asked) {
  std::vector<std::int64_t> sizes{least, most};
  if (least < asked && asked < most) sizes.push_back(asked);
  for (std::int64_t size = 1; size < most; size *= 2) {
    if (size > least) sizes.push_back(size);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<Configuration> unbeaten(const std::vector<Configuration>& ways) {
  std::vector<Configuration> kept;
  for (const Configuration& way : ways) {
    const bool beaten =
        std::ranges::any_of(ways, [&](const Configuration& other) { return beats(other, way); });
    if (!beaten && std::ranges::find(kept, way) == kept.end()) kept.push_back(way);
  }
  return kept;
}

}  // namespace berth::aonline
