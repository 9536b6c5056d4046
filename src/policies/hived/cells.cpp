#include "policies/hived/cells.h"

#include "base/check.h"

namespace berth::hived {

std::optional<std::uint32_t> CellLevels::level_for(std::int32_t devices) const noexcept {
  for (std::uint32_t level = 0; level < sizes.size(); ++level) {
    if (sizes[level] >= devices) return level;
  }
  return std::nullopt;
}

CellTree::CellTree(CellLevels levels) : levels_(std::move(levels)), counts_(levels_.count()) {
  for (std::uint32_t level = 0; level < levels_.count(); ++level)
    free_.emplace_back(levels_.cells(level));
  for (std::uint32_t i = 0; i < levels_.tops; ++i) add({levels_.top(), i});
}

void CellTree::add(Cell cell) {
  free_[cell.level].insert(cell.index);
  ++counts_[cell.level];
}

void CellTree::remove(Cell cell) {
  free_[cell.level].erase(cell.index);
  --counts_[cell.level];
}

Cell CellTree::parent(Cell cell) const noexcept {
  return {cell.level + 1, cell.index / static_cast<std::uint32_t>(levels_.children(cell.level))};
}

std::optional<Cell> CellTree::free_ancestor(Cell cell) const noexcept {
  for (;; cell = parent(cell)) {
    if (free_[cell.level].contains(cell.index)) return cell;
    if (cell.level == levels_.top()) return std::nullopt;
  }
}

bool CellTree::is_free(Cell cell) const noexcept { return free_ancestor(cell).has_value(); }

/// `from` is free and holds `to`: afterwards `to` is taken and the rest of `from` is free.
void CellTree::split_down(Cell from, Cell to) {
  remove(from);
  for (Cell cell = to; cell != from; cell = parent(cell)) {
    const auto siblings = static_cast<std::uint32_t>(levels_.children(cell.level));
    const std::uint32_t first = cell.index / siblings * siblings;
    for (std::uint32_t i = first; i < first + siblings; ++i) {
      if (i != cell.index) add({cell.level, i});
    }
  }
}

std::optional<Cell> CellTree::take(std::uint32_t level, End end) {
  for (std::uint32_t from = level; from < levels_.count(); ++from) {
    if (counts_[from] == 0) continue;
    const auto index =
        end == End::Lowest ? free_[from].next(0) : free_[from].previous(levels_.cells(from));
    const Cell large{from, static_cast<std::uint32_t>(*index)};
    const auto parts = static_cast<std::uint32_t>(levels_.sizes[from] / levels_.sizes[level]);
    const Cell cell{level, large.index * parts + (end == End::Lowest ? 0 : parts - 1)};
    split_down(large, cell);
    return cell;
  }
  return std::nullopt;
}

bool CellTree::take(Cell cell) {
  const auto large = free_ancestor(cell);
  if (!large) return false;
  split_down(*large, cell);
  return true;
}

void CellTree::give(Cell cell) {
  BERTH_CHECK(!is_free(cell), "only a taken cell comes back");
  while (cell.level < levels_.top()) {
    const auto siblings = static_cast<std::uint32_t>(levels_.children(cell.level));
    const std::uint32_t first = cell.index / siblings * siblings;
    for (std::uint32_t i = first; i < first + siblings; ++i) {
      if (i != cell.index && !free_[cell.level].contains(i)) return add(cell);
    }
    for (std::uint32_t i = first; i < first + siblings; ++i) {
      if (i != cell.index) remove({cell.level, i});
    }
    cell = parent(cell);
  }
  add(cell);
}

bool is_safe(std::span<const std::int64_t> free, std::span<const std::int64_t> need,
             std::span<const std::int32_t> children) {
  std::int64_t left = 0;  // of the level above
  for (std::size_t level = free.size(); level-- > 0;) {
    const bool is_top = level + 1 == free.size();
    left = free[level] + (is_top ? 0 : children[level] * left) - need[level];
    if (left < 0) return false;
  }
  return true;
}

std::optional<std::vector<std::int64_t>> after_taking(std::span<const std::int64_t> free,
                                                      std::span<const std::int32_t> children,
                                                      std::uint32_t level) {
  std::vector<std::int64_t> result(free.begin(), free.end());
  std::uint32_t from = level;
  while (from < result.size() && result[from] == 0) ++from;
  if (from == result.size()) return std::nullopt;
  --result[from];
  for (std::uint32_t below = level; below < from; ++below) result[below] += children[below] - 1;
  return result;
}

CellShares::CellShares(CellLevels levels, std::vector<std::vector<std::int64_t>> owned)
    : assured_(levels), in_use_(levels), unbound_(std::move(owned)), need_(levels.count()) {
  for (std::uint32_t level = 0; level < levels.count(); ++level) {
    children_.push_back(levels.children(level));
    guests_.emplace_back(levels.cells(level));
    for (const auto& tenant : unbound_) need_[level] += tenant[level];
  }
}

std::optional<Cell> CellShares::bind(std::uint32_t tenant, std::uint32_t level,
                                     std::vector<Cell>& evicted) {
  if (unbound_[tenant][level] == 0) return std::nullopt;
  const auto cell = assured_.take(level);
  BERTH_CHECK(cell.has_value() || blocked_ > 0,
              "a safe assignment always has the cell a tenant owns");
  if (!cell) return std::nullopt;
  --unbound_[tenant][level];
  --need_[level];
  // guests on a part of it, or on a larger cell around it
  for (std::uint32_t below = 0; below < levels().count(); ++below) {
    const std::int64_t size = levels().sizes[below];
    const std::int64_t first = std::int64_t{cell->index} * levels().sizes[level];
    const std::int64_t end = first + levels().sizes[level];
    auto guest = guests_[below].next(static_cast<std::size_t>(first / size));
    for (; guest && static_cast<std::int64_t>(*guest) * size < end;
         guest = guests_[below].next(*guest + 1)) {
      evicted.push_back({below, static_cast<std::uint32_t>(*guest)});
      release_guest(evicted.back());
    }
  }
  const bool taken = in_use_.take(*cell);
  BERTH_CHECK(taken, "nobody but guests is on a cell that was free");
  return cell;
}

void CellShares::unbind(std::uint32_t tenant, Cell cell) {
  assured_.give(cell);
  in_use_.give(cell);
  ++unbound_[tenant][cell.level];
  ++need_[cell.level];
}

std::optional<Cell> CellShares::admit_firm_guest(std::uint32_t level) {
  const auto after = after_taking(assured_.free(), children_, level);
  if (!after || !is_safe(*after, need_, children_)) return std::nullopt;
  // Only where no preemptible guest is: who is in may be put out by tenants alone.
  const auto cell = in_use_.take(level, CellTree::End::Highest);
  if (!cell) return std::nullopt;
  const bool taken = assured_.take(*cell);
  BERTH_CHECK(taken, "what nobody is on is free");
  if (is_safe(assured_.free(), need_, children_)) return cell;
  release_firm_guest(*cell);  // this one split a cell that tenants may need whole
  return std::nullopt;
}

void CellShares::release_firm_guest(Cell cell) {
  assured_.give(cell);
  in_use_.give(cell);
}

std::optional<Cell> CellShares::admit_guest(std::uint32_t level) {
  const auto cell = in_use_.take(level, CellTree::End::Highest);
  if (cell) guests_[level].insert(cell->index);
  return cell;
}

bool CellShares::admit_guest_at(Cell cell) {
  if (!in_use_.take(cell)) return false;
  guests_[cell.level].insert(cell.index);
  return true;
}

void CellShares::block(Cell cell) {
  const bool free = assured_.take(cell) && in_use_.take(cell);
  BERTH_CHECK(free, "a cell goes out of service empty");
  ++blocked_;
}

void CellShares::unblock(Cell cell) {
  assured_.give(cell);
  in_use_.give(cell);
  --blocked_;
}

void CellShares::release_guest(Cell cell) {
  guests_[cell.level].erase(cell.index);
  in_use_.give(cell);
}

}  // namespace berth::hived
