// The demand-indexed wait queue: one heap per request shape, ordered by (key, JobId), smaller
// first. "The best waiting job that fits" is then a look at a few heads instead of a scan of the
// queue. Keys of waiting jobs do not change. A job has at most one valid entry; one that leaves
// other than by pop() is forgotten, and its entry vanishes when it surfaces, so that every top() is
// a job that waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "base/int128.h"
#include "core/shape.h"

namespace berth {

struct OrderKey {
  Int128 value = 0;
  JobId job;  // ties: smaller submit, then smaller id, which is the order of JobIds
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

class ShapeQueues {
 public:
  void push(ShapeId shape, const OrderKey& key) {
    if (shape.value >= heaps_.size()) heaps_.resize(shape.value + 1);
    if (key.job.value >= stamps_.size())
      stamps_.resize(std::max<std::size_t>(key.job.value + 1, stamps_.size() * 2));
    auto& heap = heaps_[shape.value];
    if (heap.empty()) active_.push_back(shape);
    heap.push_back({key, ++stamps_[key.job.value]});
    std::ranges::push_heap(heap, Later{});
  }
  /// Shapes with waiting jobs, in no particular order: compare keys, not positions.
  [[nodiscard]] const std::vector<ShapeId>& active() const noexcept { return active_; }
  [[nodiscard]] const OrderKey& top(ShapeId shape) const noexcept {
    return heaps_[shape.value].front().key;
  }
  [[nodiscard]] bool empty() const noexcept { return active_.empty(); }

  OrderKey pop(ShapeId shape) {
    const OrderKey key = top(shape);
    drop_top(heaps_[shape.value]);
    prune(shape);
    return key;
  }
  /// The job no longer waits here; nothing happens if it did not.
  void forget(ShapeId shape, JobId job) {
    if (job.value >= stamps_.size() || shape.value >= heaps_.size() || heaps_[shape.value].empty())
      return;
    ++stamps_[job.value];
    prune(shape);
  }
  /// Moves every job out: for re-keying.
  void drain(std::vector<JobId>& out) {
    for (auto& heap : heaps_) {
      for (const Entry& entry : heap) {
        if (is_valid(entry)) out.push_back(entry.key.job);
      }
      heap.clear();
    }
    active_.clear();
  }

 private:
  struct Entry {
    OrderKey key;
    std::uint32_t stamp;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const noexcept { return b.key < a.key; }
  };
  [[nodiscard]] bool is_valid(const Entry& entry) const noexcept {
    return entry.stamp == stamps_[entry.key.job.value];
  }
  static void drop_top(std::vector<Entry>& heap) {
    std::ranges::pop_heap(heap, Later{});
    heap.pop_back();
  }
  void prune(ShapeId shape) {
    auto& heap = heaps_[shape.value];
    while (!heap.empty() && !is_valid(heap.front())) drop_top(heap);
    if (heap.empty()) std::erase(active_, shape);
  }

  std::vector<std::vector<Entry>> heaps_;  // by ShapeId
  std::vector<ShapeId> active_;
  std::vector<std::uint32_t> stamps_;  // by JobId
};

}  // namespace berth
