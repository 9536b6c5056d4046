// Shapes (or kinds, queues, tenants) that found no place: jobs of a shape are alike to the
// placement, so if one of them finds no place none does until devices come back. Emptying the set
// costs nothing, so a pass may begin with it; who keeps it over several passes clears it when
// something leaves.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace berth {

template <class Group>
class BlockedSet {
 public:
  void clear() noexcept { ++round_; }
  void add(Group group) {
    if (group.value >= blocked_in_.size()) blocked_in_.resize(group.value + 1);
    blocked_in_[group.value] = round_;
  }
  void remove(Group group) noexcept {
    if (group.value < blocked_in_.size()) blocked_in_[group.value] = 0;
  }
  [[nodiscard]] bool has(Group group) const noexcept {
    return group.value < blocked_in_.size() && blocked_in_[group.value] == round_;
  }

 private:
  std::vector<std::uint64_t> blocked_in_;  // by group: the round in which it was added last
  std::uint64_t round_ = 1;
};

/// The same by shape and pool.
class BlockedPlaces {
 public:
  void begin(std::size_t pools) noexcept { pools_ = pools; }
  void clear() noexcept { places_.clear(); }
  void add(ShapeId shape, PoolId pool) { places_.add(place(shape, pool)); }
  [[nodiscard]] bool has(ShapeId shape, PoolId pool) const noexcept {
    return places_.has(place(shape, pool));
  }

 private:
  using Place = Id<struct PlaceTag>;
  [[nodiscard]] Place place(ShapeId shape, PoolId pool) const noexcept {
    return {static_cast<std::uint32_t>(shape.value * pools_ + pool.value)};
  }
  std::size_t pools_ = 1;
  BlockedSet<Place> places_;
};

/// Starts the job where the run's placement puts it, unless one of its shape was declined before.
[[nodiscard]] inline bool try_start_unblocked(Plan& plan, BlockedSet<ShapeId>& blocked, JobId job,
                                              Reason reason = Reason::Order) {
  const ShapeId shape = plan.shape_of(job);
  if (blocked.has(shape)) return false;
  if (plan.try_start(job, reason)) return true;
  blocked.add(shape);
  return false;
}

}  // namespace berth
