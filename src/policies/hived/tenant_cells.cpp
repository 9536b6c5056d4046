#include "policies/hived/tenant_cells.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace berth::hived {

namespace {

std::vector<std::int32_t> sizes_of(std::int32_t gpus) {
  std::vector<std::int32_t> sizes{gpus};
  while (sizes.back() > 1) sizes.push_back(sizes.back() % 2 == 0 ? sizes.back() / 2 : 1);
  return {sizes.rbegin(), sizes.rend()};
}

}  // namespace

TenantCells::TenantCells(const Cluster& cluster, const Ownership& ownership)
    : where_(cluster.nodes.size()) {
  for (const auto& [name, cells] : ownership) tenants_.push_back(name);
  std::map<std::pair<PoolId, std::int32_t>, std::uint32_t> ids;  // by pool, larger nodes first
  for (const Node& node : cluster.nodes) ids.try_emplace({node.pool, -node.gpus}, 0);
  for (auto& [key, id] : ids) {
    id = static_cast<std::uint32_t>(chains_.size());
    Chain& chain = chains_.emplace_back();
    chain.pool = key.first;
    chain.levels.sizes = sizes_of(-key.second);
    const std::size_t levels = chain.levels.count();
    chain.owned.assign(tenants_.size(), std::vector<std::int64_t>(levels));
    chain.parts.assign(tenants_.size(), std::vector<std::set<std::size_t>>(levels));
  }
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    const std::uint32_t id = ids.at({node.pool, -node.gpus});
    where_[NodeId{i}] = {id, chains_[id].levels.tops++};
    chains_[id].nodes.push_back(NodeId{i});
  }
  assign_cells(ownership);
}

/// Each kind of cell goes to the first chain that has its size and can still give everybody all
/// they own at once. What fits nowhere is not guaranteed: its jobs are guests.
void TenantCells::assign_cells(const Ownership& ownership) {
  for (std::size_t tenant = 0; tenant < tenants_.size(); ++tenant) {
    for (const auto& [size, count] : ownership.at(tenants_[tenant])) {
      for (Chain& chain : chains_) {
        const auto& sizes = chain.levels.sizes;
        const auto level = std::ranges::find(sizes, size);
        if (level == sizes.end()) continue;
        std::int64_t& mine = chain.owned[tenant][static_cast<std::size_t>(level - sizes.begin())];
        mine += count;
        if (CellShares(chain.levels, chain.owned).is_satisfiable()) break;
        mine -= count;
      }
    }
  }
  for (Chain& chain : chains_) chain.shares.emplace(chain.levels, chain.owned);
}

std::optional<TenantId> TenantCells::find(std::string_view tenant) const {
  const auto found = std::ranges::lower_bound(tenants_, tenant);
  if (found == tenants_.end() || *found != tenant) return std::nullopt;
  return TenantId{static_cast<std::uint32_t>(found - tenants_.begin())};
}

bool TenantCells::owns_enough(TenantId tenant, const Shape& shape) const {
  return std::ranges::any_of(chains_, [&](const Chain& chain) {
    if (std::ranges::find(shape.pools, chain.pool) == shape.pools.end()) return false;
    const auto& mine = chain.owned[tenant.value];
    const std::int32_t node_size = chain.levels.sizes.back();
    if (shape.gpus > node_size && mine.back() * node_size >= shape.gpus) return true;
    const auto level = chain.levels.level_for(shape.gpus);
    return level && std::any_of(mine.begin() + *level, mine.end(), [](auto n) { return n > 0; });
  });
}

/// The first `gpus` devices of a cell.
Slice TenantCells::slice(std::uint32_t chain, Cell cell, std::int32_t gpus) const noexcept {
  const CellLevels& levels = chains_[chain].levels;
  const std::int32_t size = levels.sizes[cell.level];
  const auto per_node = static_cast<std::uint32_t>(levels.sizes.back() / size);
  const std::int32_t first = static_cast<std::int32_t>(cell.index % per_node) * size;
  const std::uint64_t ones = gpus >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << gpus) - 1;
  return {chains_[chain].nodes[cell.index / per_node], gpus, ones << first};
}

