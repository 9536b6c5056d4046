#include "policies/aonline/room.h"

#include <algorithm>

namespace berth::aonline {

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
