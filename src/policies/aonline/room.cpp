#include "policies/aonline/room.h"

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

std::vector<Configuration> unbeaten(const std::vector<Configuration>& ways) {
  std::vector<Configuration> kept;
  for (const Configuration& way : ways) {
    const bool beaten =
        std::ranges::any_of(ways, [&](const Configuration& other) { return beats(other, way); });
    if (!beaten && std::ranges::find(kept, way) == kept.end()) kept.push_back(way);
  }
  return kept;
}

Room::Room(const std::vector<std::int64_t>& gpus, std::int64_t helpers, std::int64_t slots)
    : slots_(slots) {
  for (const std::int64_t capacity : gpus)
    free_.emplace_back(static_cast<std::size_t>(slots), capacity);
  free_.emplace_back(static_cast<std::size_t>(slots), helpers);
}

void Room::occupy(Configuration held) {
  held.slots = std::min(held.slots, slots_);
  take(held, 0);
}

void Room::change(const Configuration& way, std::int64_t start, std::int64_t sign) noexcept {
  for (std::int64_t slot = start; slot < start + way.slots; ++slot) {
    free_[way.type][static_cast<std::size_t>(slot)] += sign * way.gpus;
    free_[helper_resource()][static_cast<std::size_t>(slot)] += sign * way.helpers;
  }
}

std::optional<std::int64_t> Room::earliest(const Configuration& way,
                                           std::int64_t from) const noexcept {
  std::int64_t start = from;
  for (std::int64_t slot = from; slot < slots_; ++slot) {
    if (!fits_in(way, slot)) {
      start = slot + 1;
    } else if (slot + 1 - start == way.slots) {
      return start;
    }
  }
  return std::nullopt;
}

}  // namespace berth::aonline
