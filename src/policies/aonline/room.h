// The ways to run a job, and what is free in the slots of one window: GPUs of each type, and cores
// for parameter servers where there are any. A configuration takes a constant amount for a stretch
// of slots; searching a start is one walk over the window.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace berth::aonline {

/// One way to run a job: GPUs of a type for so many slots, with its parameter servers.
struct Configuration {
  std::uint32_t type = 0;
  std::int64_t gpus = 1;
  std::int64_t slots = 1;
  std::int64_t helpers = 0;  // what its parameter servers take of the last resource

  [[nodiscard]] std::int64_t gpu_slots() const noexcept { return gpus * slots; }
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

/// Without those for which another one of the same type takes less resource-time and no longer, and
/// without repetitions; in the order given.
[[nodiscard]] std::vector<Configuration> unbeaten(const std::vector<Configuration>& ways);

class Room {
 public:
  /// Capacity by type; `helpers`: of the resource for parameter servers.
  Room(const std::vector<std::int64_t>& gpus, std::int64_t helpers, std::int64_t slots);

  [[nodiscard]] std::int64_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::size_t resources() const noexcept { return free_.size(); }
  [[nodiscard]] std::size_t helper_resource() const noexcept { return free_.size() - 1; }
  [[nodiscard]] std::int64_t free(std::size_t resource, std::int64_t slot) const noexcept {
    return free_[resource][static_cast<std::size_t>(slot)];
  }
  /// Somebody from before holds this much from the first slot on, perhaps beyond the window.
  void occupy(Configuration held);
  void take(const Configuration& way, std::int64_t start) { change(way, start, -1); }
  void give(const Configuration& way, std::int64_t start) { change(way, start, 1); }
  /// First start from `from` on at which it fits to its end.
  [[nodiscard]] std::optional<std::int64_t> earliest(const Configuration& way,
                                                     std::int64_t from) const noexcept;
  template <class Visit>  // every start at which it fits to its end, ascending
  void for_each_start(const Configuration& way, Visit visit) const {
    std::int64_t run = 0;  // slots with room up to this one
    for (std::int64_t slot = 0; slot < slots_; ++slot) {
      run = fits_in(way, slot) ? run + 1 : 0;
      if (run >= way.slots) visit(slot + 1 - way.slots);
    }
  }
  [[nodiscard]] bool fits_in(const Configuration& way, std::int64_t slot) const noexcept {
    return free(way.type, slot) >= way.gpus && free(helper_resource(), slot) >= way.helpers;
  }

 private:
  void change(const Configuration& way, std::int64_t start, std::int64_t sign) noexcept;

  std::int64_t slots_;
  std::vector<std::vector<std::int64_t>> free_;  // by resource, slot
};

}  // namespace berth::aonline