void TenantCells::slices_of(JobId job, std::int32_t gpus, std::vector<Slice>& slices) const {
  slices.clear();
  for (const Place& place : places_.at(job)) {
    const auto& sizes = chains_[place.chain].levels.sizes;
    Cell cell = place.cell;
    if (place.bound) {  // inside of a bound cell: count from its first device
      const Cell& around = bound_[*place.bound]->cell;
      cell.index +=
          around.index * static_cast<std::uint32_t>(sizes[around.level] / sizes[cell.level]);
    }
    const std::int32_t part = std::min(gpus, sizes[cell.level]);
    slices.push_back(slice(place.chain, cell, part));
    gpus -= part;
  }
}

// --- a tenant's own cells

bool TenantCells::take_own(JobId job, TenantId tenant, std::uint32_t chain, std::int32_t gpus) {
  const std::int32_t node_size = chains_[chain].levels.sizes.back();
  const std::int64_t needed = (gpus + node_size - 1) / node_size;
  const CellShares& shares = *chains_[chain].shares;
  if (needed > 1 && shares.unbound(tenant.value, shares.levels().top()) < needed)
    return false;  // nobody is put out for a part of a gang
  Places& places = places_[job];
  for (; gpus > 0; gpus -= node_size) {
    const auto place = own_cell(tenant, chain, std::min(gpus, node_size));
    if (!place) break;
    places.push_back(*place);
  }
  if (std::ssize(places) == needed) return true;
  leave(job);
  return false;
}

/// A free part of a cell that is bound already, the tightest; else a cell bound for it.
std::optional<TenantCells::Place> TenantCells::own_cell(TenantId tenant, std::uint32_t chain,
                                                        std::int32_t gpus) {
  const auto level = chains_[chain].levels.level_for(gpus);
  if (!level) return std::nullopt;
  auto row = tightest_part(tenant, chain, *level);
  if (row) {
    unlist_parts(*row);
  } else {
    row = bind(tenant, chain, *level);
  }
  if (!row) return std::nullopt;
  const auto cell = bound_[*row]->inside.take(*level);
  ++bound_[*row]->jobs;
  list_parts(*row);
  return Place{chain, *cell, row};
}

/// The bound cell with the smallest free part that is large enough, the lowest row first.
std::optional<std::size_t> TenantCells::tightest_part(TenantId tenant, std::uint32_t chain,
                                                      std::uint32_t level) const {
  const auto& parts = chains_[chain].parts[tenant.value];
  for (std::size_t from = level; from < parts.size(); ++from) {
    if (!parts[from].empty()) return *parts[from].begin();
  }
  return std::nullopt;
}

/// Enters a bound cell under the levels of its free parts; unlist_parts() is its mirror.
void TenantCells::list_parts(std::size_t row) {
  const BoundCell& bound = *bound_[row];
  const auto free = bound.inside.free();
  for (std::size_t level = 0; level < free.size(); ++level) {
    if (free[level] > 0) chains_[bound.chain].parts[bound.tenant.value][level].insert(row);
  }
}

void TenantCells::unlist_parts(std::size_t row) {
  const BoundCell& bound = *bound_[row];
  const auto free = bound.inside.free();
  for (std::size_t level = 0; level < free.size(); ++level) {
    if (free[level] > 0) chains_[bound.chain].parts[bound.tenant.value][level].erase(row);
  }
}

/// The tenant's smallest unbound cell that is large enough.
std::optional<std::size_t> TenantCells::bind(TenantId tenant, std::uint32_t chain,
                                             std::uint32_t level) {
  CellShares& shares = *chains_[chain].shares;
  for (; level < shares.levels().count(); ++level) {
    std::vector<Cell> guests;
    const auto cell = shares.bind(tenant.value, level, guests);
    for (const Cell& guest : guests) evicted_.emplace_back(chain, guest);
    if (!cell) continue;
    const auto& sizes = shares.levels().sizes;
    CellLevels inside{{sizes.begin(), sizes.begin() + level + 1}, 1};
    if (spare_rows_.empty()) {
      spare_rows_.insert(bound_.size());
      bound_.emplace_back();
    }
    const std::size_t row = *spare_rows_.begin();
    spare_rows_.erase(spare_rows_.begin());
    bound_[row].emplace(BoundCell{tenant, chain, *cell, CellTree(std::move(inside)), 0});
    return row;
  }
  return std::nullopt;
}

