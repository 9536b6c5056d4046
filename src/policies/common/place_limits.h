// From whom on nobody of a shape finds a place in a pool: a pass by rank that has found out that a
// job has none there leaves it out, and with it whoever of its shape comes behind, who has fewer
// jobs to make way for it and more in the way. Clearing costs nothing.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/id.h"
#include "core/shape.h"

namespace berth {

/// `Key` orders jobs, smaller first.
template <class Key>
class PlaceLimits {
 public:
  void begin(std::size_t pools) noexcept { pools_ = pools; }
  void clear() noexcept {
    ++round_;
    any_ = false;
  }
  void set(ShapeId shape, PoolId pool, const Key& from) {
    const std::size_t at = index(shape, pool);
    if (at >= limits_.size()) limits_.resize(at + 1);
    limits_[at] = {from, round_};
    any_ = true;
  }
  [[nodiscard]] bool any() const noexcept { return any_; }
  [[nodiscard]] bool excludes(ShapeId shape, PoolId pool, const Key& key) const noexcept {
    const std::size_t at = index(shape, pool);
    return at < limits_.size() && limits_[at].second == round_ && !(key < limits_[at].first);
  }

 private:
  [[nodiscard]] std::size_t index(ShapeId shape, PoolId pool) const noexcept {
    return shape.value * pools_ + pool.value;
  }
  std::size_t pools_ = 1;
  std::vector<std::pair<Key, std::uint64_t>> limits_;  // and the round in which they were set
  std::uint64_t round_ = 1;
  bool any_ = false;
};

}  // namespace berth
