// How Hived starts jobs: on cells a tenant owns, as guests, and where no cell will do.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "policies/hived/hived.h"

namespace berth::hived {

/// Takes the devices of the chosen places; where cores or memory are short nothing is taken.
bool Hived::start_on(Plan& plan, JobId job, PoolId pool, std::int32_t gpus, Reason reason) {
  slices_.clear();
  for (const Place& place : chosen_) {
    Cell cell = place.cell;
    if (place.bound) {  // inside of a bound cell: count from its first device
      const BoundCell& bound = *bound_[*place.bound];
      const auto& sizes = map_->chains()[place.chain].levels.sizes;
      cell.index += bound.cell.index *
                    static_cast<std::uint32_t>(sizes[bound.cell.level] / sizes[cell.level]);
    }
    const std::int32_t size = map_->chains()[place.chain].levels.sizes[cell.level];
    const std::int32_t part = std::min(gpus, size);
    slices_.push_back(map_->slice(place.chain, cell, part));
    gpus -= part;
  }
  const bool started = plan.try_start_on(job, pool, slices_, reason);
  places_[job] = chosen_;
  if (!started) leave(job);
  return started;
}

bool Hived::start_guaranteed(const View& view, Plan& plan, JobId job, std::uint32_t tenant) {
  const Shape& shape = view.shape(job);
  for (std::uint32_t chain = 0; chain < shares_.size(); ++chain) {
    const PoolId pool = map_->chains()[chain].pool;
    if (std::ranges::find(shape.pools, pool) == shape.pools.end()) continue;
    const std::int32_t node_size = map_->chains()[chain].levels.sizes.back();
    const auto needed = static_cast<std::size_t>((shape.gpus + node_size - 1) / node_size);
    const std::uint32_t top = shares_[chain].levels().top();
    if (needed > 1 && shares_[chain].unbound(tenant, top) < static_cast<std::int64_t>(needed))
      continue;  // nobody is put out for a part of a gang
    chosen_.clear();
    for (std::int32_t left = shape.gpus; left > 0; left -= node_size) {
      const auto place = own_cell(tenant, chain, std::min(left, node_size));
      if (!place) break;
      chosen_.push_back(*place);
    }
    evict(view, plan);
    if (chosen_.size() < needed) {
      places_[job] = chosen_;  // gives back what was found
      leave(job);
      continue;
    }
    if (start_on(plan, job, pool, shape.gpus, Reason::Guarantee)) return true;
  }
  return false;
}

/// A free part of a cell that is bound already, the tightest; else a cell bound for it.
std::optional<Hived::Place> Hived::own_cell(std::uint32_t tenant, std::uint32_t chain,
                                            std::int32_t gpus) {
  const CellLevels& levels = map_->chains()[chain].levels;
  const auto level = levels.level_for(gpus);
  if (!level) return std::nullopt;
  auto best = tightest_part(tenant, chain, *level);
  if (best) {
    unlist_parts(*best);
  } else {
    best = bind(tenant, chain, *level);
  }
  if (!best) return std::nullopt;
  const auto cell = bound_[*best]->inside.take(*level);
  ++bound_[*best]->jobs;
  list_parts(*best);
  return Place{chain, *cell, best};
}

/// The bound cell with the smallest free part that is large enough, the lowest row first.
std::optional<std::size_t> Hived::tightest_part(std::uint32_t tenant, std::uint32_t chain,
                                                std::uint32_t level) const {
  const auto& parts = parts_[chain][tenant];
  for (std::size_t from = level; from < parts.size(); ++from) {
    if (!parts[from].empty()) return *parts[from].begin();
  }
  return std::nullopt;
}

/// Enters a bound cell under the levels of its free parts; unlist_parts() is its mirror.
void Hived::list_parts(std::size_t row) {
  const BoundCell& bound = *bound_[row];
  const auto free = bound.inside.free();
  for (std::size_t level = 0; level < free.size(); ++level) {
    if (free[level] > 0) parts_[bound.chain][bound.tenant][level].insert(row);
  }
}

void Hived::unlist_parts(std::size_t row) {
  const BoundCell& bound = *bound_[row];
  const auto free = bound.inside.free();
  for (std::size_t level = 0; level < free.size(); ++level) {
    if (free[level] > 0) parts_[bound.chain][bound.tenant][level].erase(row);
  }
}

std::optional<std::size_t> Hived::bind(std::uint32_t tenant, std::uint32_t chain,
                                       std::uint32_t level) {
  CellShares& shares = shares_[chain];
  for (; level < shares.levels().count(); ++level) {
    std::vector<Cell> put_out;
    const auto cell = shares.bind(tenant, level, put_out);
    for (const Cell& guest : put_out) evicted_.emplace_back(chain, guest);
    if (!cell) continue;
    CellLevels inside{{shares.levels().sizes.begin(), shares.levels().sizes.begin() + level + 1},
                      1};
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

/// Guests whose cells were taken from them lose their devices and wait again.
void Hived::evict(const View& view, Plan& plan) {
  std::set<JobId> guests;
  for (const auto& place : evicted_) {
    const auto found = guest_on_.find(place);
    if (found != guest_on_.end()) guests.insert(found->second);
  }
  for (const JobId job : guests) {
    Places& places = places_[job];
    std::erase_if(places, [&](const Place& place) {  // these are given back already
      const std::pair key{place.chain, place.cell};
      const bool gone = std::ranges::find(evicted_, key) != evicted_.end();
      if (gone) guest_on_.erase(key);
      return gone;
    });
    leave(job);
    plan.preempt(job, Reason::Guarantee);
    on_arrival(view, job);
  }
  evicted_.clear();
}

/// Each of its devices is a cell. A job that has cells of its own is a guest here all the same:
/// whoever needs these puts it out, and it goes to its own.
bool Hived::keep_found(const View& view, Plan& plan, JobId job) {
  if (plan.found_gpus(job) != view.gpus(job) || view.gpus(job) == 0) return false;
  chosen_.clear();
  bool is_admitted = true;
  for (const Slice& slice : plan.found_on(job)) {
    const ChainNode at = map_->at(slice.node);
    const auto node_size = static_cast<std::uint32_t>(map_->chains()[at.chain].levels.sizes.back());
    for (std::uint64_t left = slice.devices; left != 0 && is_admitted; left &= left - 1) {
      const auto device = static_cast<std::uint32_t>(std::countr_zero(left));
      const Cell cell{0, at.index * node_size + device};
      is_admitted = shares_[at.chain].admit_guest_at(cell);
      if (!is_admitted) break;
      chosen_.push_back({at.chain, cell, std::nullopt});
      guest_on_[{at.chain, cell}] = job;
    }
  }
  places_[job] = chosen_;
  const bool is_kept = is_admitted && plan.try_keep(job);
  if (!is_kept) leave(job);
  return is_kept;
}

/// One cell for a gang that fits into a node, else whole nodes, larger ones first.
bool Hived::start_guest(const View& view, Plan& plan, JobId job) {
  const Shape& shape = view.shape(job);
  for (const PoolId pool : shape.pools) {
    chosen_.clear();
    std::int32_t left = shape.gpus;
    for (std::uint32_t chain = 0; chain < shares_.size() && left > 0; ++chain) {
      const CellLevels& levels = shares_[chain].levels();
      if (map_->chains()[chain].pool != pool) continue;
      while (left > 0) {
        const auto level = levels.level_for(left).value_or(levels.top());
        const auto cell = shares_[chain].admit_guest(level);
        if (!cell) break;
        chosen_.push_back({chain, *cell, std::nullopt});
        left -= levels.sizes[level];
      }
    }
    for (const Place& place : chosen_) guest_on_[{place.chain, place.cell}] = job;
    if (left <= 0 && start_on(plan, job, pool, shape.gpus, Reason::Order)) return true;
    if (left > 0) {
      places_[job] = chosen_;
      leave(job);
    }
  }
  return false;
}

/// A gang that its cores or memory keep out of every cell may still fit where nobody is: it is put
/// there by the run's placement and takes the whole of its nodes.
bool Hived::start_loose(Plan& plan, JobId job) {
  if (plan.cluster().free_gpus() < plan.cluster().usable_gpus()) return false;
  if (!plan.try_start(job, Reason::Order)) return false;
  chosen_.clear();
  for (const Slice& slice : plan.slices(job)) {
    const ChainNode at = map_->at(slice.node);
    const Cell whole{map_->chains()[at.chain].levels.top(), at.index};
    const bool admitted = shares_[at.chain].admit_guest_at(whole);
    BERTH_CHECK(admitted, "where nobody is every cell is free");
    chosen_.push_back({at.chain, whole, std::nullopt});
    guest_on_[{at.chain, whole}] = job;
  }
  places_[job] = chosen_;
  return true;
}

}  // namespace berth::hived