// --- guests

void TenantCells::enter_guest(JobId job, std::uint32_t chain, Cell cell) {
  places_[job].push_back({chain, cell, std::nullopt});
  guest_on_[{chain, cell}] = job;
}

bool TenantCells::take_as_guest(JobId job, PoolId pool, std::int32_t gpus) {
  places_[job];  // a job without GPUs is on no cell, but it is somewhere
  for (std::uint32_t chain = 0; chain < chains_.size() && gpus > 0; ++chain) {
    if (chains_[chain].pool != pool) continue;
    const CellLevels& levels = chains_[chain].levels;
    while (gpus > 0) {
      const std::uint32_t level = levels.level_for(gpus).value_or(levels.top());
      const auto cell = chains_[chain].shares->admit_guest(level);
      if (!cell) break;
      enter_guest(job, chain, *cell);
      gpus -= levels.sizes[level];
    }
  }
  if (gpus <= 0) return true;
  leave(job);
  return false;
}

bool TenantCells::take_devices(JobId job, std::span<const Slice> slices) {
  for (const Slice& slice : slices) {
    const ChainNode& at = where_[slice.node];
    const auto node_size = static_cast<std::uint32_t>(chains_[at.chain].levels.sizes.back());
    for (std::uint64_t left = slice.devices; left != 0; left &= left - 1) {
      const auto device = static_cast<std::uint32_t>(std::countr_zero(left));
      const Cell cell{0, at.index * node_size + device};
      if (!chains_[at.chain].shares->admit_guest_at(cell)) {
        leave(job);
        return false;
      }
      enter_guest(job, at.chain, cell);
    }
  }
  return true;
}

void TenantCells::take_nodes(JobId job, std::span<const Slice> slices) {
  for (const Slice& slice : slices) {
    const ChainNode& at = where_[slice.node];
    const Cell whole{chains_[at.chain].levels.top(), at.index};
    const bool admitted = chains_[at.chain].shares->admit_guest_at(whole);
    BERTH_CHECK(admitted, "where nobody is every cell is free");
    enter_guest(job, at.chain, whole);
  }
}

std::set<JobId> TenantCells::put_out() {
  std::set<JobId> guests;
  for (const ChainCell& cell : evicted_) {
    const auto found = guest_on_.find(cell);
    if (found != guest_on_.end()) guests.insert(found->second);
  }
  for (const JobId job : guests) {
    std::erase_if(places_[job], [&](const Place& place) {  // these are given back already
      const ChainCell key{place.chain, place.cell};
      const bool is_gone = std::ranges::find(evicted_, key) != evicted_.end();
      if (is_gone) guest_on_.erase(key);
      return is_gone;
    });
    leave(job);
  }
  evicted_.clear();
  return guests;
}

void TenantCells::leave(JobId job) {
  const auto found = places_.find(job);
  if (found == places_.end()) return;
  for (const Place& place : found->second) {
    if (!place.bound) {
      chains_[place.chain].shares->release_guest(place.cell);
      guest_on_.erase({place.chain, place.cell});
      continue;
    }
    std::optional<BoundCell>& bound = bound_[*place.bound];
    unlist_parts(*place.bound);
    bound->inside.give(place.cell);
    if (--bound->jobs > 0) {
      list_parts(*place.bound);
      continue;
    }
    // Nobody is left in it: the tenant's next cell may be bound elsewhere.
    chains_[bound->chain].shares->unbind(bound->tenant.value, bound->cell);
    bound.reset();
    spare_rows_.insert(*place.bound);
  }
  places_.erase(found);
}

void TenantCells::set_in_service(NodeId node, bool is_up) {
  ChainNode& at = where_[node];
  if (at.is_out != is_up) return;
  at.is_out = !is_up;
  Chain& chain = chains_[at.chain];
  const Cell whole{chain.levels.top(), at.index};
  if (is_up) {
    chain.shares->unblock(whole);
  } else {
    chain.shares->block(whole);
  }
}

}  // namespace berth::hived
