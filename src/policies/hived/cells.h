// HiveD cells: shares of a cluster that keep their topology. A level-l cell is a run of devices
// that hang together (1, 2, 4, 8 devices, a rack of servers …); a larger cell consists of equal
// smaller ones, any number of them (a 6-GPU server is 2 x 3 x 1). A tenant owns cells, not a GPU
// count.
//
// CellTree is buddy allocation over them: take a free cell of the level, else split the smallest
// larger one; on release merge with free siblings. CellShares adds owners: an owned cell is bound
// to a physical one when it is first used, guests fill what is free. The safety test before
// anything that is not a tenant's own binding keeps every unbound cell satisfiable, so a tenant
// never waits longer than in a cluster of its own. Lowest id first; preemptible guests come from
// the other end. All operations are O(levels) words of bitmaps, plus the guests that are put out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "core/bit_set.h"

namespace berth::hived {

/// Cell number `index` of a level covers devices index * size … (index + 1) * size - 1.
struct Cell {
  std::uint32_t level = 0;
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(const Cell&, const Cell&) = default;
};

/// The levels of a homogeneous part of the cluster.
struct CellLevels {
  std::vector<std::int32_t> sizes;  // devices per cell, ascending; each divides the next
  std::uint32_t tops = 0;           // cells of the largest size

  [[nodiscard]] std::size_t count() const noexcept { return sizes.size(); }
  [[nodiscard]] std::uint32_t top() const noexcept {
    return static_cast<std::uint32_t>(sizes.size()) - 1;
  }
  /// Level-l cells in one of the level above; 0 at the top.
  [[nodiscard]] std::int32_t children(std::uint32_t level) const noexcept {
    return level == top() ? 0 : sizes[level + 1] / sizes[level];
  }
  [[nodiscard]] std::uint32_t cells(std::uint32_t level) const noexcept {
    return tops * static_cast<std::uint32_t>(sizes[top()] / sizes[level]);
  }
  /// The smallest level whose cells hold so many devices; nothing if none does.
  [[nodiscard]] std::optional<std::uint32_t> level_for(std::int32_t devices) const noexcept;
};

class CellTree {
 public:
  enum class End : std::uint8_t { Lowest, Highest };

  explicit CellTree(CellLevels levels);
  [[nodiscard]] const CellLevels& levels() const noexcept { return levels_; }

  [[nodiscard]] std::optional<Cell> take(std::uint32_t level, End end = End::Lowest);
  /// Takes this very cell; false if it is not wholly free.
  [[nodiscard]] bool take(Cell cell);
  void give(Cell cell);
  /// Is the cell free as a whole (itself, or as a part of a free larger one)?
  [[nodiscard]] bool is_free(Cell cell) const noexcept;
  /// Free cells that are not part of a larger free one, per level.
  [[nodiscard]] std::span<const std::int64_t> free() const noexcept { return counts_; }

 private:
  void add(Cell cell);
  void remove(Cell cell);
  [[nodiscard]] Cell parent(Cell cell) const noexcept;
  /// The free cell that contains this one.
  [[nodiscard]] std::optional<Cell> free_ancestor(Cell cell) const noexcept;
  void split_down(Cell from, Cell to);

  CellLevels levels_;
  std::vector<BitIndex> free_;        // per level
  std::vector<std::int64_t> counts_;  // per level
};

/// f_top = free - need, f_l = free + children * f_(l+1) - need; safe when none is negative.
/// `children[l]` are the level-l cells in one of level l+1 (the last is not read).
[[nodiscard]] bool is_safe(std::span<const std::int64_t> free, std::span<const std::int64_t> need,
                           std::span<const std::int32_t> children);
/// The free counts after one cell of the level was taken by splitting the smallest larger one;
/// nothing if there is none.
[[nodiscard]] std::optional<std::vector<std::int64_t>> after_taking(
    std::span<const std::int64_t> free, std::span<const std::int32_t> children,
    std::uint32_t level);

class CellShares {
 public:
  /// owned[t][l]: how many cells of level l tenant t owns.
  CellShares(CellLevels levels, std::vector<std::vector<std::int64_t>> owned);

  [[nodiscard]] const CellLevels& levels() const noexcept { return assured_.levels(); }
  /// Can all tenants have all of their cells at once? To be asked before anything else.
  [[nodiscard]] bool is_satisfiable() const { return is_safe(assured_.free(), need_, children_); }
  [[nodiscard]] std::int64_t unbound(std::uint32_t tenant, std::uint32_t level) const noexcept {
    return unbound_[tenant][level];
  }

  /// Binds one of the tenant's unbound cells of the level; guests on it are put out and appended to
  /// `evicted`. Nothing if the tenant has none left, or if what it owns is out of service.
  [[nodiscard]] std::optional<Cell> bind(std::uint32_t tenant, std::uint32_t level,
                                         std::vector<Cell>& evicted);
  void unbind(std::uint32_t tenant, Cell cell);

  /// A guest that stays until it leaves: only where the safety test allows it.
  [[nodiscard]] std::optional<Cell> admit_firm_guest(std::uint32_t level);
  void release_firm_guest(Cell cell);
  /// A guest that may be put out at any moment: any cell that nobody is on.
  [[nodiscard]] std::optional<Cell> admit_guest(std::uint32_t level);
  /// The same on this very cell; false if somebody is on a part of it.
  [[nodiscard]] bool admit_guest_at(Cell cell);
  void release_guest(Cell cell);

  /// A cell on which nobody is goes out of service, or comes back. Meanwhile a tenant may find its
  /// own cells missing.
  void block(Cell cell);
  void unblock(Cell cell);

 private:
  CellTree assured_;  // bound cells and firm guests; preemptible guests do not exist here
  CellTree in_use_;   // everybody
  std::vector<std::int32_t> children_;
  std::vector<std::vector<std::int64_t>> unbound_;  // by tenant, level
  std::vector<std::int64_t> need_;                  // unbound cells of all, per level
  std::vector<BitIndex> guests_;                    // per level: the cells of preemptible guests
  std::size_t blocked_ = 0;
};

}  // namespace berth::hived
